import { CATALOG } from '../catalog/catalog.ts'
import type { Resource } from '../catalog/resource.ts'
import type { ResourceName } from '../catalog/resource-names.ts'
import type { RunCounts } from '../store/sync/runs.ts'
import { applyDeletionsOf, beginRounds, closeRuns, endRound, type ResourceResult } from './backfill-rounds.ts'
import { createClockFollower, noteClock } from './clock-follower.ts'
import { createContext, type EngineContext } from './context.ts'
import { createConfirmationWait } from './deletions/confirmation-wait.ts'
import { byRounds } from './due/by-rounds.ts'
import { noteNextDue, type ScheduledResource } from './due/due.ts'
import { backoffForTheRun } from './due/feed-waits.ts'
import type { EngineDeps } from './engine-options.ts'
import { processRequests } from './handed-over.ts'
import type { Source } from './requests/job.ts'
import { noProgress, type SchedulerProgress } from './requests/request-counts.ts'
import { createScheduler, type Scheduler } from './scheduler/scheduler.ts'
import { createSources } from './sources.ts'

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
  const confirmation = createConfirmationWait({
    context,
    resources: deps.resources,
    stopNew: deps.stopNew,
    onWaited: ms => scheduler?.excludeWait(ms),
  })

  const isFinished = (name: ResourceName): boolean => {
    const resource = chosen.find(candidate => candidate.name === name)
    if (!resource) return true
    return resource.parents.every(isFinished) && (sources.get(name) ?? []).every(source => source.finished())
  }

  /**
   * Applies the deletions of the finished resources. Returns true when that makes other reads due, for example the text
   * of an e-mail's next copy.
   */
  const applyDeletions = () =>
    store.transaction(() => {
      if (deps.stopNew.aborted) return false
      const done = chosen.filter(({ name }) => isFinished(name))
      for (const resource of done) applyDeletionsOf(context, resource)
      return done.some(({ name }) => !isFinished(name))
    })

  const finishedNow = () => new Set(chosen.flatMap(({ name }) => (isFinished(name) ? [name] : [])))

  /**
   * Runs until nothing is due, or `MOST_REPEATS` is reached. Returns the finished resources. The next run reads
   * whatever falls due later.
   */
  const readAll = async (running: Scheduler): Promise<ReadonlySet<ResourceName>> => {
    for (let repeats = 0; ; ) {
      await running.run()
      if ((await confirmation.wait()) || (await applyDeletions())) continue
      const finished = finishedNow()
      if (deps.stopNew.aborted || repeats >= MOST_REPEATS || finished.size === chosen.length) return finished
      repeats += 1
    }
  }

  /** Returns the ids of the runs. */
  const begin = async () => {
    await createClockFollower({ clock, store })()
    await noteClock({ clock, store })
    const runs = await store.transaction(() => {
      processRequests(context)
      return beginRounds(context, chosen)
    })
    await store.transaction(() => {
      for (const resource of chosen) sources.set(resource.name, createSources(context, resource))
    })
    return runs
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
      confirmingUntil: confirmation.until(),
      resources: chosen.map(({ name }) => ({
        resource: name,
        counts: context.runs.counts(name),
        finished: sources.size > 0 && isFinished(name),
        isUnread: isUnread(context, name),
      })),
    }),
    serverTime: context.server.nowIfKnown,
    async run() {
      const runs = await begin()
      scheduler = createScheduler({
        ...deps,
        context,
        resources: chosen,
        sources: [...sources.values()].flat(),
        // A person may wait for this run, so lost access ends the run at once. Lost access never causes deletions.
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
      const interrupted = stopped !== undefined || deps.stopNew.aborted
      const ended = await store.transaction(() => {
        const read = finished ?? finishedNow()
        return chosen.map(resource => endRound(context, resource, { interrupted, read }))
      })
      await store.transaction(() => {
        closeRuns(context, runs, ended, stopped)
        noteNextDue(context, chosen.map(dueOf), deps)
      })
      if (stopped !== undefined) throw stopped
      return resultOf(ended, scheduler.progress)
    },
  }
}

function isUnread({ runs, backoffs }: EngineContext, name: ResourceName): boolean {
  if (runs.failure(name) !== undefined) return true
  return backoffs.reason(name) !== undefined && runs.counts(name).rowsRead === 0
}

function resultOf(
  ended: readonly ResourceResult[],
  { requests, throttled }: SchedulerProgress,
): BackfillResult {
  return {
    complete: ended.every(({ outcome }) => outcome === 'complete' || outcome === 'unavailable'),
    interrupted: ended.some(({ outcome }) => outcome === 'stopped'),
    resources: ended,
    requests,
    throttled,
  }
}

/** The most times that `scheduler.run` is called again because new reads have fallen due. */
const MOST_REPEATS = 3
