import type { Client } from '../api/client.ts'
import type { Governor } from '../api/governor/governor.ts'
import { CATALOG } from '../catalog/catalog.ts'
import type { Resource, ResourceName } from '../catalog/resource.ts'
import { type Clock, isoInstant } from '../clock.ts'
import { StopError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Store } from '../store/store.ts'
import type { RunCounts, RunOutcome } from '../store/sync/runs.ts'
import { createClockFollower, noteClock } from './clock-follower.ts'
import { createContext, type EngineContext } from './context.ts'
import { applyDeletions, forgetConfirmed, isHoldOver } from './deletions/apply.ts'
import { confirmationMs } from './deletions/recheck.ts'
import type { EngineOptions } from './options.ts'
import { takeUpRequests } from './requests.ts'
import { byRounds } from './schedule/by-rounds.ts'
import { backoffForTheRun } from './schedule/feed-backoff.ts'
import { type Chosen, noteNextDue } from './schedule/next-due.ts'
import { areListsRead, feedsReadWhole } from './schedule/rounds.ts'
import type { Source } from './scheduler/job.ts'
import { noProgress, type SchedulerProgress } from './scheduler/progress.ts'
import { createScheduler, type Scheduler } from './scheduler/scheduler.ts'
import { createSources } from './sources.ts'

/** Copies of an API that disagree may raise suspicions for ever: what is left waits for the next run. */
const MOST_WAITS = 4

/** One complete reading of the chosen resources, or what is left of one that was interrupted. */
export interface Backfill {
  run(): Promise<BackfillResult>
  progress(): BackfillProgress
  /** The server's clock, in ms since the epoch; undefined before the first answer. */
  serverTime(): number | undefined
}

export interface BackfillProgress extends SchedulerProgress {
  /** True once it is known what this run has to do. */
  begun: boolean
  /** While the run waits to confirm suspected deletions: until when, in ms since the epoch. */
  confirmingUntil?: number
  resources: readonly ResourceProgress[]
}

export interface ResourceProgress {
  resource: ResourceName
  counts: Readonly<RunCounts>
  /** Nothing of it is left to ask for. */
  finished: boolean
  /** A part of it could not be read, or none of it is offered. */
  isUnread: boolean
}

export interface ResourceResult extends RunCounts {
  resource: ResourceName
  outcome: RunOutcome
  reason?: string
}

export interface BackfillResult {
  /** True when every chosen resource was read to its end. */
  complete: boolean
  /** True when a signal ended it before. */
  interrupted: boolean
  resources: readonly ResourceResult[]
  requests: number
  throttled: number
}

export interface BackfillDeps {
  store: Store
  client: Client
  governor: Governor
  clock: Clock
  log: Log
  random: () => number
  options: EngineOptions
  /** In catalogue order, parents included. */
  resources: readonly ResourceName[]
  giveUpMs: number
  /** How often the daemon would read the newest end, by which it is said when that is due. */
  pollMs: number
  /** Notes what was learned of the API's limits: called inside the transactions of answers, however often. */
  noteLearned?: () => void
  soft: AbortSignal
  hard: AbortSignal
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
    context.failure(name) !== undefined ||
    (context.unavailability(name) !== undefined && context.counts(name).rowsRead === 0)

  /**
   * What was denied in this run is asked for once more, minutes later. Nothing else is left to ask by then, so the run
   * waits. Returns whether there is more to ask.
   */
  const waitsForConfirmation = async (): Promise<boolean> => {
    const ms = confirmationMs(context, deps.resources)
    if (ms === undefined || waits >= MOST_WAITS || deps.soft.aborted) return false
    waits += 1
    confirmingUntil = clock.now() + ms
    log.info('Waiting to confirm suspected deletions', { wait_ms: Math.round(ms) })
    await clock.sleep(ms, deps.soft)
    scheduler?.excuse(ms)
    confirmingUntil = undefined
    return !deps.soft.aborted
  }

  /** What is marked as gone may have something else read: the text of an e-mail's next copy, for one. */
  const bringsMore = () =>
    store.transaction(() => {
      if (deps.soft.aborted) return false
      const done = chosen.filter(({ name }) => isFinished(name))
      for (const resource of done) settleRead(context, resource)
      return done.some(({ name }) => !isFinished(name))
    })

  const finishedNow = () => new Set(chosen.flatMap(({ name }) => (isFinished(name) ? [name] : [])))

