import { CATALOG } from '../catalog/catalog.ts'
import type { Resource } from '../catalog/resource.ts'
import type { ResourceName } from '../catalog/resource-names.ts'
import { isoInstant } from '../clock.ts'
import { StopError } from '../errors.ts'
import type { RunCounts, RunOutcome } from '../store/sync/runs.ts'
import { createClockFollower, noteClock } from './clock-follower.ts'
import { createContext, type EngineContext } from './context.ts'
import { applyDeletions, forgetConfirmed, isHoldOver } from './deletions/apply.ts'
import { confirmationMs } from './deletions/recheck.ts'
import { byRounds } from './due/by-rounds.ts'
import { noteNextDue, type ScheduledResource } from './due/due.ts'
import { backoffForTheRun } from './due/feed-waits.ts'
import { areListsRead, feedsReadWhole } from './due/round-end.ts'
import type { EngineDeps } from './engine-options.ts'
import { processRequests } from './handed-over.ts'
import type { Source } from './scheduler/job.ts'
import { noProgress, type SchedulerProgress } from './scheduler/request-counts.ts'
import { createScheduler, type Scheduler } from './scheduler/scheduler.ts'
import { createSources } from './sources.ts'

/** Replicas of an API that disagree may raise suspicions indefinitely. Beyond this they wait for the next run. */
const MOST_WAITS = 4

/** Reads the chosen resources once completely, or the rest of an interrupted backfill. */
export interface Backfill {
  run(): Promise<BackfillResult>
  progress(): BackfillProgress
  /** The server's clock, in ms since the epoch; undefined before the first answer. */
  serverTime(): number | undefined
}

export interface BackfillProgress extends SchedulerProgress {
  /** True once the first requests may be sent. */
  begun: boolean
  /** End of the wait to confirm suspected deletions, in ms since the epoch; undefined when there is no wait. */
  confirmingUntil?: number
  resources: readonly ResourceProgress[]
}

export interface ResourceProgress {
  resource: ResourceName
  counts: Readonly<RunCounts>
  /** No request for it is left. */
  finished: boolean
  /** A part of it could not be read, or the workspace does not offer it. */
  isUnread: boolean
}

export interface ResourceResult extends RunCounts {
  resource: ResourceName
  outcome: RunOutcome
  reason?: string
}

export interface BackfillResult {
  /** True when every chosen resource was read completely. */
  complete: boolean
  /** True when the run ended before a resource was read: a signal ended it, or new reads fell due all the time. */
  interrupted: boolean
  resources: readonly ResourceResult[]
  requests: number
  throttled: number
}

export interface BackfillDeps extends EngineDeps {
  giveUpMs: number
}

