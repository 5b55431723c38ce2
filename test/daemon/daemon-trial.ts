import { existsSync } from 'node:fs'
import type { ResourceName } from '../../src/declare/resource-names.ts'
import type { SimulatorOptions } from '../../src/simulator/server.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import type { Sqlite } from '../../src/store/database/sqlite-types.ts'
import { compareWarehouse, type Difference } from '../support/compare.ts'
import { type ExpectedOptions, expectedWarehouse } from '../support/expected.ts'
import type { Ended, ParleyProcess } from '../support/parley-process.ts'
import { type KillPoint, killAt, startTrial, stopKilling, TINY, type Trial } from '../support/trial.ts'
import { readTruth } from '../support/truth.ts'
import { until } from '../support/until.ts'
import { shiftedClock } from './shifted-clock.ts'

/** A trial with a daemon that can be started, killed and started again on the same warehouse. */
export interface DaemonTrial extends Trial {
  /** Starts the daemon when none runs. */
  go(env?: Readonly<Record<string, string>>): ParleyProcess
  /** Ends it with SIGTERM. */
  end(): Promise<Ended>
  /** Ends it with SIGKILL: now, or at a coming request or answer. */
  kill(point?: KillPoint): Promise<void>
  /** Ends it with SIGKILL just before the n-th request of a kind is passed on. */
  killBefore(number: number, isOfKind: (path: string) => boolean): Promise<void>
  /** The unexpected end of the daemon; undefined while it runs. */
  fallen(): Ended | undefined
  /** Resolves when it has made this many more requests, or has ended unexpectedly. */
  requests(count: number): Promise<void>
  /** Waits until the warehouse equals what the simulator publishes now; returns the remaining differences. */
  convergence(options?: ConvergenceOptions): Promise<Difference[]>
  /** Waits until every list with an interval was read again. */
  audit(): Promise<void>
  /** Waits until everything was read that was due at the call, for use after a leap over every interval. */
  caughtUp(): Promise<void>
  /** Moves the clocks of service and daemon forward; the daemon is suspended meanwhile, as on a sleeping machine. */
  leap(ms: number): Promise<void>
  /** Sets the error of the daemon's machine clock, in addition to all leaps, for this daemon and later ones. */
  setClock(offMs: number): void
  /** Waits until only the newest ends are read. Only for polls far shorter than the intervals. */
  quiet(): Promise<void>
  /** Waits until the row of a resource in `sync_status` matches; returns the last row. */
  state(resource: ResourceName, isIt: (row: Row) => boolean): Promise<Row>
  /** No rows while there is no warehouse. */
  rows(sql: string, ...values: string[]): Row[]
  /** By the simulator's clock, which may be months apart from this machine's; in ms. */
  serverNow(): number
  /** By the daemon's clock, in ms. */
  localNow(): number
  /** The length of a week in the daemon's intervals. */
  weekMs: number
}

export interface ConvergenceOptions extends ExpectedOptions {
  /** Differences to ignore. */
  besides?: RegExp
  /** The longest time without a change, in ms. */
  patienceMs?: number
}

export type Row = Record<string, unknown>

/** Clocks of the service: months behind this machine's, equal, or years ahead. */
export const CLOCKS = ['2026-06-30T12:00:00Z', 'real', '2031-03-01T00:30:00Z'] as const

export const WEEK_MS = 7 * 86_400_000

/** The values of `sync.interval_scale` in trials. */
export const SCALES = {
  /** A week is three seconds; intervals shorter than two days are a second. */
  compressed: 3000 / WEEK_MS,
  /** A week is two minutes, a day 17 s, and intervals shorter than an hour and a half are a second. */
  apart: 0.0002,
  /** Real intervals; time passes by leaps. */
  real: 1,
} as const

const ENV = {
  PARLEY_HTTP_LISTEN: 'off',
  PARLEY_SYNC_POLL_SECONDS: '1',
  PARLEY_LOG_LEVEL: 'warn',
  PARLEY_API_TIMEOUT_SECONDS: '3',
  PARLEY_API_MAX_RESPONSE_BYTES: '2MiB',
}

