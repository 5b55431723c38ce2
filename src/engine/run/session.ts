import type { Sent } from '../../api/client.ts'
import { DAY_MS, isoInstant, MINUTE_MS, untilNext } from '../../base/clock.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import { writeError } from '../../store/migrations/foreign-objects.ts'
import { createContext, type EngineContext } from '../context/context.ts'
import type { EngineDeps } from '../context/engine-options.ts'
import { growingBackoff } from '../context/feed-waits.ts'
import { scaled, WEEK_MS } from '../context/intervals.ts'
import type { Job, Lane } from '../context/job.ts'
import { byTime } from '../due/by-time.ts'
import { backlogNow, nextDueMs } from '../due/due.ts'
import { adoptLateness, noteLateness } from '../due/lateness.ts'
import { wantList } from '../due/wants.ts'
import { sweepTexts } from '../modes/items/text-sweep.ts'
import { noProgress, type SchedulerProgress, trafficOf } from '../requests/request-counts.ts'
import { type AccessBefore, createScheduler, type Scheduler } from '../scheduler/scheduler.ts'
import { processRequests } from './handed-over.ts'
import { recordMinutes } from './minute-recorder.ts'
import { createOpenRuns } from './open-runs.ts'
import { chooseResources } from './sources.ts'

export type Session = ReturnType<typeof createSession>

export interface UrgentReads {
  /** `resource.feed` */
  lists: readonly string[]
  keys: readonly { feed: string; scope?: string; key: string }[]
}

export interface SessionDeps extends EngineDeps {
  /** The access to the API before this session. */
  access: Omit<AccessBefore, 'againAfterMs'>
  observer: SessionObserver
}

/** Receives requests and runs, for metrics. */
export interface SessionObserver {
  onRequest(request: { route: string; lane: Lane | 'retry'; status: SentStatus; durationMs: number }): void
  onRunEnd(run: { resource: ResourceName; lane: Lane; outcome: string }): void
}

/** The HTTP status, or the reason why there is none. */
export type SentStatus = number | 'timeout' | 'transport'

/** Access counts as lost when all lists are refused again this long after access came into doubt. */
const ACCESS_AGAIN_MS = 5 * MINUTE_MS

/** An unavailable feed is requested again after this time. */
const UNAVAILABLE_MS = 0.75 * DAY_MS

/** The first wait of an unavailable feed that was available before. */
const REFUSED_MS = MINUTE_MS

/**
 * One session of the daemon: everything from the settings to the scheduler is built once and runs until it is stopped
 * or fails. Checkpoints and tasks are in the database, so the next session or process continues where this one stopped.
 */
