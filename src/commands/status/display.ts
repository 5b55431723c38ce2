import { isoInstant } from '../../base/clock.ts'
import { safeText } from '../../base/safe-text.ts'
import { wholeNumber } from '../../base/whole-number.ts'
import { databaseProblem, problemsOf } from '../../health/problems.ts'
import { problemVerdict, verdictOf } from '../../health/verdict.ts'
import { fileSizesText, limitSentence, NOTHING_WRITTEN, trafficSummary } from '../../health/wording.ts'
import type { Overview, TrafficSpan } from '../../store/status/overview.ts'
import type { RateReport } from '../../store/status/report.ts'
import { cutToWidth } from '../../terminal/text-width.ts'
import { ageText, foldText } from '../../terminal/wording.ts'
import { resourceLines, resourceTable, runLegend } from './resources.ts'
import { problemLines, verdictLines } from './verdict.ts'
import { type DisplayScreen, painted, type WatchedStatus } from './view.ts'

/** The display of `parley status --watch`: lines that fit the screen, the most important ones first. Pure. */
export function statusDisplay(watched: WatchedStatus, screen: DisplayScreen): string[] {
  return linesOf(watched, screen).slice(0, screen.rows)
}

function linesOf(watched: WatchedStatus, screen: DisplayScreen): string[] {
  const { columns } = screen
  if (watched.state === 'read') return readLines(watched, screen)
  if (watched.state === 'unread')
    return [...foldText(`Reading ${watched.path}`, columns), ...footer(QUIT, screen)]
  const problem = databaseProblem(watched.error, { daemon: undefined, since: isoInstant(watched.since) })
  const verdict = problemVerdict(problem, 0, screen.now)
  return [
    ...verdictLines(verdict, screen),
    ...footer(`parley tries again every few seconds. ${QUIT}`, screen),
  ]
}

const QUIT = 'q or Ctrl-C ends.'

const footer = (text: string, { columns }: DisplayScreen) => foldText(text, columns)

interface DisplaySection {
  lines: readonly string[]
  /** Sections of lower rank get the available lines first. */
  rank: number
}

/** The table of resources keeps at least these lines when other sections need room. */
const LEAST_TABLE_LINES = 10

function readLines(
  { report, overview, at }: Extract<WatchedStatus, { state: 'read' }>,
  screen: DisplayScreen,
): string[] {
  const { rows, columns, now } = screen
  const problems = problemsOf(report, now)
  const verdict = verdictLines(verdictOf(report, problems, { now, minutes: overview.traffic.hour }), screen)
  // The verdict has the first problem. All others get at most half of what it leaves.
  const others = problemLines(problems.slice(1), screen, Math.floor((rows - verdict.length) / 2))
  const head = [...verdict, ...others]
  const resources = resourceTable(report.resources, overview, screen)
  const least = Math.min(resources.lines.length, LEAST_TABLE_LINES)
  const { hour } = overview.traffic
  const foot = sectionsThatFit(
    [
      { rank: 4, lines: runLegend(overview.runs, screen) },
      { rank: 2, lines: trafficChart(hour, screen) },
      { rank: 3, lines: trafficFigures(hour, screen) },
      { rank: 6, lines: limitLines(report.learned_rate, screen) },
      { rank: 5, lines: todayLines(overview, screen) },
      {
        rank: 7,
        lines: [cutToWidth(`Database: ${fileSizesText(report)}: ${safeText(report.database)}`, columns)],
      },
      { rank: 1, lines: footer(`Read ${ageText(isoInstant(at), now)} ago. ${QUIT}`, screen) },
    ],
    rows - head.length - least,
  )
  return withBlanks([head, resourceLines(resources, screen, rows - head.length - foot.length), foot], rows)
}

/** The lines of the sections that fit the room, in the given order. */
function sectionsThatFit(sections: readonly DisplaySection[], room: number): string[] {
  let left = room
  const chosen = new Set<DisplaySection>()
  for (const section of [...sections].sort((one, other) => one.rank - other.rank)) {
    if (section.lines.length > left) continue
    left -= section.lines.length
    chosen.add(section)
  }
  return sections.filter(section => chosen.has(section)).flatMap(({ lines }) => lines)
}

/** A blank line between blocks where there is room for it. */
function withBlanks(blocks: readonly (readonly string[])[], rows: number): string[] {
  const full = blocks.filter(block => block.length > 0)
  const spare = rows - full.flat().length
  return full.flatMap((block, index) => (index > 0 && index <= spare ? ['', ...block] : block))
}

/** What the lines of the chart begin with. The chart has a character for each minute. */
const LABEL = 'Requests/min '
const REFUSALS_LABEL = 'refused/failed '

/** The requests of each of the last minutes, and below them the minutes with refusals or failures, if any. */
function trafficChart(hour: readonly TrafficSpan[], screen: DisplayScreen): string[] {
  const width = REFUSALS_LABEL.length
  const minutes = hour.slice(-Math.max(1, screen.columns - width))
  const bars = sparkline(minutes.map(span => (span.minutes === 0 ? undefined : span.requests)))
  const refusals = minutes.map(({ throttled, errors }) => (throttled + errors > 0 ? 'x' : ' ')).join('')
  const chart = cutToWidth(`${LABEL.padEnd(width)}${bars}`, screen.columns)
  if (refusals.trim() === '') return [chart]
  const marks = cutToWidth(`${REFUSALS_LABEL}${refusals}`.trimEnd(), screen.columns)
  return [chart, painted('yellow', marks, screen)]
}

function trafficFigures(hour: readonly TrafficSpan[], { columns }: DisplayScreen): string[] {
  const most = Math.max(0, ...hour.map(({ requests }) => requests))
  const busiest = most === 0 ? '' : `; at most ${wholeNumber(most)} in a minute`
  return foldText(`Last hour: ${trafficSummary(hour)}${busiest}`, columns)
}

function limitLines(rate: RateReport | null, { columns }: DisplayScreen): string[] {
  return foldText(limitSentence(rate), columns)
}

function todayLines({ today }: Pick<Overview, 'today'>, { columns }: DisplayScreen): string[] {
  if (today.length === 0) return foldText(NOTHING_WRITTEN, columns)
  const sum = (figure: 'rows_new' | 'rows_changed' | 'rows_deleted') =>
    wholeNumber(today.reduce((all, day) => all + day[figure], 0))
  const text = `Today (UTC): ${sum('rows_new')} rows new, ${sum('rows_changed')} changed, ${sum('rows_deleted')} deleted`
  return foldText(text, columns)
}

const BLOCKS = '▁▂▃▄▅▆▇█'

/** One character for each value: a blank for undefined, a dot for 0, else a block relative to the largest value. Pure. */
function sparkline(values: readonly (number | undefined)[]): string {
  const most = Math.max(1, ...values.map(value => value ?? 0))
  return values.map(value => character(value, most)).join('')
}

function character(value: number | undefined, most: number): string {
  if (value === undefined) return ' '
  return value === 0 ? '.' : BLOCKS.charAt(Math.ceil((value / most) * BLOCKS.length) - 1)
}
