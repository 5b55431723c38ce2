import type { Client, Sent } from '../api/client.ts'
import type { Governor } from '../api/governor/governor.ts'
import { CATALOG } from '../catalog/catalog.ts'
import type { Resource, ResourceName } from '../catalog/resource.ts'
import { type Clock, isoInstant } from '../clock.ts'
import { StopError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Store } from '../store/store.ts'
import { createContext, type EngineContext } from './context.ts'
import { applyDeletions } from './deletions/apply.ts'
import type { EngineOptions } from './options.ts'
import { processRequests } from './requests.ts'
import { byTime } from './schedule/by-time.ts'
import { type Backlog, dueNow, nextDueMs, noteNextDue } from './schedule/due.ts'
import { growingBackoff } from './schedule/feed-backoff.ts'
import { DAY, HOUR, MINUTE, scaled } from './schedule/intervals.ts'
import { noteLateness } from './schedule/lateness.ts'
import { isFullyRead, noteRecovery, type ResourceOutcome, recordOutcome } from './schedule/rounds.ts'
import type { Job, Lane, Source } from './scheduler/job.ts'
import { noProgress, type SchedulerProgress } from './scheduler/progress.ts'
import { type AccessBefore, createScheduler, type Scheduler } from './scheduler/scheduler.ts'
import { createSources } from './sources.ts'

/**
 * One session of the daemon: everything from the settings to the scheduler is built once and runs until it is stopped
 * or fails. All its state in memory can be restored from the database, so the next session or process continues where
 * this one stopped.
 */
export interface Session {
  /** Resolves when `stopNew` is aborted and the requests in flight have ended. @throws the StopError that ended it */
  run(): Promise<void>
  progress(): SchedulerProgress
  /** The server's clock, in ms since the epoch. */
  serverNow(): number
  /** The same; undefined before the first answer. */
  serverTime(): number | undefined
  backlog(): Backlog
  /** Puts these keys before all other reads and makes these lists due at once. */
  readFirst(reads: UrgentReads): Promise<void>
}

export interface UrgentReads {
  /** `resource.feed` */
  lists: readonly string[]
  keys: readonly { feed: string; scope?: string; key: string }[]
}

export interface SessionDeps {
  store: Store
  client: Client
  governor: Governor
  clock: Clock
  log: Log
  random: () => number
  options: EngineOptions
  /** In catalogue order, parents included. */
  resources: readonly ResourceName[]
  pollMs: number
  /** Whether the API has answered before, and whether the last session ended because access was lost. */
  access: Omit<AccessBefore, 'againAfterMs'>
  /** Saves the learned limits of the API. Called inside the transaction of every answer. */
  saveLearned?: () => void
  stopNew: AbortSignal
  cancel: AbortSignal
  observer: SessionObserver
}

/** Receives requests and runs, for metrics. */
export interface SessionObserver {
  onRequest(request: { route: string; lane: Lane; status: SentStatus; durationMs: number }): void
  onRunEnd(run: { resource: ResourceName; lane: Lane; outcome: string }): void
}

/** The HTTP status, or the reason why there is none. */
export type SentStatus = number | 'timeout' | 'transport'

/** The run of a resource: from its first request until no more of it is due. */
interface OpenRun {
  id: number
  lane: Lane
  /** By `elapsed`. */
  began: number
  /** When deletions were last applied, by `elapsed`. */
  settledAt: number
}

/** A run that takes longer applies deletions in between. */
const LATE_MS = HOUR

/** Access counts as lost when every list is refused once more after this time. */
const ACCESS_AGAIN_MS = 5 * MINUTE

/** An unavailable feed is requested again after this time. */
const UNAVAILABLE_MS = 0.75 * DAY

/** The first wait of an unavailable feed that was available before. */
const REFUSED_MS = MINUTE

