import { describedRun, type Figure, plainFigure, ratioFigure } from './report.ts'
import type { MeasuredUpdate, ReportsMeasured } from './reports.ts'

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
  return [
    ratioFigure(
      'time of a backfill with these tables over time without',
      on.usage.wallMs / off.usage.wallMs,
      MOST_TIME,
    ),
    ratioFigure('size with these tables over size without', on.bytes / off.bytes, MOST_SIZE),
    plainFigure('with', describedRun(on)),
    plainFigure('without', describedRun(off)),
  ]
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
