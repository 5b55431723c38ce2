import { CATALOG, tableNamed } from '../catalog.ts'
import { type Clock, isoInstant } from '../clock.ts'
import type { ParleyError } from '../errors.ts'
import { harmless } from '../harmless.ts'
import type { Log } from '../log.ts'
import type { Cause, PointCause, ResourceName } from '../resource.ts'
import type { Cell, ParsedItem } from '../row.ts'
import type { RunCounts } from '../store/runs.ts'
import { META } from '../store/state.ts'
import type { Store, StoredItem, WriteOptions } from '../store/store.ts'
import type { Agenda } from './agenda.ts'
import { feedNamed, followPoints } from './changes.ts'
import { createDoubts, type Doubts } from './deletions/doubts.ts'
import { createDriftLog } from './drift.ts'
import { createFailureLog, type FailureLines } from './failure-log.ts'
import type { Holds } from './holds.ts'
import { scaled } from './intervals.ts'
import type { Lane } from './job.ts'
import { compileParser, type ItemParser, type ParseReport } from './parse.ts'
import { createServerClock, type ServerClock } from './server-clock.ts'

/** What the sync modes share: the store, what falls due, what cannot go on, and what each resource's run has done. */
export interface EngineContext {
  store: Store
  clock: Clock
  log: Log
  options: EngineOptions
  agenda: Agenda
  holds: Holds
  doubts: Doubts
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
  /** Stores rows and writes the tasks that they cause; counts them. */
  write(
    feed: FeedName,
    table: string,
    items: readonly ParsedItem[],
    options: WriteOptions,
    causes?: readonly (Cause | PointCause)[],
  ): StoredItem[]
  /** A part of the feed could not be read. The first reason of a run is the one that is shown. */
  fail(feed: FeedName, error: ParleyError, lines?: FailureLines): void
  /** The feed, or one scope of it, cannot go on for now. */
  giveUp(feed: FeedName, error: ParleyError, scope?: string): void
  failure(resource: ResourceName): ParleyError | undefined
  /** This workspace does not offer the feed, or one scope of it. */
  setAside(feed: FeedName, reason: string, options?: { scope: string; wasOffered: boolean }): void
  unavailability(resource: ResourceName): string | undefined
  /** Lists that are wanted at once, whenever they would fall due. */
  wishes: Set<string>
  /** Keys that an answer in the head lane has just told of, by the item feed that reads them. */
  urgent: Map<string, Set<string>>
  /** Has a key read next where the answer that is applied came in the head lane. */
  urge(feed: string, key: string): void
  /** Says in which lane the answers are that are applied within `work`. */
  inLane<T>(lane: Lane, work: () => T): T
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

export interface FeedName {
  resource: ResourceName
  /** `resource.feed` */
  feed: string
}

export interface EngineOptions {
  /** Only what happened since then is asked for. */
  since: string | null
  intervalScale: number
  accessLogEndParameter: string
  words: boolean
}

export interface ContextDeps {
  store: Store
  clock: Clock
  log: Log
  options: EngineOptions
  holds: Holds
  agenda(context: EngineContext): Agenda
  isFinished(resource: ResourceName): boolean
}

/** What a resource's run has done and met so far. */
interface RunRecord {
  counts: RunCounts
  failure?: ParleyError
}

export function createContext(deps: ContextDeps): EngineContext {
  const { store, clock, log, options, holds } = deps
  const parsers = new Map<string, ItemParser>()
  const runs = new Map<ResourceName, RunRecord>()
  const rounds = createRounds(store)
  const urgent = createUrgent()
  const failureLog = createFailureLog(log)
  const server = createServerClock(clock, log)
  const now = () => isoInstant(clock.now())

  const run = (resource: ResourceName): RunRecord => {
    const known = runs.get(resource)
    if (known) return known
    const fresh = { counts: { requests: 0, throttled: 0, rowsRead: 0, rowsChanged: 0, rowsDeleted: 0 } }
    runs.set(resource, fresh)
    return fresh
  }

  const base = {
    store,
    clock,
    log,
    options,
    holds,
    doubts: createDoubts(clock, options),
    server,
    isFinished: deps.isFinished,
    now,
    wishes: new Set<string>(),
    urgent: urgent.keys,
    inLane: urgent.inLane,
    urge: urgent.caused,
    round: rounds.number,
    wasComplete: store.state.wasComplete,
    isConfirming: rounds.isConfirming,
    beginRound: (resource: ResourceName, kind: RoundKind, { at = now(), confirming = false } = {}) =>
      rounds.begin(resource, kind, { at, confirming }),
    counts: (resource: ResourceName) => run(resource).counts,
    beginRun: (resource: ResourceName) => {
      if (runs.get(resource)?.failure === undefined) failureLog.recovered(resource)
      runs.delete(resource)
    },
    parser(table: string) {
      const parser = parsers.get(table) ?? compileParser(tableNamed(table))
      parsers.set(table, parser)
      return parser
    },
    report: createReports(store, log, now),
    fail({ resource, feed }: FeedName, error: ParleyError, lines?: FailureLines) {
      run(resource).failure ??= error
      store.state.failing(resource, error.message, now())
      failureLog.failed({ resource, feed }, error, lines)
    },
    failure: (resource: ResourceName) => run(resource).failure,
    unavailability: holds.reason,
    setAside({ resource, feed }: FeedName, why: string, { scope = '', wasOffered = false } = {}) {
      const reason = harmless(why)
      if (holds.reason(resource) === undefined) {
        const isNoted = store.state.get(resource).reason === reason
        const say = isNoted ? log.debug : log.info
        say('This workspace does not offer a resource', { resource, reason })
      }
      holds.setAside(feed, scope, { reason, wasOffered })
    },
    after: (ms: number) => isoInstant(clock.now() + scaled(ms, options)),
  }
  const context: EngineContext = {
    ...base,
    get agenda() {
      return agenda
    },
    giveUp(feed, error, scope = '') {
      holds.fail(feed.feed, scope)
      // Due again when the hold is over, also where it was only taken to be due: until then it stays failing.
      if (scope === '') base.wishes.add(feed.feed)
      context.fail(feed, error)
    },
    write({ resource }, table, items, writeOptions, causes = []) {
      const stored = store.write(table, items, writeOptions)
      const tally = context.counts(resource)
      tally.rowsRead += items.length
      for (const entry of stored) {
        if (entry.written.status === 'unchanged') continue
        tally.rowsChanged += 1
        urgent.stored(table, entry)
        if (entry.written.isExtraAlone) continue
        for (const cause of causes) {
          if ('points' in cause) followPoints(context, cause, table, entry)
          else followCause(store, cause, table, entry, now(), urgent.caused)
        }
      }
      return stored
    },
  }
  const agenda = deps.agenda(context)
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
      // Of a list of everything, under the row's own key: by it it is found when the row is erased.
      store.rejects.note({ resource, feed, scope: scope === '' ? within : scope, item, reason }, now())
    },
  })
}

