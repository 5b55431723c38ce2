import { type Clock, isoInstant } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { ITEM_FEEDS } from '../../catalog/feeds.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import type { StoredItem } from '../../store/rows/write-items.ts'
import type { Store } from '../../store/store.ts'
import type { Rounds } from '../../store/sync/rounds.ts'
import { createParsing, type Parsing } from '../parse/parsers.ts'
import { createRunRecords, type RunRecords } from './counts-and-failures.ts'
import type { EngineOptions } from './engine-options.ts'
import type { FeedWaits } from './feed-waits.ts'
import { scaled } from './intervals.ts'
import type { Lane } from './job.ts'
import { createMissedRows, type MissedRows } from './missed-rows.ts'
import type { Schedule } from './schedule.ts'
import { createServerClock, type ServerClock } from './server-clock.ts'

/** What the sync modes share. A function that needs only some of these parts names them with `Pick`. */
export interface EngineContext {
  store: Store
  clock: Clock
  log: Log
  options: EngineOptions
  /** What is due, and when. */
  schedule: Schedule
  /** Which feeds wait after a failure. */
  backoffs: FeedWaits
  /** The generation of passes of each resource. */
  rounds: Rounds
  /** The counts and failures of each resource's run. */
  runs: RunRecords
  parsing: Parsing
  missedRows: MissedRows
  server: ServerClock
  /** The resources that were last logged as not read on schedule (due/lateness.ts). */
  late: Set<ResourceName>
  /** When this process began to read, or went on after it stood still, in ms of `clock.elapsed()`. */
  awakeSince: number
  /**
   * By resource: until when it does not count as late after an outage, in ms of `clock.elapsed()`; Infinity during the
   * outage.
   */
  excusedUntil: Map<ResourceName, number>
  urgent: Urgent
  /** True when reads that depend on the resource need not wait for it. */
  isFinished(resource: ResourceName): boolean
  now(): string
  /** The due time of a read that may be made in `ms`, scaled by `intervalScale`. */
  after(ms: number): string
}

interface ContextDeps
  extends Pick<EngineContext, 'store' | 'clock' | 'log' | 'options' | 'backoffs' | 'isFinished'> {
  createSchedule(context: EngineContext): Schedule
}

export function createContext({ createSchedule, ...deps }: ContextDeps): EngineContext {
  const { store, clock, log, options } = deps
  const now = () => isoInstant(clock.now())
  const context: EngineContext = {
    ...deps,
    now,
    get schedule() {
      return schedule
    },
    rounds: store.rounds,
    runs: createRunRecords({ store, log, now }),
    parsing: createParsing({ store, log, now }),
    missedRows: createMissedRows(options),
    server: createServerClock(clock, log),
    awakeSince: clock.elapsed(),
    late: new Set<ResourceName>(),
    excusedUntil: new Map<ResourceName, number>(),
    urgent: createUrgent(),
    after: ms => store.dueClock.after(scaled(ms, options)),
  }
  const schedule = createSchedule(context)
  return context
}

/** By table, the feed that reads its rows one by one. */
const READS_ROWS_OF: ReadonlyMap<string, string> = new Map(
  ITEM_FEEDS.flatMap(({ id, feed: { pending } }) => (pending ? [[pending.table, id] as const] : [])),
)

/** Urgent keys per feed. Further keys are read in the usual order. */
const MOST_URGENT = 1000

interface Urgent {
  /** Keys from recent answers of the head lane, by the item feed that reads them. */
  keys: ReadonlyMap<string, Set<string>>
  /** Sets the lane of the answer that `work` applies. */
  inLane<T>(lane: Lane, work: () => T): T
  /** Makes a key urgent if the answer came in the head lane. */
  add(feed: string, key: string): void
  /** Makes a new row urgent for the feed that reads it, under the same condition. */
  addNewRow(table: string, entry: StoredItem): void
}

/**
 * Keys from the newest end are read before all others. They are kept in memory only: each is also in the database as a
 * task or a pending row, so a restart loses only its priority.
 */
function createUrgent(): Urgent {
  const keys = new Map<string, Set<string>>()
  let lane: Lane | undefined
  const addKey = (feed: string, key: string) => {
    const known = keys.get(feed) ?? new Set()
    if (known.size < MOST_URGENT) keys.set(feed, known.add(key))
  }
  return {
    keys,
    inLane(which, work) {
      lane = which
      try {
        return work()
      } finally {
        lane = undefined
      }
    },
    add(feed, key) {
      if (lane === 'head') addKey(feed, key)
    },
    addNewRow(table, { item, written }) {
      const feed = READS_ROWS_OF.get(table)
      if (lane !== 'head' || feed === undefined || written.status !== 'inserted') return
      const [key] = item.cells
      if (typeof key === 'string') addKey(feed, key)
    },
  }
}