export function createBackfill(deps: BackfillDeps): Backfill {
  const { store, clock, log, options } = deps
  const chosen = CATALOG.filter(({ name }) => deps.resources.includes(name))
  const sources = new Map<ResourceName, Source[]>()
  const context = createContext({
    store,
    clock,
    log,
    options,
    backoffs: backoffForTheRun(),
    schedule: byRounds,
    isFinished: name => isFinished(name),
  })
  let scheduler: Scheduler | undefined
  let waits = 0
  let repeats = 0
  /** By `now`, in ms. */
  let confirmingUntil: number | undefined

  const isFinished = (name: ResourceName): boolean => {
    const resource = chosen.find(candidate => candidate.name === name)
    if (!resource) return true
    return resource.parents.every(isFinished) && (sources.get(name) ?? []).every(source => source.finished())
  }

  const isUnread = (name: ResourceName): boolean =>
    context.runs.failure(name) !== undefined ||
    (context.backoffs.reason(name) !== undefined && context.runs.counts(name).rowsRead === 0)

  /**
   * Rows that this run suspects are requested once more, minutes later. No other request is left by then, so the run
   * waits. Returns whether more requests are due.
   */
  const waitForConfirmation = async (): Promise<boolean> => {
    const ms = confirmationMs(context, deps.resources)
    if (ms === undefined || waits >= MOST_WAITS || deps.stopNew.aborted) return false
    waits += 1
    confirmingUntil = clock.now() + ms
    log.info('Waiting to confirm suspected deletions', { wait_ms: Math.round(ms) })
    await clock.sleep(ms, deps.stopNew)
    scheduler?.excludeWait(ms)
    confirmingUntil = undefined
    return !deps.stopNew.aborted
  }

  /**
   * A deletion may make other reads due, for example the text of an e-mail's next copy. Returns whether it did.
   */
  const applyDeletions = () =>
    store.transaction(() => {
      if (deps.stopNew.aborted) return false
      const done = chosen.filter(({ name }) => isFinished(name))
      for (const resource of done) settleRead(context, resource)
      return done.some(({ name }) => !isFinished(name))
    })

  const finishedNow = () => new Set(chosen.flatMap(({ name }) => (isFinished(name) ? [name] : [])))

  /** Whether a resource that is not finished is read again. Counts each repeat. */
  const repeatIfDue = (finished: ReadonlySet<ResourceName>): boolean => {
    if (deps.stopNew.aborted || repeats >= MOST_REPEATS || finished.size === chosen.length) return false
    repeats += 1
    return true
  }

  /** Runs until nothing is due. Returns the resources that are finished; whatever falls due later is for the next run. */
  const readAll = async (running: Scheduler): Promise<ReadonlySet<ResourceName>> => {
    for (;;) {
      await running.run()
      if ((await waitForConfirmation()) || (await applyDeletions())) continue
      const finished = finishedNow()
      if (!repeatIfDue(finished)) return finished
    }
  }

  const dueOf = (resource: Resource): ScheduledResource => ({
    resource,
    sources: sources.get(resource.name) ?? [],
    finished: isFinished(resource.name),
  })

  return {
    progress: () => ({
      ...(scheduler?.progress ?? noProgress()),
      begun: scheduler !== undefined,
      ...(confirmingUntil === undefined ? {} : { confirmingUntil }),
      resources: chosen.map(({ name }) => ({
        resource: name,
        counts: context.runs.counts(name),
        finished: sources.size > 0 && isFinished(name),
        isUnread: isUnread(name),
      })),
    }),
    serverTime: context.server.nowIfKnown,
    async run() {
      await createClockFollower({ clock, store })()
      await noteClock({ clock, store })
      const runs = await store.transaction(() => {
        processRequests(context)
        return beginRound(context, chosen)
      })
      await store.transaction(() => {
        for (const resource of chosen) sources.set(resource.name, createSources(context, resource))
      })
      scheduler = createScheduler({
        ...deps,
        context,
        resources: chosen,
        sources: [...sources.values()].flat(),
        // A person may wait for this run, so it ends at once. Lost access never causes deletions.
        access: { againAfterMs: 0, wasAnswered: false, wasLost: false },
      })
      let stopped: unknown
      let finished: ReadonlySet<ResourceName> | undefined
      try {
        finished = await readAll(scheduler)
        await store.crmTables.finish(deps.stopNew)
      } catch (error) {
        stopped = error
      }
      const ended = await store.transaction(() => {
        const interrupted = stopped !== undefined || deps.stopNew.aborted
        return chosen.map(resource => {
          const { name } = resource
          const isWaiting = interrupted && confirmationMs(context, [name]) !== undefined
          const isRead = (finished ?? finishedNow()).has(name)
          return endRound(context, resource, { interrupted, finished: isRead && !isWaiting })
        })
      })
      await store.transaction(() => {
        closeRuns(context, runs, ended, stopped)
        noteNextDue(context, chosen.map(dueOf), deps)
      })
      if (stopped !== undefined) throw stopped
      return {
        complete: ended.every(({ outcome }) => outcome === 'complete' || outcome === 'unavailable'),
        interrupted: ended.some(({ outcome }) => outcome === 'stopped'),
        resources: ended,
        requests: scheduler.progress.requests,
        throttled: scheduler.progress.throttled,
      }
    },
  }
}

