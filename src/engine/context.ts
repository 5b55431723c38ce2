import { tableNamed } from '../catalog/catalog.ts'
import type { ResourceName } from '../catalog/names.ts'
import { type Clock, isoInstant } from '../clock.ts'
import type { ParleyError } from '../errors.ts'
import type { Log } from '../log.ts'
import { safeText } from '../safe-text.ts'
import type { Store } from '../store/store.ts'
import { META } from '../store/sync/meta.ts'
import type { RunCounts } from '../store/sync/runs.ts'
import type { Task } from '../store/sync/tasks.ts'
import { createMissedRows, type MissedRows } from './deletions/missed-rows.ts'
import type { EngineOptions } from './dependencies.ts'
import type { FeedBackoffs } from './due/feed-backoff.ts'
import { scaled } from './due/intervals.ts'
import type { Schedule } from './due/schedule.ts'
import type { FeedName } from './feeds.ts'
import { createDriftLog } from './parse/drift.ts'
import { compileParser, type ItemParser } from './parse/parse.ts'
import type { ParseReport } from './parse/report.ts'
import { createFailureLog, type FailureLines } from './scheduler/failure-log.ts'
import { createUrgent, type Urgent } from './scheduler/urgent.ts'
import { createServerClock, type ServerClock } from './server-clock.ts'

/** What the sync modes share: the store, the schedule, the backoffs, and the counts and failures of each run. */
export interface EngineContext {
  store: Store
  clock: Clock
  log: Log
  options: EngineOptions
  schedule: Schedule
  backoffs: FeedBackoffs
  missedRows: MissedRows
  server: ServerClock
  /** The number of a resource's current round. */
  round(resource: ResourceName): number
  /** True in a round that reads every list once more to confirm suspected deletions. */
  isConfirming(resource: ResourceName): boolean
  /** Opens a resource's next round. */
  beginRound(resource: ResourceName, kind: RoundKind, options?: RoundOptions): void
  /** False until the resource has been complete once. */
  wasComplete(resource: ResourceName): boolean
  /** True when no feed of the resource has anything to do now. */
  isFinished(resource: ResourceName): boolean
  counts(resource: ResourceName): RunCounts
  /** Resets the counts and failures of a resource's run. */
  beginRun(resource: ResourceName): void
  parser(table: string): ItemParser
  /** Receives drift and rejects from a parser; `scope` is the list or record that was read. */
  report(feed: FeedName, scope: string): ParseReport
  /** Reports that a part of the feed could not be read. `sync_status` shows the first reason of a run. */
  fail(feed: FeedName, error: ParleyError, options?: FailOptions): void
  /** Reports that the feed, or a part of it, failed, and makes it wait. */
  backOff(feed: FeedName, error: ParleyError, part?: FailedPart): void
  /** The first failure of the resource's run that is still unread. */
  failure(resource: ResourceName): ParleyError | undefined
  /** True when the resource's run had failures and has since read everything that failed. */
  hasRecovered(resource: ResourceName): boolean
  /** This workspace does not offer the feed, or one scope of it. */
  markUnavailable(feed: FeedName, reason: string, options?: { scope: string; wasOffered: boolean }): void
  unavailability(resource: ResourceName): string | undefined
  /** Lists that are due at once, whatever their interval. */
  demandedLists: Set<string>
  urgent: Urgent
  now(): string
  /** The instant in `ms` milliseconds, scaled by `intervalScale`. */
  after(ms: number): string
}

export type RoundKind =
  /** A backfill's. When it is interrupted, the next backfill continues it. */
  | 'resumable'
  /** The daemon's. Lists fall due by time. */
  | 'timed'

export interface RoundOptions {
  /** A common start of the rounds of several resources; default now. */
  at?: string
  /** Every list is read once more, to confirm deletions that the mass-deletion guard holds back. */
  confirming?: boolean
}

export interface FailOptions {
  lines?: FailureLines
  /** Whether the failed part is still unread. By default it stays unread until the run ends. */
  isUnread?: () => boolean
}

export interface FailedPart {
  scope: string
  /**
   * The tasks of the failed request; none for a list. Something else may finish them first, such as a list that shows
   * their rows, just as a list may lose its scope.
   */
  tasks?: readonly Task[] | undefined
}

export interface ContextDeps {
  store: Store
  clock: Clock
  log: Log
  options: EngineOptions
  backoffs: FeedBackoffs
  schedule(context: EngineContext): Schedule
  isFinished(resource: ResourceName): boolean
}

/** After every instant. */
const NEVER = '~'

/** The counts and failures of a resource's run so far. */
interface RunRecord {
  counts: RunCounts
  /** In the order in which they happened. */
  failures: Failure[]
  hasFailed: boolean
}

interface Failure extends Pick<Required<FailOptions>, 'isUnread'> {
  error: ParleyError
}