/** Feeds that read rows of a table one by one, by that table's name. */
const READS_ROWS_OF: ReadonlyMap<string, string> = new Map(
  CATALOG.flatMap(({ name, feeds }) =>
    Object.entries(feeds).flatMap(([feed, declared]) =>
      declared.mode === 'item' && declared.pending
        ? [[declared.pending.table, `${name}.${feed}`] as const]
        : [],
    ),
  ),
)

/** Of one feed; beyond it they have no turn before the others. */
const MOST_URGENT = 1000

/**
 * What the newest end has just told of is read before all that waits. Kept in memory: each key also stands in the
 * database as a task or as a pending row, so that a restart loses only its turn.
 */
function createUrgent() {
  const keys = new Map<string, Set<string>>()
  let lane: Lane | undefined
  const add = (feed: string, key: string) => {
    const known = keys.get(feed) ?? new Set()
    if (known.size < MOST_URGENT) keys.set(feed, known.add(key))
  }
  return {
    keys,
    inLane<T>(which: Lane, work: () => T): T {
      lane = which
      try {
        return work()
      } finally {
        lane = undefined
      }
    },
    caused(feed: string, key: string) {
      if (lane === 'head') add(feed, key)
    },
    stored(table: string, { item, written }: StoredItem) {
      const feed = READS_ROWS_OF.get(table)
      if (lane !== 'head' || feed === undefined || written.status !== 'inserted') return
      const [key] = item.cells
      if (typeof key === 'string') add(feed, key)
    },
  }
}

function isDoubted({ rowState, suspicions }: Store, feed: string, key: string): boolean {
  const row = { table: feedNamed(feed).feed.table, scope: '', key }
  const state = rowState(row)
  return state === 'withheld' || state === 'deleted' || suspicions.find(row) !== undefined
}

function followCause(
  store: Store,
  cause: Cause,
  table: string,
  { item, written }: StoredItem,
  now: string,
  caused: (feed: string, key: string) => void,
): void {
  if (written.status === 'unchanged' || !cause.on.includes(written.status)) return
  const columns = Object.entries(tableNamed(table).columns)
  const cell = (name: string): Cell => {
    const index = columns.findIndex(([column]) => column === name)
    const ours = columns[index]?.[1].source.from === 'parley'
    return item.cells[index] ?? (ours ? written.before?.[index] : null) ?? null
  }
  const met = Object.entries(cause.when ?? {}).every(([name, values]) => values.includes(String(cell(name))))
  const key = cell(cause.key)
  if (!met || typeof key !== 'string' || key === '') return
  const sortAt = cause.sort === undefined ? null : (cell(cause.sort) as string | null)
  // A row that is suspected, withheld or deleted is shown again by what names it.
  const how = cause.how === 'add' && isDoubted(store, cause.feed, key) ? 'demand' : cause.how
  store.tasks[how]({ feed: cause.feed, key, sortAt, dueAt: now })
  caused(cause.feed, key)
}
