import { availableParallelism } from 'node:os'
import type { ChangeRow, Hint, LimitRow, Limits } from './limits.ts'
import type { Usage } from './measured-process.ts'
import type { Figure } from './report.ts'

const UTILISATION = 0.97
const REFUSED = 0.01
const HALVED_MS = 30_000
const DOUBLED_MS = 120_000

const HINT_NAMES: Readonly<Record<Hint, string>> = {
  'retry-after-seconds': 'seconds',
  'retry-after-date': 'date',
  none: 'none',
}

export function limitTable({ rows }: Limits): string {
  return [
    `| limit | Retry-After | utilisation (≥ ${UTILISATION}) | refused with 429 (≤ ${percent(REFUSED)}) | time to 90 % | let in | an answer took | measured | reached |`,
    '|---|---|---|---|---|---|---|---|---|',
    ...rows.map(row => `| ${limitCells(row).join(' | ')} |`),
  ].join('\n')
}

function limitCells({ limit, hint, steady, ninetyPercentMs }: LimitRow): string[] {
  const name = [limit, HINT_NAMES[hint]]
  const ninety = seconds(ninetyPercentMs)
  if (steady === undefined) return [...name, '', '', ninety, '', '', 'too short', '']
  const { utilisation, refusedShare, accepted, allowed, heldMs, span } = steady
  const isReached = utilisation >= UTILISATION && refusedShare <= REFUSED
  return [
    ...name,
    utilisation.toFixed(3),
    percent(refusedShare),
    ninety,
    `${accepted} of ${allowed.toFixed(0)}`,
    `${heldMs.toFixed(1)} ms`,
    seconds(span.to - span.from),
    isReached ? 'yes' : 'no',
  ]
}

export function limitFigures(measured: Limits): Figure[] {
  return [...measured.changes.flatMap(changeFigures), ...loadFigures(measured)]
}

function changeFigures({ hint, halvedMs, doubledMs }: ChangeRow): Figure[] {
  const found = (what: string, ms: number | undefined, most: number): Figure => ({
    measure: `${what}, Retry-After ${HINT_NAMES[hint]}: ≤ 1 % refused and ≥ 90 % used after`,
    value: seconds(ms),
    wanted: `≤ ${most / 1000} s`,
    reached: ms !== undefined && ms <= most,
  })
  return [
    found('limit halved to 5/s', halvedMs, HALVED_MS),
    found('limit doubled to 10/s', doubledMs, DOUBLED_MS),
  ]
}

/** Figures that show whether every process got enough processor time. */
function loadFigures({ rows, changes, bare, cpu }: Limits): Figure[] {
  const all = [...rows, ...changes]
  const plain = (measure: string, value: string): Figure => ({
    measure,
    value,
    wanted: '',
    reached: undefined,
  })
  const most = (of: (row: LimitRow | ChangeRow) => number) => Math.max(...all.map(of))
  return [
    plain(
      '4 in flight, 100 ms each: utilisation by a client that only sends requests',
      bare ? bare.utilisation.toFixed(3) : 'too short',
    ),
    plain(`CPU of the machine, ${all.length} pairs at the same time`, percent(cpu.mean)),
    plain('CPU of the machine, the busiest 5 s', percent(cpu.highest)),
    plain(
      'timers of the slowest simulator, 99th percentile',
      `${most(row => row.lateMs).toFixed(1)} ms late`,
    ),
    plain('CPU share of the programs, start included', percent(shareOfMachine(all.map(row => row.daemon)))),
    plain(
      'CPU share of the simulators, start included',
      percent(shareOfMachine(all.map(row => row.simulator))),
    ),
    plain(
      'CPU of the busiest program',
      percent(most(({ daemon }) => (daemon.userMs + daemon.systemMs) / daemon.wallMs)),
    ),
    plain(
      'peak memory of the largest program',
      `${(most(({ daemon }) => daemon.peakKiB) / 1024).toFixed(0)} MiB`,
    ),
  ]
}

function shareOfMachine(processes: readonly Usage[]): number {
  const cores = availableParallelism()
  return processes.reduce(
    (sum, { userMs, systemMs, wallMs }) => sum + (userMs + systemMs) / wallMs / cores,
    0,
  )
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`
}

function seconds(ms: number | undefined): string {
  return ms === undefined ? 'never' : `${(ms / 1000).toFixed(1)} s`
}