/** Limits the run where something falls due all the time. */
const MOST_REPEATS = 3

/** Continues an interrupted round, or begins a new one for all resources. Returns the ids of their runs. */
function beginRound(context: EngineContext, chosen: readonly Resource[]): ReadonlyMap<ResourceName, number> {
  const { state, runs } = context.store
  const now = context.now()
  const states = chosen.map(({ name }) => state.get(name))
  const open = states.flatMap(({ roundOpen, roundStartedAt }) =>
    roundOpen && roundStartedAt ? [roundStartedAt] : [],
  )
  const [since] = open.sort()
  for (const { resource, roundOpen, roundStartedAt } of states) {
    // A resource that the interrupted round has read completely is not read again.
    const goesOn = since !== undefined && roundStartedAt !== null && roundStartedAt >= since
    if (roundOpen || goesOn) continue
    const confirming = isHoldOver(context, resource)
    if (confirming) forgetConfirmed(context, resource)
    context.rounds.begin(resource, 'resumable', { at: now, confirming })
  }
  return new Map(
    states.map(({ resource, firstCompleteAt }) => [
      resource,
      runs.begin(resource, firstCompleteAt === null ? 'history' : 'audit', now),
    ]),
  )
}

interface Ending {
  interrupted: boolean
  finished: boolean
}

function endRound(
  context: EngineContext,
  resource: Resource,
  { interrupted, finished }: Ending,
): ResourceResult {
  const { name } = resource
  const { state, rejects } = context.store
  const now = context.now()
  const roundStartedAt = state.get(name).roundStartedAt ?? now
  const asOf = isoInstant(context.server.from(Date.parse(roundStartedAt)))
  const result = (outcome: RunOutcome, reason?: string): ResourceResult => ({
    resource: name,
    outcome,
    ...context.runs.counts(name),
    ...(reason === undefined ? {} : { reason }),
  })
  if (!finished) return result('stopped')
  settleRead(context, resource)
  const failure = context.runs.failure(name)
  if (failure) {
    // After an interruption the round stays open, and the next run continues it.
    if (!interrupted) state.endRound(name, { complete: false, asOf, now, deletionsSince: now })
    return result('failed', failure.message)
  }
  for (const feed of feedsReadWhole(resource)) rejects.resolve(feed, null, roundStartedAt, now)
  const reason = context.backoffs.reason(name)
  const whole = reason !== undefined && isWhollyUnavailable(context, resource)
  if (whole) state.unavailable(name, reason, now)
  else state.healthy(name, reason ?? null)
  state.succeeded(name, now)
  state.endRound(name, { complete: true, asOf, now, deletionsSince: now })
  return whole ? result('unavailable', reason) : result('complete', reason)
}

/** A failed single read or scope does not keep the deletions from being applied; a failed list does. */
function settleRead(context: EngineContext, resource: Resource): void {
  const { name } = resource
  if (context.runs.failure(name) && !areListsRead(context, resource)) return
  applyDeletions(context, name, true)
}

/** A resource with several scopes is available while one of them is, even without rows. */
function isWhollyUnavailable(context: EngineContext, { name, feeds }: Resource): boolean {
  const passes = Object.keys(feeds).flatMap(feed => context.store.segments.of(`${name}.${feed}`))
  if (passes.some(({ listedRound }) => listedRound === context.rounds.number(name))) return false
  return context.runs.counts(name).rowsRead === 0
}

function closeRuns(
  context: EngineContext,
  runs: ReadonlyMap<ResourceName, number>,
  ended: readonly ResourceResult[],
  stopped: unknown,
): void {
  for (const { resource, outcome, reason, ...counts } of ended) {
    const id = runs.get(resource)
    if (id === undefined) continue
    const error = outcome === 'stopped' && stopped instanceof StopError ? stopped.message : reason
    context.store.runs.end(id, {
      outcome,
      counts,
      now: context.now(),
      ...(error === undefined ? {} : { error }),
    })
  }
}
