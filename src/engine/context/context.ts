import { type Clock, isoInstant } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import type { Store } from '../../store/store.ts'
import type { Rounds } from '../../store/sync/rounds.ts'
import { createParsing, type Parsing } from '../parse/parsers.ts'
import { createRunRecords, type RunRecords } from './counts-and-failures.ts'
import { createDemandedLists, type DemandedLists } from './demanded-lists.ts'
import type { EngineOptions } from './engine-options.ts'
import type { FeedBackoffs } from './feed-waits.ts'
import { scaled } from './intervals.ts'
import { createMissedRows, type MissedRows } from './missed-rows.ts'
import type { Schedule } from './schedule.ts'
import { createServerClock, type ServerClock } from './server-clock.ts'
import { createUrgent, type Urgent } from './urgent-keys.ts'

/** What the sync modes share. A function that needs only some of these parts names them with `Pick`. */
export interface EngineContext {
  store: Store
  clock: Clock
  log: Log
  options: EngineOptions
  /** What is due, and when. */
  schedule: Schedule
  /** Which feeds wait after a failure. */
  backoffs: FeedBackoffs
  /** The generation of passes of each resource. */
  rounds: Rounds
  /** The counts and failures of each resource's run. */
  runs: RunRecords
  parsing: Parsing
  missedRows: MissedRows
  server: ServerClock
  demandedLists: DemandedLists
  /** The resources that were last logged as not read on schedule (due/lateness.ts). */
  late: Set<ResourceName>
  urgent: Urgent
  /** True when reads that depend on the resource need not wait for it. */
  isFinished(resource: ResourceName): boolean
  now(): string
  /** The instant `ms` milliseconds from now, with `ms` scaled by `intervalScale`. */
  after(ms: number): string
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

export function createContext(deps: ContextDeps): EngineContext {
  const { store, clock, log, options, backoffs, isFinished } = deps
  const now = () => isoInstant(clock.now())
  const context: EngineContext = {
    store,
    clock,
    log,
    options,
    backoffs,
    isFinished,
    now,
    get schedule() {
      return schedule
    },
    rounds: store.rounds,
    runs: createRunRecords({ store, log, now }),
    parsing: createParsing({ store, log, now }),
    missedRows: createMissedRows(clock, options),
    server: createServerClock(clock, log),
    demandedLists: createDemandedLists(store.freshness),
    late: new Set<ResourceName>(),
    urgent: createUrgent(),
    after: ms => isoInstant(clock.now() + scaled(ms, options)),
  }
  const schedule = deps.schedule(context)
  return context
}
