import { type LoadingProgress, loadedShare } from '../../health/loading.ts'
import type { HealthProblem } from '../../health/problems.ts'
import type { HealthVerdict } from '../../health/verdict.ts'
import { PROBLEM_LABELS } from '../../health/wording.ts'
import { progressBar } from '../../terminal/progress-bar.ts'
import { cutToWidth } from '../../terminal/text-width.ts'
import { ageText, foldText } from '../../terminal/wording.ts'
import { type DisplayScreen, painted } from './view.ts'

/** The verdict's text begins with a word for its kind, so that colour is never the only difference. */
const STYLES = {
  ok: ['bold', 'green'],
  loading: ['bold', 'cyan'],
  wait: ['bold', 'yellow'],
  warn: ['bold', 'yellow'],
  act: ['bold', 'red'],
} as const satisfies Record<HealthVerdict['kind'], readonly string[]>

/** The verdict, what to do, why, and the progress of a first read. A long text takes at most a quarter of the screen. */
export function verdictLines(
  { kind, text, detail, todo, loading }: HealthVerdict,
  screen: DisplayScreen,
): string[] {
  const { columns, rows } = screen
  const most = Math.max(1, Math.floor(rows / 4))
  return [
    ...atMost(foldText(text, columns), most, columns).map(line => painted([...STYLES[kind]], line, screen)),
    ...[todo, detail && `${detail}.`].flatMap(more =>
      more === null ? [] : atMost(foldText(more, columns), most, columns),
    ),
    ...(loading ? [loadingBar(loading, screen)] : []),
  ]
}

const MAX_BAR_WIDTH = 60

function loadingBar(loading: LoadingProgress, screen: DisplayScreen): string {
  const share = loadedShare(loading)
  const percent = `${Math.floor(share * 100)} %`.padStart(5)
  const width = Math.min(MAX_BAR_WIDTH, screen.columns - percent.length - 3)
  if (width < 1) return cutToWidth(percent, screen.columns)
  return `${progressBar(share, width, bar => painted('cyan', bar, screen))} ${percent}`
}

const LINES_OF_A_PROBLEM = 2

/** @param room how many lines there may be */
export function problemLines(
  problems: readonly HealthProblem[],
  screen: DisplayScreen,
  room: number,
): string[] {
  const { columns } = screen
  const blocks = problems.map(problem => problemBlock(problem, screen))
  const all = blocks.flat()
  if (all.length <= room) return all
  let lines: string[] = []
  let shown = 0
  for (const block of blocks) {
    if (lines.length + block.length > room - 1) break
    lines = [...lines, ...block]
    shown += 1
  }
  return [...lines, cutToWidth(`… and ${blocks.length - shown} more problems`, columns)].slice(0, room)
}

function problemBlock({ kind, what, detail, todo, since }: HealthProblem, screen: DisplayScreen): string[] {
  const { columns, now } = screen
  const long = since === null ? '' : `, for ${ageText(since, now)}`
  const why = detail === null ? '' : `: ${detail}`
  const lines = foldText(`${PROBLEM_LABELS[kind]}: ${what}${long}${why}. ${todo}`, Math.max(columns - 2, 1))
  const indented = lines.map((line, index) => cutToWidth(index === 0 ? line : `  ${line}`, columns))
  return atMost(indented, LINES_OF_A_PROBLEM, columns).map(line =>
    painted(kind === 'act' ? 'red' : 'yellow', line, screen),
  )
}

/** An ellipsis ends the last line where others are left out. */
function atMost(lines: readonly string[], most: number, columns: number): string[] {
  if (lines.length <= most) return [...lines]
  return lines
    .slice(0, most)
    .map((line, index) => (index === most - 1 ? cutToWidth(`${line} …`, columns) : line))
}