export function createSession(deps: SessionDeps): Session {
  const { store, clock, log, random, options, pollMs, observer } = deps
  const chosen = CATALOG.filter(({ name }) => deps.resources.includes(name))
  const sources = new Map<ResourceName, Source[]>()
  const openRuns = new Map<ResourceName, OpenRun>()
  const backoffs = growingBackoff({
    elapsed: clock.elapsed,
    random,
    unavailableMs: scaled(UNAVAILABLE_MS, options),
    refusedMs: scaled(REFUSED_MS, options),
  })
  const isIdle = (name: ResourceName): boolean => sourcesOf(name).every(source => source.finished())
  const context = createContext({
    store,
    clock,
    log,
    options,
    backoffs,
    schedule: made => byTime(made, { pollMs }),
    // Once a parent has been complete, its rows are stored, so its children need not wait until it is idle.
    isFinished: name => context.wasComplete(name) || isIdle(name),
  })
  let scheduler: Scheduler | undefined

  const openRun = ({ resource }: Job, lane: Lane) => {
    if (openRuns.has(resource)) return
    openRuns.set(resource, {
      id: store.runs.begin(resource, lane, context.now()),
      lane,
      began: clock.elapsed(),
      settledAt: clock.elapsed(),
    })
  }

  const afterJob = ({ resource }: Job) => {
    const run = openRuns.get(resource)
    if (!run) return
    const work = isIdle(resource) ? () => endIdleRun(resource) : lateSettlement(resource, run)
    if (work) void store.transaction(work).catch(error => scheduler?.stop(error))
  }

  const sourcesOf = (name: ResourceName): Source[] => sources.get(name) ?? []

  /** Runs when a session begins and ends, since the stored due times may be outdated by then. */
  const noteAllDue = () => {
    const known = chosen.map(resource => {
      const { name } = resource
      return { resource, sources: sourcesOf(name), finished: isIdle(name) }
    })
    noteNextDue(context, known, deps)
  }

  /** Under a tight limit a run may take hours. Deletions do not wait for its end. */
  const lateSettlement = (name: ResourceName, run: OpenRun): (() => void) | undefined => {
    if (clock.elapsed() - run.settledAt < scaled(LATE_MS, options)) return undefined
    run.settledAt = clock.elapsed()
    return () => {
      if (isTrusted()) applyDeletions(context, name, false)
    }
  }

  /** While the API refuses the key everywhere, a refusal does not show that a row is gone. */
  const isTrusted = () => scheduler?.progress.turnedAwayInARow === 0

  /** When this makes the resource complete, idle children that waited for it are complete too. */
  const recordOutcomes = (resource: Resource): ResourceOutcome => {
    const { name } = resource
    const wasComplete = context.wasComplete(name)
    const outcome = recordOutcome(context, resource, isTrusted())
    if (wasComplete || !context.wasComplete(name)) return outcome
    for (const other of chosen) {
      const isWaiting = other.parents.includes(name) && !openRuns.has(other.name) && isIdle(other.name)
      if (isWaiting) recordOutcomes(other)
    }
    return outcome
  }

  const endIdleRun = (name: ResourceName) => {
    const run = openRuns.get(name)
    const resource = chosen.find(candidate => candidate.name === name)
    if (!run || !resource || !isIdle(name)) return
    const outcome = recordOutcomes(resource)
    const { rowsChanged, ...counts } = context.counts(name)
    const error = outcome === 'unavailable' ? context.unavailability(name) : context.failure(name)?.message
    store.runs.end(run.id, {
      outcome,
      counts: { ...counts, rowsChanged },
      now: context.now(),
      ...(error === undefined ? {} : { error }),
    })
    store.state.nextRun(name, isoInstant(clock.now() + nextDueMs(context, resource, sourcesOf(name))))
    observer.onRunEnd({ resource: name, lane: run.lane, outcome })
    log.debug('Run ended', {
      resource: name,
      lane: run.lane,
      outcome,
      requests: counts.requests,
      rows: counts.rowsRead,
      changed: rowsChanged,
      deleted: counts.rowsDeleted,
      duration_ms: Math.round(clock.elapsed() - run.began),
    })
    openRuns.delete(name)
    context.beginRun(name)
    const dependents = rowsChanged > 0 ? chosen.filter(other => dependsOn(other, name)) : []
    for (const idle of [resource, ...dependents]) {
      for (const source of sourcesOf(idle.name)) source.replan?.()
    }
  }

  /**
   * Runs and rounds usually end with a job. When there is nothing to read, no job comes: without this, the run would
   * stay open and the resource would never be complete.
   */
  const endWithoutJob = (resource: Resource) => {
    const { name, parents } = resource
    const isReady = !context.wasComplete(name) && parents.every(context.wasComplete) && isIdle(name)
    if (openRuns.has(name)) endIdleRun(name)
    else if (isReady) recordOutcomes(resource)
  }

  /** A long run may complete its round, or recover from failures, before it ends. */
  const recordOpenRun = (resource: Resource) => {
    if (!openRuns.has(resource.name)) return
    if (isFullyRead(context, resource)) recordOutcomes(resource)
    else noteRecovery(context, resource)
  }

  /** Checks at intervals whether every list is read on schedule, even while there are no jobs. */
  const watchSchedule = async (until: AbortSignal) => {
    for (;;) {
      await clock.sleep(Math.max(scaled(LOOK_MS, options), LEAST_LOOK_MS), until)
      if (until.aborted) return
      await store.transaction(() => {
        for (const resource of chosen) {
          endWithoutJob(resource)
          recordOpenRun(resource)
        }
        noteLateness(context, chosen)
      })
    }
  }

  /** How long nothing is due. */
  const idleMs = () => {
    const ms = Math.min(...chosen.map(resource => nextDueMs(context, resource, sourcesOf(resource.name))))
    return Math.min(Math.max(ms, Math.min(pollMs / 10, LEAST_SLEEP_MS)), LONGEST_SLEEP_MS)
  }

  const closeRuns = (stopped: unknown) => {
    for (const [name, { id }] of openRuns) {
      const error = stopped instanceof StopError ? { error: stopped.message } : {}
      store.runs.end(id, { outcome: 'stopped', counts: context.counts(name), now: context.now(), ...error })
    }
  }

  return {
    progress: () => scheduler?.progress ?? noProgress(),
    serverNow: context.server.now,
    serverTime: context.server.nowIfKnown,
    backlog: () => dueNow(context, chosen),
    async readFirst({ lists, keys }) {
      await store.transaction(() => {
        for (const list of lists) context.demandedLists.add(list)
        for (const { feed, scope = '', key } of keys) {
          store.tasks.demand({ feed, scope, key, dueAt: context.now() })
          if (scope === '') context.urgent.inLane('head', () => context.urgent.add(feed, key))
        }
      })
    },
    async run() {
      await store.transaction(() => {
        processRequests(context)
        for (const { name } of chosen) adoptRound(context, name)
        for (const resource of chosen) sources.set(resource.name, createSources(context, resource))
        noteAllDue()
      })
      scheduler = createScheduler({
        ...deps,
        context,
        sources: [...sources.values()].flat(),
        resources: chosen,
        giveUpMs: Number.POSITIVE_INFINITY,
        access: { ...deps.access, againAfterMs: scaled(ACCESS_AGAIN_MS, options) },
        endless: {
          idleMs,
          onApply: openRun,
          onEnd: afterJob,
          onSent: (request, lane, sent) =>
            observer.onRequest({
              route: request.route,
              lane,
              status: statusOf(sent),
              durationMs: sent.durationMs,
            }),
        },
      })
      let stopped: unknown
      const ended = new AbortController()
      const watching = watchSchedule(ended.signal).catch(error => scheduler?.stop(error))
      try {
        await scheduler.run()
      } catch (error) {
        stopped = error
      }
      ended.abort()
      await watching
      // On a full disk the outcomes of the runs are lost, but not what they stored.
      const ending = () => {
        closeRuns(stopped)
        noteAllDue()
      }
      await store.transaction(ending).catch(error => (stopped ??= error))
      if (stopped !== undefined) throw stopped
    },
  }
}

