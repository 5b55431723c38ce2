import { isoInstant } from '../../base/clock.ts'
import { reasonWithHint, StopError } from '../../base/errors.ts'
import type { Resource } from '../../declare/resource.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import type { RunCounts, RunOutcome } from '../../store/sync/runs.ts'
import { createContext, type EngineContext } from '../context/context.ts'
import type { EngineDeps } from '../context/engine-options.ts'
import { backoffForTheRun } from '../context/feed-waits.ts'
import { isHoldOver } from '../deletions/apply.ts'
import { confirmationMs } from '../deletions/recheck.ts'
import { byRounds, interruptedSince, isContinued } from '../due/by-rounds.ts'
import { nextDueOfDaemonMs } from '../due/due.ts'
import { sweepTexts } from '../modes/items/text-sweep.ts'
import { noProgress, type SchedulerProgress, trafficOf } from '../requests/request-counts.ts'
import { createScheduler, type Scheduler } from '../scheduler/scheduler.ts'
import { processRequests } from './handed-over.ts'
import { recordMinutes } from './minute-recorder.ts'
import { recordOutcome, settle, suspectAgain } from './round-end.ts'
import { type ChosenResources, chooseResources } from './sources.ts'

export type Backfill = ReturnType<typeof createBackfill>

export interface BackfillProgress extends SchedulerProgress {
  /** True once the first requests may be sent. */
  begun: boolean
  /** End of the wait to confirm suspected deletions, in ms since the epoch; undefined when there is no wait. */
  confirmingUntil: number | undefined
  resources: readonly ResourceProgress[]
}

export interface ResourceProgress {
  resource: ResourceName
  counts: Readonly<RunCounts>
  /** True when no request of the resource is left. */
  finished: boolean
  /** True when a part of the resource could not be read, or the workspace does not offer the resource. */
  isUnread: boolean
}

export interface BackfillResult {
  /** True when every chosen resource was read completely. */
  complete: boolean
  /** True when the run ended before every resource was read: after a signal, or because new reads kept falling due. */
  interrupted: boolean
  /**
   * When the interrupted run began whose rounds this run has continued, by the server's clock: what became new since
   * then may be missing. Undefined when this run has begun all of its rounds.
   */
  continuedFrom: string | undefined
  resources: readonly ResourceResult[]
  requests: number
  throttled: number
}

export interface ResourceResult extends RunCounts {
  resource: ResourceName
  outcome: RunOutcome
  reason?: string
}

export interface BackfillDeps extends EngineDeps {
  giveUpMs: number
}

