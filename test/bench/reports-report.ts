import type { Figure } from './report.ts'
import type { FilledWarehouse, MeasuredUpdate, ReportsMeasured } from './reports.ts'

const MIB = 2 ** 20
const MOST_TIME = 1.15
const MOST_SIZE = 1.2
const MOST_MS: Readonly<Record<string, number>> = { 'a first build': 20_000, '1,000 new e-mails': 1000 }

export const reportsAbout = ({ held }: ReportsMeasured): string =>
  `The tables for reports of a warehouse with ${Object.entries(held)
    .map(([table, rows]) => `${rows.toLocaleString('en')} ${table}`)
    .join(', ')}. "Without" is a file in which somebody else has a name of these tables.`

export function reportsFigures({ backfill }: ReportsMeasured): Figure[] {
  if (!backfill) return []
  const { with: on, without: off } = backfill
  const judged = (measure: string, ratio: number, most: number): Figure => ({
    measure,
    value: ratio.toFixed(2),
    wanted: `≤ ${most}`,
    reached: ratio <= most,
  })
  const plain = (measure: string, value: string): Figure => ({
    measure,
    value,
    wanted: '',
    reached: undefined,
  })
  return [
    judged(
      'time of a backfill with these tables over time without',
      on.usage.wallMs / off.usage.wallMs,
      MOST_TIME,
    ),
    judged('size with these tables over size without', on.bytes / off.bytes, MOST_SIZE),
    plain('with', described(on)),
    plain('without', described(off)),
  ]
}

function described({ usage, bytes }: FilledWarehouse): string {
  const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`
  return `${seconds(usage.wallMs)} (CPU ${seconds(usage.userMs + usage.systemMs)}), ${(bytes / MIB).toFixed(0)} MiB, peak memory ${(usage.peakKiB / 1024).toFixed(0)} MiB`
}

export function reportsTable({ updates }: ReportsMeasured): string {
  const row = ({ after, ms, cpuMs, longestMs }: MeasuredUpdate) => {
    const most = MOST_MS[after]
    const wanted =
      most === undefined ? ' | ' : `≤ ${most.toLocaleString('en')} | ${ms <= most ? 'yes' : 'no'}`
    return `| ${after} | ${ms.toFixed(0)} | ${cpuMs.toFixed(0)} | ${longestMs.toFixed(0)} | ${wanted} |`
  }
  return [
    '| update after | ms | of processor | longest transaction, ms | wanted | reached |',
    '|---|---|---|---|---|---|',
    ...updates.map(row),
  ].join('\n')
}