  /** Something has fallen due since nothing was left to ask. */
  const fellDue = (): boolean => {
    if (deps.soft.aborted || repeats >= MOST_REPEATS || finishedNow().size === chosen.length) return false
    repeats += 1
    return true
  }

  const dueOf = (resource: Resource): Chosen => ({
    resource,
    sources: (sources.get(resource.name) ?? []).map(({ feed }) => feed),
    finished: isFinished(resource.name),
  })

  return {
    progress: () => ({
      ...(scheduler?.progress ?? noProgress()),
      begun: scheduler !== undefined,
      ...(confirmingUntil === undefined ? {} : { confirmingUntil }),
      resources: chosen.map(({ name }) => ({
        resource: name,
        counts: context.counts(name),
        finished: sources.size > 0 && isFinished(name),
        isUnread: isUnread(name),
      })),
    }),
    serverTime: context.server.told,
    async run() {
      await createClockFollower({ clock, store })()
      await noteClock({ clock, store })
      const runs = await store.transaction(() => {
        takeUpRequests(context)
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
        // A run that somebody waits for ends at once; nothing is tombstoned for it.
        access: { againAfterMs: 0, wasAnswered: false, wasLost: false },
      })
      let stopped: unknown
      let finished: ReadonlySet<ResourceName> | undefined
      try {
        do await scheduler.run()
        while ((await waitsForConfirmation()) || (await bringsMore()) || fellDue())
        // What falls due from now on is for the next run.
        finished = finishedNow()
        await store.crmTables.finish(deps.soft)
      } catch (error) {
        stopped = error
      }
      const ended = await store.transaction(() => {
        const interrupted = stopped !== undefined || deps.soft.aborted
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

/** A run ends though something falls due at every instant. */
const MOST_REPEATS = 3

/**
 * A round that was interrupted goes on, and resources that were read to their end in it are left alone; else a new
 * one begins for all.
 */
function beginRound(context: EngineContext, chosen: readonly Resource[]): ReadonlyMap<ResourceName, number> {
  const { state, runs } = context.store
  const now = context.now()
  const states = chosen.map(({ name }) => state.get(name))
  const open = states.flatMap(({ roundOpen, roundStartedAt }) =>
    roundOpen && roundStartedAt ? [roundStartedAt] : [],
  )
  const [since] = open.sort()
  for (const { resource, roundOpen, roundStartedAt } of states) {
    // Those that were read to their end in the round that goes on are left alone.
    const goesOn = since !== undefined && roundStartedAt !== null && roundStartedAt >= since
    if (roundOpen || goesOn) continue
    const confirming = isHoldOver(context, resource)
    if (confirming) forgetConfirmed(context, resource)
    context.beginRound(resource, 'resumable', { at: now, confirming })
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
    ...context.counts(name),
    ...(reason === undefined ? {} : { reason }),
  })
  if (!finished) return result('stopped')
  settleRead(context, resource)
  const failure = context.failure(name)
  if (failure) {
    // Left open when the run was cut short: the next one goes on with it.
    if (!interrupted) state.endRound(name, { complete: false, asOf, now, deletionsSince: now })
    return result('failed', failure.message)
  }
  for (const feed of feedsReadWhole(resource)) rejects.resolve(feed, null, roundStartedAt, now)
  const reason = context.unavailability(name)
  const whole = reason !== undefined && isWhollyUnavailable(context, resource)
  if (whole) state.unavailable(name, reason, now)
  else state.healthy(name, reason ?? null)
  state.succeeded(name, now)
  state.endRound(name, { complete: true, asOf, now, deletionsSince: now })
  return whole ? result('unavailable', reason) : result('complete', reason)
}

/** A single read, or a scope, that failed says nothing against what the others have shown. */
function settleRead(context: EngineContext, resource: Resource): void {
  const { name } = resource
  if (context.failure(name) && !areListsRead(context, resource)) return
  applyDeletions(context, name, true)
}

/** A resource of several scopes is offered as long as one of them is, though it may have no rows. */
function isWhollyUnavailable(context: EngineContext, { name, feeds }: Resource): boolean {
  const passes = Object.keys(feeds).flatMap(feed => context.store.segments.of(`${name}.${feed}`))
  if (passes.some(({ listedRound }) => listedRound === context.round(name))) return false
  return context.counts(name).rowsRead === 0
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
