import type { Client, Sent } from '../api/client.ts'
import type { Governor } from '../api/governor/governor.ts'
import { CATALOG } from '../catalog/catalog.ts'
import type { Resource, ResourceName } from '../catalog/resource.ts'
import type { Clock } from '../clock.ts'
import { StopError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Store } from '../store/store.ts'
import { createContext, type EngineContext } from './context.ts'
import { applyDeletions } from './deletions/apply.ts'
import type { EngineOptions } from './options.ts'
import { takeUpRequests } from './requests.ts'
import { byTime } from './schedule/by-time.ts'
import { growingBackoff } from './schedule/feed-backoff.ts'
import { DAY, HOUR, MINUTE, scaled } from './schedule/intervals.ts'
import { noteLateness } from './schedule/lateness.ts'
import { type Backlog, dueNow, nextDue, noteNextDue } from './schedule/next-due.ts'
import { isReadThrough, noteMadeGood, type QuietOutcome, settleRun } from './schedule/rounds.ts'
import type { Job, Lane, Source } from './scheduler/job.ts'
import { noProgress, type SchedulerProgress } from './scheduler/progress.ts'
import { type AccessBefore, createScheduler, type Scheduler } from './scheduler/scheduler.ts'
import { createSources } from './sources.ts'

/**
 * One session of the daemon: everything from the settings to the scheduler is built once and runs until it is
 * told to end or cannot go on. All that it holds in memory can be had again from the database, so that the next
 * session, or the next process, goes on where it stopped.
 */
export interface Session {
  /** Resolves when `soft` is aborted and what was under way has ended. @throws the StopError that ended it */
  run(): Promise<void>
  progress(): SchedulerProgress
  /** The server's clock, in ms since the epoch. */
  serverNow(): number
  /** The same; undefined before the first answer. */
  serverTime(): number | undefined
  backlog(): Backlog
  /** Has single keys read before all else, and lists read at once. */
  hurry(wanted: Wanted): Promise<void>
}

export interface Wanted {
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
  /** Notes what was learned of the API's limits: called inside the transactions of answers, however often. */
  noteLearned?: () => void
  soft: AbortSignal
  hard: AbortSignal
  observer: SessionObserver
}

/** Told of what happens, for metrics. */
export interface SessionObserver {
  sent(request: { route: string; lane: Lane; status: SentStatus; durationMs: number }): void
  passed(run: { resource: ResourceName; lane: Lane; outcome: string }): void
}

/** The HTTP status, or why there is none. */
export type SentStatus = number | 'timeout' | 'transport'

/** The run of a resource: from its first request until nothing of it is due. */
interface OpenRun {
  id: number
  lane: Lane
  began: number
  /** When what was found to be gone was last dealt with. Both by `elapsed`. */
  settledAt: number
}

/** A run that has not ended by then is taken stock of on the way. */
const LATE_MS = HOUR

/** Lost access is believed when everything is refused once more after so long. */
const ACCESS_AGAIN_MS = 5 * MINUTE

/** What is not offered is asked for again before a day is over. */
const UNAVAILABLE_MS = 0.75 * DAY