/** Reads the chosen resources once completely, or the rest of an interrupted backfill. */
export function createBackfill(deps: BackfillDeps) {
  const { store, clock, log, options, stopNew, pollMs } = deps
  const chosen = chooseResources(deps.resources)
  const { resources, sourcesOf } = chosen
  const isFinished = (name: ResourceName): boolean => {
    const resource = resources.find(candidate => candidate.name === name)
    return resource === undefined || (resource.parents.every(isFinished) && chosen.isIdle(context, name))
  }
  const context = createContext({
    store,
    clock,
    log,
    options,
    backoffs: backoffForTheRun(),
    createSchedule: byRounds,
    isFinished,
  })
  let scheduler: Scheduler | undefined
  let result: BackfillResult | undefined
  let waits = 0
  let confirmingUntil: number | undefined

  /**
   * A backfill requests suspected rows once more, minutes later. Until then no other request is left, so the run waits.
   * Returns whether more requests are due.
   */
  const waitToConfirm = async (running: Scheduler): Promise<boolean> => {
    const ms = confirmationMs(context, deps.resources)
    if (ms === undefined || waits >= MOST_WAITS || stopNew.aborted) return false
    waits += 1
    confirmingUntil = clock.now() + ms
    log.info('Waiting to confirm suspected deletions', { wait_ms: Math.round(ms) })
    await clock.sleep(ms, stopNew)
    running.excludeWait(ms)
    confirmingUntil = undefined
    return !stopNew.aborted
  }

  const finishedNow = () => resources.filter(({ name }) => isFinished(name))

  /**
   * Applies the deletions of the finished resources. Returns true when that makes other reads due, for example the text
   * of an e-mail's next copy.
   */
  const applyDeletions = () =>
    store.transaction(() => {
      if (stopNew.aborted) return false
      const done = finishedNow()
      for (const resource of done) settle(context, resource)
      return done.some(({ name }) => !isFinished(name))
    })

  /**
   * Runs until nothing is due, or `MOST_REPEATS` is reached. Returns the finished resources. The next run reads
   * whatever falls due later.
   */
  const readAll = async (running: Scheduler): Promise<readonly Resource[]> => {
    for (let repeats = 0; ; ) {
      await running.run()
      if ((await waitToConfirm(running)) || (await applyDeletions())) continue
      const finished = finishedNow()
      if (stopNew.aborted || repeats >= MOST_REPEATS || finished.length === resources.length) return finished
      repeats += 1
    }
  }

  return {
    progress: (): BackfillProgress => ({
      ...(scheduler?.progress ?? noProgress()),
      begun: scheduler !== undefined,
      confirmingUntil,
      resources: resources.map(({ name }) => ({
        resource: name,
        counts: context.runs.counts(name),
        finished: chosen.sources().length > 0 && isFinished(name),
        isUnread: isUnread(context, name),
      })),
    }),
    /** The result of a run that is over, also of one that an error ended; undefined before. */
    result: () => result,
    /** The server's clock, in ms since the epoch; undefined before the first answer. */
    serverTime: context.server.nowIfKnown,
    async run(): Promise<BackfillResult> {
      const { runs, continuedFrom } = await begin(context, chosen, deps.governor.state().ratePerSecond)
      scheduler = createScheduler({
        ...deps,
        context,
        resources,
        sources: chosen.sources(),
        // A person may wait for this run, so lost access ends the run at once. Lost access never causes deletions.
        access: { againAfterMs: 0, wasAnswered: false, wasLost: false, isFirstRefusalFinal: false },
      })
      const { progress } = scheduler
      const ending = new AbortController()
      const recording = recordMinutes(deps, () => trafficOf(progress, context), ending.signal)
      let stopped: unknown
      let finished: readonly Resource[] | undefined
      try {
        finished = await readAll(scheduler)
        await store.crmTables.finish(stopNew)
      } catch (error) {
        stopped = error
      }
      ending.abort()
      await recording
      const interrupted = stopped !== undefined || stopNew.aborted
      const ended = await store.transaction(() => {
        const read = finished ?? finishedNow()
        return resources.map(resource => endRound(context, resource, { interrupted, read }))
      })
      await store.transaction(() => {
        closeRuns(context, runs, ended, stopped)
        for (const resource of resources) {
          const { name } = resource
          const of = { resource, sources: sourcesOf(name), pollMs }
          const dueMs = isFinished(name) ? nextDueOfDaemonMs(context, of) : 0
          store.state.nextRun(name, isoInstant(clock.now() + dueMs))
        }
      })
      const asOf = continuedFrom && isoInstant(context.server.from(Date.parse(continuedFrom)))
      result = resultOf(ended, asOf, progress)
      if (stopped === undefined) return result
      result = { ...result, complete: false, interrupted: false }
      throw stopped
    },
  }
}

interface BegunRounds {
  /** The ids of the new runs. */
  runs: ReadonlyMap<ResourceName, number>
  /** When the interrupted backfill began whose rounds are continued, by this machine's clock. */
  continuedFrom: string | undefined
}

