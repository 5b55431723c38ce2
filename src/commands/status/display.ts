import { isoInstant } from '../../base/clock.ts'
import { safeText } from '../../base/safe-text.ts'
import { databaseProblem, problemsOf } from '../../health/problems.ts'
import { problemVerdict, verdictOf } from '../../health/verdict.ts'
import { fileSizesText } from '../../health/wording.ts'
import { cutToWidth } from '../../terminal/text-width.ts'
import { ageText, foldText } from '../../terminal/wording.ts'
import { resourceLines, resourceTable, runLegend } from './resources.ts'
import { limitLines, todayLines, trafficChart, trafficFigures } from './traffic.ts'
import { problemLines, verdictLines } from './verdict.ts'
import type { DisplayScreen, WatchedStatus } from './view.ts'

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
