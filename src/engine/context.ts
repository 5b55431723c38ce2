import { tableNamed } from '../catalog/catalog.ts'
import type { ResourceName } from '../catalog/resource.ts'
import { type Clock, isoInstant } from '../clock.ts'
import type { ParleyError } from '../errors.ts'
import { safeText } from '../harmless.ts'
import type { Log } from '../log.ts'
import type { Store } from '../store/store.ts'
import { META } from '../store/sync/meta.ts'
import type { RunCounts } from '../store/sync/runs.ts'
import { createMissedRows, type MissedRows } from './deletions/missed-rows.ts'
import type { FeedName } from './feeds.ts'
import type { EngineOptions } from './options.ts'
import { createDriftLog } from './parse/drift.ts'
import { compileParser, type ItemParser } from './parse/parse.ts'
import type { ParseReport } from './parse/report.ts'
import type { FeedBackoffs } from './schedule/feed-backoff.ts'
import { scaled } from './schedule/intervals.ts'
import type { Schedule } from './schedule/schedule.ts'
import { createFailureLog, type FailureLines } from './scheduler/failure-log.ts'
import { createUrgent, type Urgent } from './scheduler/urgent.ts'
import { createServerClock, type ServerClock } from './server-clock.ts'

/** What the sync modes share: the store, what falls due, what cannot go on, and what each resource's run has done. */
export interface EngineContext {
  store: Store
  clock: Clock
  log: Log
  options: EngineOptions
  schedule: Schedule
  backoffs: FeedBackoffs
  missedRows: MissedRows
  server: ServerClock
  /** The number of the round that a resource is in. */
  round(resource: ResourceName): number
  /** True in a round in which every list is read once more to confirm what seems to be gone. */
  isConfirming(resource: ResourceName): boolean
  /** Opens a resource's next round. */
  beginRound(resource: ResourceName, kind: RoundKind, options?: RoundOptions): void
  /** False until the resource was complete once. */
  wasComplete(resource: ResourceName): boolean
  /** True when no feed of the resource has anything to do now. */
  isFinished(resource: ResourceName): boolean
  counts(resource: ResourceName): RunCounts
  /** Forgets what the last run of a resource counted and met. */
  beginRun(resource: ResourceName): void
  parser(table: string): ItemParser
  /** Where a parser tells of drift and rejects; `scope` is the list or record that was read. */
  report(feed: FeedName, scope: string): ParseReport
  /** A part of the feed could not be read. The first reason of a run is the one that is shown. */
  fail(feed: FeedName, error: ParleyError, options?: FailOptions): void
  /** The feed, or one scope of it, cannot go on for now. */
  backOff(feed: FeedName, error: ParleyError, scope?: string): void
  /** What the resource's run could not read, and has not read since. */
  failure(resource: ResourceName): ParleyError | undefined
  /** True when the resource's run has since read everything that it could not read at first. */
  isMadeGood(resource: ResourceName): boolean
  /** This workspace does not offer the feed, or one scope of it. */
  markUnavailable(feed: FeedName, reason: string, options?: { scope: string; wasOffered: boolean }): void
  unavailability(resource: ResourceName): string | undefined
  /** Lists that are wanted at once, whenever they would fall due. */
  demandedLists: Set<string>
  urgent: Urgent
  now(): string
  /** An instant that lies so far ahead, with intervals scaled by the owner. */
  after(ms: number): string
}

export type RoundKind =
  /** A backfill's, which a later one goes on with when it was interrupted. */
  | 'resumable'
  /** The daemon's, in which lists fall due by time. */
  | 'timed'

export interface RoundOptions {
  /** The instant at which several resources begin theirs; default now. */
  at?: string
  /** Every list is read once more, to confirm what the mass-deletion guard held back. */
  confirming?: boolean
}

export interface FailOptions {
  lines?: FailureLines
  /** Whether what failed is still unread; where it is not given, it is so until the run ends. */
  isUnread?: () => boolean
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

/** What a resource's run has done and met so far. */
interface RunRecord {
  counts: RunCounts
  /** In the order in which they happened. */
  failures: readonly Failure[]
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
      record.failures = [...record.failures, { error, isUnread }]
      store.state.failing(resource, error.message, now())
      failureLog.failed({ resource, feed }, error, lines)
    },
    failure,
    isMadeGood: (resource: ResourceName) => run(resource).hasFailed && failure(resource) === undefined,
    unavailability: backoffs.reason,
    markUnavailable({ resource, feed }: FeedName, why: string, { scope = '', wasOffered = false } = {}) {
      const reason = safeText(why)
      if (backoffs.reason(resource) === undefined) {
        const isNoted = store.state.get(resource).reason === reason
        const say = isNoted ? log.debug : log.info
        say('This workspace does not offer a resource', { resource, reason })
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
    backOff(feed, error, scope = '') {
      backoffs.failed(feed.feed, scope)
      // Due again when the backoff is over, also where it was only taken to be due: until then it stays failing.
      if (scope === '') base.demandedLists.add(feed.feed)
      context.fail(feed, error, { isUnread: () => backoffs.hasFailed(feed.feed, scope) })
    },
  }
  const schedule = deps.schedule(context)
  return context
}

/** Numbers of rounds, which are asked for far more often than they change. */
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
      // Of a list of everything, under the row's own key: by it it is found when the row is purged.
      store.rejects.note({ resource, feed, scope: scope === '' ? within : scope, item, reason }, now())
    },
  })
}