/** An idle daemon looks for work this often at least: its machine may have been suspended. */
const LONGEST_SLEEP_MS = MINUTE

/** Something may be due that waits for something else, such as a list for its parent. */
const LEAST_SLEEP_MS = 1000

/** How often the schedule and the ends of runs and rounds are checked; scaled by `intervalScale`. */
const LOOK_MS = MINUTE

/** A check reads the state of every list, so it must not run more often. */
const LEAST_LOOK_MS = 200

/** The result of a request in the metrics. */
function statusOf(sent: Sent): SentStatus {
  if (sent.kind === 'unauthorized') return 401
  if (sent.kind === 'refused') return sent.status
  if (sent.kind !== 'retry') return 200
  return sent.status ?? (sent.cause === 'timeout' ? 'timeout' : 'transport')
}

/** Closes the round that a backfill left open, and begins the daemon's. */
function adoptRound(context: EngineContext, name: ResourceName): void {
  const { round, roundOpen } = context.store.state.get(name)
  if (round === 0 || roundOpen) context.beginRound(name, 'timed')
}

/** Whether a resource may have something to read when another one's rows have changed. */
function dependsOn({ parents, feeds }: Resource, name: ResourceName): boolean {
  const looksUp = Object.values(feeds).some(
    feed => feed.mode === 'timeline' && feed.lookup?.resource === name,
  )
  return looksUp || parents.includes(name)
}