export function createSession(deps: SessionDeps) {
  const { store, clock, options, observer } = deps
  const chosen = chooseResources(deps.resources)
  const { resources, sourcesOf } = chosen
  const closedBefore = store.gates
    .closed()
    .filter(gate => gate.resources.some(name => deps.resources.includes(name)))
  const context: EngineContext = createContext({
    store,
    clock,
    log: deps.log,
    options,
    backoffs: growingBackoff({
      clock,
      random: deps.random,
      before: closedBefore,
      unavailableMs: scaled(UNAVAILABLE_MS, options),
      refusedMs: scaled(REFUSED_MS, options),
    }),
    createSchedule: made => byTime(made, deps),
    // Once a parent has been complete, its rows are stored, so its children need not wait until it is idle.
    isFinished: name => context.rounds.wasComplete(name) || isIdle(name),
  })
  const isIdle = (name: ResourceName) => chosen.isIdle(context, name)
  let scheduler: Scheduler | undefined

  /** Stores `next_run_at` of all resources when a session begins and ends. The stored times may be outdated by then. */
  const noteAllDue = () => {
    for (const { name } of resources)
      store.state.nextRun(name, isoInstant(clock.now() + nextDueMs(context, sourcesOf(name))))
  }

  const runs = createOpenRuns({
    context,
    resources,
    sourcesOf,
    isIdle,
    isTrusted: () => scheduler?.progress.turnedAwayInARow === 0,
    onRunEnd: observer.onRunEnd,
  })

  const afterJob = (job: Job) => {
    try {
      const work = runs.afterJob(job)
      if (work) void store.transaction(work).catch(error => scheduler?.stop(error))
    } catch (error) {
      // The check whether a resource is idle may make its sources plan, which writes. On a full disk the write fails.
      scheduler?.stop(writeError(error, store.path))
    }
  }

  const noteStandstill = (plannedAt: number) => {
    if (clock.now() - plannedAt > STOOD_STILL_MS) context.awakeSince = clock.elapsed()
  }
  let reviewed = { commits: -1, looks: 0 }
  /** @param plannedAt when this look was planned, in ms since the epoch by this machine's clock */
  const review = async (plannedAt: number) => {
    noteStandstill(plannedAt)
    const commits = store.transaction.commits()
    const looks = commits === reviewed.commits ? reviewed.looks + 1 : 0
    reviewed = { commits, looks }
    if (looks % QUIET_LOOKS !== 0) return
    const hasEnded = await store.transaction.aside(() => {
      const ended = resources.filter(runs.review)
      // The process may have been stopped while this waited for other writes.
      noteStandstill(plannedAt)
      noteLateness(context, resources)
      return sweepTexts(context, deps.resources, deps.governor.state().ratePerSecond) || ended.length > 0
    })
    // If deletions were applied, other reads may be due. This commit makes the lanes ask the sources again.
    if (hasEnded) await store.transaction(() => undefined)
  }

  const prepare = () => {
    processRequests(context)
    for (const { name } of resources) adoptRound(context, name)
    adoptLateness(context, resources)
    chosen.createSources(context)
    noteAllDue()
  }

  return {
    progress: (): SchedulerProgress => scheduler?.progress ?? noProgress(),
    /** The server's clock, in ms since the epoch. */
    serverNow: context.server.now,
    /** As `serverNow`, but undefined before the first answer. */
    serverTime: context.server.nowIfKnown,
    backlog: () => backlogNow(context, resources),
    /** Makes these lists and keys due at once. Keys without a scope are read in the lane `head`. */
    readFirst: (reads: UrgentReads) => store.transaction(() => demand(context, reads)),
    /** Resolves when `stopNew` is aborted and the requests in flight have ended. @throws the StopError that ended it */
    async run() {
      await store.transaction(prepare)
      const running = createScheduler({
        ...deps,
        context,
        sources: chosen.sources(),
        resources,
        closedBefore,
        access: { ...deps.access, againAfterMs: scaled(ACCESS_AGAIN_MS, options) },
        endless: {
          onApply: runs.open,
          onEnd: afterJob,
          onSent: ({ route }, lane, sent) =>
            observer.onRequest({ route, lane, status: statusOf(sent), durationMs: sent.durationMs }),
        },
      })
      scheduler = running
      let stopped: unknown
      const ended = new AbortController()
      const recording = recordMinutes(deps, () => trafficOf(running.progress, context), ended.signal)
      const watching = watchSchedule(context, review, ended.signal).catch(error => scheduler?.stop(error))
      try {
        await running.run()
      } catch (error) {
        stopped = error
      }
      ended.abort()
      await Promise.all([watching, recording])
      // On a full disk the outcomes of the runs are lost, but the rows that the runs stored are not.
      const ending = () => {
        runs.closeAll(stopped)
        noteAllDue()
      }
      await store.transaction(ending).catch(error => (stopped ??= error))
      if (stopped !== undefined) throw stopped
    },
  }
}

/** How often the schedule and the ends of runs and rounds are checked; scaled by `intervalScale`. */
const LOOK_MS = MINUTE_MS

/** While nothing is stored, lists can only become late, so one check in this many suffices. */
const QUIET_LOOKS = 5

/** A check reads the state of every list, so it must not run more often. */
const LEAST_LOOK_MS = 200

/** A process that wakes so much too late was stopped, or its machine slept. */
const STOOD_STILL_MS = MINUTE_MS

/** Reviews the runs and the schedule at intervals, even while there are no jobs. */
async function watchSchedule(
  { clock, options }: EngineContext,
  review: (plannedAt: number) => Promise<void>,
  until: AbortSignal,
): Promise<void> {
  const everyMs = Math.max(scaled(LOOK_MS, options), LEAST_LOOK_MS)
  for (;;) {
    const [from, waitMs] = [clock.now(), untilNext(everyMs, clock.now())]
    await clock.sleep(waitMs, until)
    if (until.aborted) return
    await review(from + waitMs)
  }
}

function demand(context: EngineContext, { lists, keys }: UrgentReads): void {
  for (const list of lists) wantList(context, list)
  for (const { feed, scope = '', key } of keys) {
    const { dueClock, tasks } = context.store
    const deadline = dueClock.after(scaled(WEEK_MS, context.options))
    tasks.demand({ feed, scope, key, dueAt: dueClock.after(0), deadline })
    if (scope === '') context.urgent.inLane('head', () => context.urgent.add(feed, key))
  }
}

/** The result of a request in the metrics. */
function statusOf(sent: Sent): SentStatus {
  if (sent.kind === 'unauthorized') return 401
  if (sent.kind === 'answer') return 200
  return sent.status ?? (sent.kind === 'retry' && sent.cause === 'timeout' ? 'timeout' : 'transport')
}

/** Begins a round of the daemon if there is no round yet, or if a backfill has left its round open. */
function adoptRound(context: EngineContext, name: ResourceName): void {
  const { round, roundOpen } = context.store.state.get(name)
  if (round === 0 || roundOpen) context.rounds.begin(name, 'timed')
}