export async function startDaemonTrial(
  options: SimulatorOptions = {},
  env: Readonly<Record<string, string>> = {},
  scale: number = SCALES.compressed,
): Promise<DaemonTrial> {
  const scaled = { PARLEY_SYNC_INTERVAL_SCALE: String(scale) }
  const clock = shiftedClock()
  const usual = { ...ENV, ...clock.env, ...scaled }
  const trial = await startTrial({ ...TINY, now: 'real', ...options }, { ...usual, ...env })
  const weekMs = scale * WEEK_MS
  const { now = 'real' } = options
  const aheadMs = now === 'real' ? 0 : Date.parse(now) - Date.now()
  let leaptMs = 0
  let offMs = 0
  let requestsBefore = 0
  let running: ParleyProcess | undefined
  let ended: Ended | undefined
  let isOver = false

  /** From now on its end is expected. */
  const letGo = (): ParleyProcess => {
    const parley = running
    if (!parley) throw new Error('no daemon runs')
    running = undefined
    return parley
  }

  const killWhen = async (arm: (parley: ParleyProcess) => void): Promise<void> => {
    const parley = letGo()
    let isDead = false
    void parley.ended.then(() => {
      isDead = true
    })
    arm(parley)
    await until(() => isDead, isTrue, { moves: () => trial.tap.requests.length })
    stopKilling(trial)
    // While it waits, its next request may be a long time away.
    parley.kill('SIGKILL')
    await parley.ended
  }

  const serverNow = () => Date.now() + aheadMs + leaptMs

  const rows = (sql: string, ...values: string[]): Row[] => {
    if (!existsSync(trial.database)) return []
    const db = openSqlite(trial.database, { readonly: true })
    try {
      return isMade(db) ? (db.prepare(sql).all(...values) as Row[]) : []
    } finally {
      db.close()
    }
  }

  /**
   * Waits for every list, and for the single reads that fall due within this time after the call. Reads that are noted
   * later are not waited for: as long as they came and went, a wait for another that never comes would not give up.
   */
  const readSince = async ({ toleranceMs, withinMs }: { toleranceMs: number; withinMs: number }) => {
    const begun = new Date(serverNow() - toleranceMs).toISOString()
    const due = new Date(Date.now() + leaptMs + offMs + withinMs).toISOString()
    const nameOf = ({ feed, scope, key }: Row) => `${feed} ${scope} ${key}`
    const look = () => rows(NOT_READ_SINCE, begun, due)
    const first = new Set(look().map(nameOf))
    const left = await until(
      () => look().filter(row => row['isList'] === 1 || first.has(nameOf(row))),
      some => some.length === 0 || ended !== undefined,
    )
    if (left.length > 0) throw new Error(`not read again: ${JSON.stringify(left.slice(0, 5))}`)
  }

  return {
    ...trial,
    go(more) {
      if (isOver) throw new Error('the trial is over')
      if (running) return running
      const parley = trial.startDaemon(more)
      requestsBefore = trial.tap.requests.length
      running = parley
      void parley.ended.then(how => {
        if (running === parley) ended = how
      })
      return parley
    },
    end: async () => {
      const parley = letGo()
      parley.kill('SIGTERM')
      return parley.ended
    },
    kill: point => killWhen(parley => (point ? killAt(trial, parley, point) : parley.kill('SIGKILL'))),
    killBefore: (number, isOfKind) =>
      killWhen(parley => {
        let left = number
        trial.tap.onRequest = () => {
          if (isOfKind(trial.tap.requests.at(-1) ?? '')) left -= 1
          if (left === 0) parley.kill('SIGKILL')
        }
      }),
    fallen: () => ended,
    async requests(count) {
      const from = trial.tap.requests.length
      await until(
        () => trial.tap.requests.length - from,
        made => made >= count || ended !== undefined,
      )
    },
    async convergence({ besides, patienceMs, ...expectedOptions } = {}) {
      const expected = expectedWarehouse(await readTruth(trial.simulator), expectedOptions)
      const look = () => compare(trial, expected, besides)
      return until(
        () => (ended ? [`the daemon has ended: ${JSON.stringify(ended)}`] : look()),
        differences => differences.length === 0 || ended !== undefined,
        patienceMs === undefined ? {} : { patienceMs },
      )
    },
    audit: () => readSince({ toleranceMs: 0, withinMs: weekMs }),
    caughtUp: () => readSince({ toleranceMs: DATE_MS, withinMs: 0 }),
    async leap(ms) {
      // Before its first request it may not yet listen for the signal of a clock change.
      await until(() => running === undefined || trial.tap.requests.length > requestsBefore, isTrue)
      const pid = running?.pid
      if (pid !== undefined) process.kill(pid, 'SIGSTOP')
      leaptMs += ms
      await trial.simulator.passTime(ms)
      clock.set(leaptMs + offMs, pid)
      if (pid !== undefined) process.kill(pid, 'SIGCONT')
    },
    setClock(ms) {
      offMs = ms
      clock.set(leaptMs + offMs, running?.pid)
    },
    async quiet() {
      const from = trial.tap.requests.length
      await until(
        () => trial.tap.requests.length - from,
        made =>
          ended !== undefined ||
          (made >= QUIET_POLLS && trial.tap.requests.slice(-QUIET_POLLS).every(isPoll)),
      )
    },
    async state(resource, isIt) {
      const look = () => rows('SELECT * FROM sync_status WHERE resource = ?', resource)[0] ?? {}
      return until(look, seen => isIt(seen) || ended !== undefined)
    },
    rows,
    serverNow,
    localNow: () => Date.now() + leaptMs + offMs,
    weekMs,
    close: async () => {
      isOver = true
      if (running) await killWhen(parley => parley.kill('SIGKILL'))
      await trial.close()
    },
  }
}

const isMade = (db: Sqlite): boolean =>
  db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'sync_status'").get() !== undefined

/** The largest error of an instant from a `Date` header, which has whole seconds. */
const DATE_MS = 2000

/** Requests for several polls of both timelines. */
const QUIET_POLLS = 8

/** Whether a request is for the newest end of a timeline. */
function isPoll(path: string): boolean {
  const { pathname, searchParams } = new URL(path, 'http://localhost')
  const isTimeline = pathname === '/v2/activities' || pathname === '/v2/messages'
  return isTimeline && !['cursor', 'ids', 'occurred_to', 'received_to'].some(name => searchParams.has(name))
}

const isTrue = (value: boolean): boolean => value

/** Lists that were not read again, and single reads that are still due within an interval. */
const NOT_READ_SINCE = `
  SELECT feed, scope, from_at || '' AS key, listed_at AS at, 1 AS isList FROM sync_segments
  WHERE NOT closed AND unavailable_since IS NULL AND (listed_at IS NULL OR listed_at <= ?)
  UNION ALL
  SELECT feed, scope, key, due_at, 0 FROM sync_tasks
  WHERE due_at <= ? AND feed NOT LIKE '%.unlisted'`

/** A missing or unfinished file counts as a difference too. */
function compare(
  { database }: Trial,
  expected: ReturnType<typeof expectedWarehouse>,
  besides: RegExp | undefined,
): Difference[] {
  try {
    return compareWarehouse(database, expected, besides)
  } catch (error) {
    return [String(error)]
  }
}
