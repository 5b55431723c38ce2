import type { BareResult } from './bare-loop.ts'
import type { Usage } from './measured-process.ts'
import type { Trial } from './trial.ts'

/** A measured figure and its target. */
export interface Figure {
  measure: string
  value: string
  wanted: string
  reached: boolean | undefined
}

export interface SizedTrial {
  messages: number
  withTexts: boolean
  trial: Trial
}

const MIB = 2 ** 20
const MOST_PARTS = 12

export function figuresOf({ messages, withTexts, trial }: SizedTrial): Figure[] {
  const { parley, size, search, served, least, bare } = trial
  const name = `${messages.toLocaleString('en')} messages, ${withTexts ? 'with' : 'without'} texts`
  const plain = (measure: string, value: string): Figure => ({
    measure: `${name}: ${measure}`,
    value,
    wanted: '',
    reached: undefined,
  })
  const judged = (measure: string, value: string, wanted: string, reached: boolean): Figure => ({
    measure: `${name}: ${measure}`,
    value,
    wanted,
    reached,
  })
  const perSecond = size.rows / (parley.wallMs / 1000)
  const extra = served.total / (least.lists + least.texts)
  const peak = parley.peakKiB / 1024
  const share = size.bytes / served.bytes
  const seconds = (ms: number) => (ms / 1000).toFixed(1)
  return [
    plain(
      'rows/s',
      `${Math.round(perSecond).toLocaleString('en')} (${size.rows.toLocaleString('en')} rows in ${seconds(parley.wallMs)} s; CPU ${seconds(parley.userMs)} s user, ${seconds(parley.systemMs)} s system)`,
    ),
    judged(
      'requests over the minimum',
      `${extra.toFixed(4)} (${served.total.toLocaleString('en')})`,
      '≤ 1.02',
      extra <= 1.02,
    ),
    judged('peak memory', `${peak.toFixed(0)} MiB`, '≤ 150 MiB', peak <= 150),
    ...(withTexts
      ? [
          judged(
            'database over JSON',
            `${share.toFixed(3)} (${(size.bytes / MIB).toFixed(0)} of ${(served.bytes / MIB).toFixed(0)} MiB)`,
            '≤ 0.9',
            share <= 0.9,
          ),
        ]
      : [plain('database over JSON', `${share.toFixed(3)} (${(size.bytes / MIB).toFixed(0)} MiB)`)]),
    ...(withTexts
      ? [
          plain(
            'full-text indices',
            `${(search.bytes / MIB).toFixed(1)} MiB built in ${seconds(search.buildMs)} s (${percent(search.bytes / size.bytes)} and ${percent(search.buildMs / parley.wallMs)} on top)`,
          ),
        ]
      : []),
    plain('share of indices', percent(size.indexBytes / size.bytes)),
    plain('share of the merged messages', percent(size.mergedBytes / size.bytes)),
    ...(bare
      ? [
          bareFigure(judged, { perSecond, bare: bare.rows / (bare.wallMs / 1000) }, withTexts),
          plain('CPU time over the bare loop', `${cpuOverBare(parley, bare).toFixed(1)} times`),
        ]
      : []),
  ]
}

/** For the same rows. A busy machine and its disk affect this less than wall time. */
function cpuOverBare(parley: Trial['parley'], bare: BareResult): number {
  return (parley.userMs + parley.systemMs) / bare.cpuMs
}

type Judge = (measure: string, value: string, wanted: string, reached: boolean) => Figure

function bareFigure(judged: Judge, speeds: { perSecond: number; bare: number }, withTexts: boolean): Figure {
  const ratio = speeds.perSecond / speeds.bare
  const value = `${ratio.toFixed(3)} (bare ${Math.round(speeds.bare).toLocaleString('en')} rows/s)`
  const figure = judged('speed over a bare better-sqlite3 loop', value, '≥ 0.333', ratio >= 1 / 3)
  return withTexts ? { ...figure, wanted: '', reached: undefined } : figure
}

export function simulatorFigure({ messages, peakKiB }: { messages: number; peakKiB: number }): Figure {
  return {
    measure: `${messages.toLocaleString('en')} messages: peak memory of the simulator`,
    value: `${(peakKiB / 1024).toFixed(0)} MiB`,
    wanted: '',
    reached: undefined,
  }
}

/** A ratio that may be at most so large. */
export const ratioFigure = (measure: string, ratio: number, most: number): Figure => ({
  measure,
  value: ratio.toFixed(2),
  wanted: `≤ ${most}`,
  reached: ratio <= most,
})

/** A figure without a target. */
export const plainFigure = (measure: string, value: string): Figure => ({
  measure,
  value,
  wanted: '',
  reached: undefined,
})

/** Time, size and memory of one run, as text. */
export function describedRun({ usage, bytes }: { usage: Usage; bytes: number }): string {
  const cpuMs = usage.userMs + usage.systemMs
  return `${inSeconds(usage.wallMs)} (CPU ${inSeconds(cpuMs)}), ${(bytes / MIB).toFixed(0)} MiB, peak memory ${(usage.peakKiB / 1024).toFixed(0)} MiB`
}

const inSeconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`

export function markdownOf(figures: readonly Figure[]): string {
  const says = (reached: boolean | undefined) => (reached === undefined ? '' : reached ? 'yes' : 'no')
  return [
    '| measure | result | wanted | reached |',
    '|---|---|---|---|',
    ...figures.map(
      ({ measure, value, wanted, reached }) => `| ${measure} | ${value} | ${wanted} | ${says(reached)} |`,
    ),
  ].join('\n')
}

export function partsOf({ size }: Trial): string {
  return [
    '| table or index | MiB | share |',
    '|---|---|---|',
    ...size.parts
      .slice(0, MOST_PARTS)
      .map(({ name, bytes }) => `| ${name} | ${(bytes / MIB).toFixed(1)} | ${percent(bytes / size.bytes)} |`),
  ].join('\n')
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`
}