/** Where it was offered before, it is asked for again so soon at first. */
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
  const isQuiet = (name: ResourceName): boolean =>
    (sources.get(name) ?? []).every(source => source.finished())
  const context = createContext({
    store,
    clock,
    log,
    options,
    backoffs,
    schedule: made => byTime(made, { pollMs }),
    // A parent that was complete once has its rows here; it need not be at rest for its children to go on.
    isFinished: name => context.wasComplete(name) || isQuiet(name),
  })
  let scheduler: Scheduler | undefined

  const applying = ({ resource }: Job, lane: Lane) => {
    if (openRuns.has(resource)) return
    openRuns.set(resource, {
      id: store.runs.begin(resource, lane, context.now()),
      lane,
      began: clock.elapsed(),
      settledAt: clock.elapsed(),
    })
  }

  const over = ({ resource }: Job) => {
    const run = openRuns.get(resource)
    if (!run) return
    const noted = isQuiet(resource) ? () => endQuietRun(resource) : settlingLate(resource, run)
    if (noted) void store.transaction(noted).catch(error => scheduler?.stop(error))
  }

  const feedsOf = (name: ResourceName) => (sources.get(name) ?? []).map(source => source.feed)

  /** In the transactions in which it begins and ends: what an earlier process noted may be overtaken by then. */
  const noteAllDue = () => {
    const known = chosen.map(resource => {
      const { name } = resource
      return { resource, sources: feedsOf(name), finished: isQuiet(name) }
    })
    noteNextDue(context, known, deps)
  }

  /** What was found to be gone does not wait for the end of a run that goes on for hours, as under a tight limit. */
  const settlingLate = (name: ResourceName, run: OpenRun): (() => void) | undefined => {
    if (clock.elapsed() - run.settledAt < scaled(LATE_MS, options)) return undefined
    run.settledAt = clock.elapsed()
    return () => {
      if (isTrusted()) applyDeletions(context, name, false)
    }
  }

  /** A key that is turned away by everything does not tell what is gone. */
  const isTrusted = () => scheduler?.progress.turnedAwayInARow === 0

  /** What was only waiting for a parent to be complete is so in the same moment. */
  const settle = (resource: Resource): QuietOutcome => {
    const { name } = resource
    const wasComplete = context.wasComplete(name)
    const outcome = settleRun(context, resource, isTrusted())
    if (wasComplete || !context.wasComplete(name)) return outcome
    for (const other of chosen) {
      const isWaiting = other.parents.includes(name) && !openRuns.has(other.name) && isQuiet(other.name)
      if (isWaiting) settle(other)
    }
    return outcome
  }

  const endQuietRun = (name: ResourceName) => {
    const run = openRuns.get(name)
    const resource = chosen.find(candidate => candidate.name === name)
    if (!run || !resource || !isQuiet(name)) return
    const outcome = settle(resource)
    const { rowsChanged, ...counts } = context.counts(name)
    const error = outcome === 'unavailable' ? context.unavailability(name) : context.failure(name)?.message
    store.runs.end(run.id, {
      outcome,
      counts: { ...counts, rowsChanged },
      now: context.now(),
      ...(error === undefined ? {} : { error }),
    })
    store.state.nextRun(name, nextDue(context, resource, feedsOf(name)))
    observer.passed({ resource: name, lane: run.lane, outcome })
    log.debug('A run has ended', {
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
    for (const rested of [resource, ...dependents]) {
      for (const source of sources.get(rested.name) ?? []) source.rest?.()
    }
  }

  /**
   * Runs and rounds end with a job. Where a plan asks for nothing there is none: the run stays open, and a resource
   * whose parents are complete and of which there is nothing to read would never be complete.
   */
  const endWithoutJob = (resource: Resource) => {
    const { name, parents } = resource
    const isReady = !context.wasComplete(name) && parents.every(context.wasComplete) && isQuiet(name)
    if (openRuns.has(name)) endQuietRun(name)
    else if (isReady) settle(resource)
  }

  /** What a run that goes on for long has read counts before it ends. */
  const takeStock = (resource: Resource) => {
    if (!openRuns.has(resource.name)) return
    if (isReadThrough(context, resource)) settle(resource)
    else noteMadeGood(context, resource)
  }

  /** Checks at intervals whether every list is read on schedule, also while nothing else happens. */
  const watchSchedule = async (until: AbortSignal) => {
    for (;;) {
      await clock.sleep(Math.max(scaled(LOOK_MS, options), LEAST_LOOK_MS), until)
      if (until.aborted) return
      await store.transaction(() => {
        for (const resource of chosen) {
          endWithoutJob(resource)
          takeStock(resource)
        }
        noteLateness(context, chosen)
      })
    }
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
    serverTime: context.server.told,
    backlog: () => dueNow(context, chosen),
    async hurry({ lists, keys }) {
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
        takeUpRequests(context)
        for (const { name } of chosen) takeOver(context, name)
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
          tickMs: Math.min(pollMs / 10, LONGEST_TICK_MS),
          applying,
          over,
          sent: (request, lane, sent) =>
            observer.sent({
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
      // On a disk that is full, what the runs did is not known later; all that they stored is.
      const ending = () => {
        closeRuns(stopped)
        noteAllDue()
      }
      await store.transaction(ending).catch(error => (stopped ??= error))
      if (stopped !== undefined) throw stopped
    },
  }
}

const LONGEST_TICK_MS = 1000

/** How often the schedule is checked, and whether a run or a round has ended. Scaled by the owner. */
const LOOK_MS = MINUTE

/** A check reads the state of every list: more of them would cost more than they tell. */
const LEAST_LOOK_MS = 200

/** What a request came to, as metrics call it. */
function statusOf(sent: Sent): SentStatus {
  if (sent.kind === 'unauthorized') return 401
  if (sent.kind === 'refused') return sent.status
  if (sent.kind !== 'retry') return 200
  return sent.status ?? (sent.cause === 'timeout' ? 'timeout' : 'transport')
}

/** A round that a backfill left open is the daemon's from now on: a later backfill begins one of its own. */
function takeOver(context: EngineContext, name: ResourceName): void {
  const { round, roundOpen } = context.store.state.get(name)
  if (round === 0 || roundOpen) context.beginRound(name, 'timed')
}

/** Whether one resource has something to look for when another one's rows have changed. */
function dependsOn({ parents, feeds }: Resource, name: ResourceName): boolean {
  const looksUp = Object.values(feeds).some(
    feed => feed.mode === 'timeline' && feed.lookup?.resource === name,
  )
  return looksUp || parents.includes(name)
}