export function createContext(deps: ContextDeps): EngineContext {
  const { store, clock, log, options, backoffs } = deps
  const parsers = new Map<string, ItemParser>()
  const runs = new Map<ResourceName, RunRecord>()
  const rounds = createRounds(store)
  const failureLog = createFailureLog(log)
  const server = createServerClock(clock, log)
  const now = () => isoInstant(clock.now())

  const run = (resource: ResourceName): RunRecord => {
    const known = runs.get(resource)
    if (known) return known
    const counts = { requests: 0, throttled: 0, rowsRead: 0, rowsChanged: 0, rowsDeleted: 0 }
    const fresh: RunRecord = { counts, failures: [], hasFailed: false }
    runs.set(resource, fresh)
    return fresh
  }

  const failure = (resource: ResourceName): ParleyError | undefined => {
    const record = run(resource)
    record.failures = record.failures.filter(({ isUnread }) => isUnread())
    return record.failures[0]?.error
  }

  const base = {
    store,
    clock,
    log,
    options,
    backoffs,
    missedRows: createMissedRows(clock, options),
    server,
    isFinished: deps.isFinished,
    now,
    demandedLists: new Set<string>(),
    urgent: createUrgent(),
    round: rounds.number,
    wasComplete: store.state.wasComplete,
    isConfirming: rounds.isConfirming,
    beginRound: (resource: ResourceName, kind: RoundKind, { at = now(), confirming = false } = {}) =>
      rounds.begin(resource, kind, { at, confirming }),
    counts: (resource: ResourceName) => run(resource).counts,
    beginRun: (resource: ResourceName) => {
      if (failure(resource) === undefined) failureLog.recovered(resource)
      runs.delete(resource)
    },
    parser(table: string) {
      const parser = parsers.get(table) ?? compileParser(tableNamed(table))
      parsers.set(table, parser)
      return parser
    },
    report: createReports(store, log, now),
    fail({ resource, feed }: FeedName, error: ParleyError, options: FailOptions = {}) {
      const { lines, isUnread = () => true } = options
      const record = run(resource)
      record.hasFailed = true
      record.failures.push({ error, isUnread })
      store.state.failing(resource, error.message, now())
      failureLog.failed({ resource, feed }, error, lines)
    },
    failure,
    hasRecovered: (resource: ResourceName) => run(resource).hasFailed && failure(resource) === undefined,
    unavailability: backoffs.reason,
    markUnavailable({ resource, feed }: FeedName, why: string, { scope = '', wasOffered = false } = {}) {
      const reason = safeText(why)
      if (backoffs.reason(resource) === undefined) {
        const isNoted = store.state.get(resource).reason === reason
        const say = isNoted ? log.debug : log.info
        say('Resource is unavailable: the workspace does not offer it', { resource, reason })
      }
      backoffs.unavailable(feed, scope, { reason, wasOffered })
    },
    after: (ms: number) => isoInstant(clock.now() + scaled(ms, options)),
  }
  const context: EngineContext = {
    ...base,
    get schedule() {
      return schedule
    },
    backOff(feed, error, { scope, tasks } = { scope: '' }) {
      backoffs.failed(feed.feed, scope)
      // Due as soon as the backoff ends, since the resource stays failing until this feed is read.
      if (scope === '') base.demandedLists.add(feed.feed)
      const isDue = (task: Task) => (store.tasks.find(task)?.dueAt ?? NEVER) <= now()
      const isLeft = () => tasks?.some(isDue) ?? store.segments.of(feed.feed, scope).length > 0
      context.fail(feed, error, { isUnread: () => backoffs.hasFailed(feed.feed, scope) && isLeft() })
    },
  }
  const schedule = deps.schedule(context)
  return context
}

/** Caches the numbers of rounds, which are read far more often than they change. */
function createRounds({ state }: Store) {
  const numbers = new Map<ResourceName, number>()
  const confirming = new Set<ResourceName>()
  const number = (resource: ResourceName): number => {
    const known = numbers.get(resource)
    if (known !== undefined) return known
    const { round, heldRound } = state.get(resource)
    numbers.set(resource, round)
    if (heldRound === round) confirming.add(resource)
    return round
  }
  return {
    number,
    isConfirming(resource: ResourceName): boolean {
      number(resource)
      return confirming.has(resource)
    },
    begin(resource: ResourceName, kind: RoundKind, options: Required<RoundOptions>): void {
      if (options.confirming) confirming.add(resource)
      else confirming.delete(resource)
      numbers.set(resource, state.beginRound(resource, kind, options))
    },
  }
}

function createReports(store: Store, log: Log, now: () => string): EngineContext['report'] {
  const driftOf = createDriftLog({
    log,
    logged: JSON.parse(store.state.meta(META.drift) ?? '[]'),
    note: logged => store.state.setMeta(META.drift, JSON.stringify(logged)),
  })
  return ({ resource, feed }, scope) => ({
    drift: driftOf(resource),
    reject(_table, item, reason, within = '') {
      // A list without scopes uses the row's key, so that purging the row finds its rejects.
      store.rejects.note({ resource, feed, scope: scope === '' ? within : scope, item, reason }, now())
    },
  })
}