/** Begins a round and a run of each resource, and creates its sources. */
async function begin(
  context: EngineContext,
  { resources, createSources }: ChosenResources,
  perSecond: number,
): Promise<BegunRounds> {
  const { store } = context
  const begun = await store.transaction(() => {
    store.dueClock.note()
    processRequests(context)
    sweepTexts(
      context,
      resources.map(({ name }) => name),
      perSecond,
    )
    return beginRounds(context, resources)
  })
  await store.transaction(() => createSources(context))
  return begun
}

/** Begins a round for each resource, unless an interrupted backfill has begun it. */
function beginRounds(context: EngineContext, chosen: readonly Resource[]): BegunRounds {
  const { state, runs } = context.store
  const now = context.now()
  const states = chosen.map(({ name }) => state.get(name))
  const since = interruptedSince(states)
  for (const round of states) {
    const { resource } = round
    // The interrupted backfill has begun this round. If it has ended the round too, the resource is not read again.
    if (isContinued(round, since)) continue
    const confirming = isHoldOver(context, resource)
    if (confirming) suspectAgain(context, resource)
    context.rounds.begin(resource, 'resumable', { at: now, confirming })
  }
  return {
    runs: new Map(
      states.map(({ resource, firstCompleteAt }) => [
        resource,
        runs.begin(resource, firstCompleteAt === null ? 'history' : 'audit', now),
      ]),
    ),
    continuedFrom: since,
  }
}

interface Ending {
  interrupted: boolean
  /** The resources of which every due request is done. */
  read: readonly Resource[]
}

/**
 * Ends the round of a resource, unless the resource has failed and the run was interrupted: the next run then continues
 * the round.
 */
function endRound(context: EngineContext, resource: Resource, { interrupted, read }: Ending): ResourceResult {
  const { name } = resource
  const { runs, rounds, backoffs, server, store } = context
  const result = (outcome: RunOutcome): ResourceResult => {
    const failure = runs.failure(name)
    const reason = failure ? reasonWithHint(failure) : backoffs.reason(name)
    return { resource: name, outcome, ...runs.counts(name), ...(reason !== undefined && { reason }) }
  }
  const isWaiting = interrupted && confirmationMs(context, [name]) !== undefined
  if (!read.includes(resource) || isWaiting) return result('stopped')
  const outcome = recordOutcome(context, resource, true)
  const now = context.now()
  const { roundOpen, roundStartedAt } = store.state.get(name)
  if (roundOpen && !interrupted) {
    const asOf = isoInstant(server.from(Date.parse(roundStartedAt ?? now)))
    rounds.end(name, { complete: false, asOf, now, deletionsSince: now })
  }
  return result(outcome)
}

function closeRuns(
  context: EngineContext,
  runs: ReadonlyMap<ResourceName, number>,
  ended: readonly ResourceResult[],
  stopped: unknown,
): void {
  for (const { resource, outcome, reason } of ended) {
    const id = runs.get(resource)
    if (id === undefined) continue
    const error = outcome === 'stopped' && stopped instanceof StopError ? reasonWithHint(stopped) : reason
    context.runs.end(id, resource, outcome, error)
  }
}

function isUnread({ runs, backoffs }: EngineContext, name: ResourceName): boolean {
  if (runs.failure(name) !== undefined) return true
  return backoffs.reason(name) !== undefined && runs.counts(name).rowsRead === 0
}

function resultOf(
  ended: readonly ResourceResult[],
  continuedFrom: string | undefined,
  { requests, throttled }: SchedulerProgress,
): BackfillResult {
  return {
    complete: ended.every(({ outcome }) => outcome === 'complete' || outcome === 'unavailable'),
    interrupted: ended.some(({ outcome }) => outcome === 'stopped'),
    continuedFrom,
    resources: ended,
    requests,
    throttled,
  }
}

/** The most times that `scheduler.run` is called again because new reads have fallen due. */
const MOST_REPEATS = 3

/** If replicas of the API disagree, suspicions may arise indefinitely. After this many waits, the next run decides. */
const MOST_WAITS = 4
