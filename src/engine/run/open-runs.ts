import { HOUR_MS, isoInstant } from '../../base/clock.ts'
import { reasonWithHint, StopError } from '../../base/errors.ts'
import type { Resource } from '../../declare/resource.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import type { EngineContext } from '../context/context.ts'
import { scaled } from '../context/intervals.ts'
import type { Job, Lane, Source } from '../context/job.ts'
import { applyDeletions } from '../deletions/apply.ts'
import { nextDueMs } from '../due/due.ts'
import { isFullyRead, noteRecovery, type ResourceOutcome, recordOutcome } from './round-end.ts'

export interface OpenRunsDeps {
  context: EngineContext
  /** In catalogue order, parents included. */
  resources: readonly Resource[]
  sourcesOf(resource: ResourceName): readonly Source[]
  isIdle(resource: ResourceName): boolean
  /** False from an unexpected 403 or 404 until the next answer: a refusal then does not show that a row is gone. */
  isTrusted(): boolean
  onRunEnd(run: { resource: ResourceName; lane: Lane; outcome: string }): void
}

interface OpenRun {
  id: number
  lane: Lane
  /** When the run was opened, by `elapsed`. */
  began: number
  /** When deletions were last applied, by `elapsed`. */
  settledAt: number
}

/** While a run lasts, deletions are applied at this interval. */
const LATE_MS = HOUR_MS

/**
 * The runs of a session. The run of a resource is open from the first outcome of a request until nothing more of the
 * resource is due. At the end of the run, deletions are applied, and the resource's round ends if every list was read.
 * All functions except `afterJob` are called inside a transaction. Runs that a killed process left open end at the next
 * start (`closeInterrupted` in store/sync/runs.ts).
 */
export function createOpenRuns(deps: OpenRunsDeps) {
  const { context, resources, sourcesOf, isIdle, isTrusted } = deps
  const { store, clock, options } = context
  const runs = new Map<ResourceName, OpenRun>()

  /** Under a tight limit a run may take hours. Deletions do not wait for its end. */
  const lateSettlement = (name: ResourceName, run: OpenRun): (() => void) | undefined => {
    if (clock.elapsed() - run.settledAt < scaled(LATE_MS, options)) return undefined
    run.settledAt = clock.elapsed()
    return () => {
      if (isTrusted()) applyDeletions(context, name, false)
    }
  }

  /** Also records idle children of the resource, which had to wait until it was complete for the first time. */
  const recordOutcomes = (resource: Resource): ResourceOutcome => {
    const { name } = resource
    const wasComplete = context.rounds.wasComplete(name)
    const outcome = recordOutcome(context, resource, isTrusted())
    if (wasComplete || !context.rounds.wasComplete(name)) return outcome
    for (const other of resources) {
      const isWaiting = other.parents.includes(name) && !runs.has(other.name) && isIdle(other.name)
      if (isWaiting) recordOutcomes(other)
    }
    return outcome
  }

  const replan = (resource: Resource, rowsChanged: number) => {
    const dependents = rowsChanged > 0 ? resources.filter(other => dependsOn(other, resource.name)) : []
    for (const { name } of [resource, ...dependents]) for (const source of sourcesOf(name)) source.replan?.()
  }

  /** Whether the run has ended. */
  const endIfIdle = (resource: Resource): boolean => {
    const { name } = resource
    const run = runs.get(name)
    if (!run || !isIdle(name)) return false
    const outcome = recordOutcomes(resource)
    const counts = context.runs.counts(name)
    context.runs.end(run.id, name, outcome, errorOf(context, name, outcome))
    store.state.nextRun(name, isoInstant(clock.now() + nextDueMs(context, sourcesOf(name))))
    deps.onRunEnd({ resource: name, lane: run.lane, outcome })
    context.log.debug('Run ended', {
      resource: name,
      lane: run.lane,
      outcome,
      requests: counts.requests,
      rows: counts.rowsRead,
      changed: counts.rowsChanged,
      deleted: counts.rowsDeleted,
      duration_ms: Math.round(clock.elapsed() - run.began),
    })
    runs.delete(name)
    context.runs.begin(name)
    replan(resource, counts.rowsChanged)
    return true
  }

  return {
    /** Opens the run of the job's resource, if it is not open. */
    open({ resource }: Job, lane: Lane): void {
      const run = runs.get(resource)
      if (run && store.runs.isOpen(run.id, resource)) return
      const id = store.runs.begin(resource, lane, context.now())
      runs.set(resource, { lane, began: clock.elapsed(), settledAt: clock.elapsed(), ...run, id })
    },
    /** Returns the work that follows the end of a job, to be done in a transaction; undefined when there is none. */
    afterJob(job: Job): (() => void) | undefined {
      const run = runs.get(job.resource)
      const resource = resources.find(({ name }) => name === job.resource)
      if (!run || !resource) return undefined
      return isIdle(resource.name) ? () => void endIfIdle(resource) : lateSettlement(resource.name, run)
    },
    /**
     * Called at intervals. Ends the resource's run and round if they are over, since `afterJob` is called only when a
     * job ends. Also ends a round during a run, since under a tight rate limit the run may never end. Returns whether
     * something ended.
     */
    review(resource: Resource): boolean {
      const { name, parents } = resource
      const isReady =
        !context.rounds.wasComplete(name) && parents.every(context.rounds.wasComplete) && isIdle(name)
      if (runs.has(name) && endIfIdle(resource)) return true
      const isOver = runs.has(name) ? isFullyRead(context, resource) : isReady
      if (isOver) recordOutcomes(resource)
      else if (runs.has(name)) noteRecovery(context, resource)
      return isOver
    },
    /** Ends all runs when the session ends. */
    closeAll(stopped: unknown): void {
      const error = stopped instanceof StopError ? reasonWithHint(stopped) : undefined
      for (const [name, { id }] of runs) context.runs.end(id, name, 'stopped', error)
    },
  }
}

function errorOf({ runs, backoffs }: EngineContext, name: ResourceName, outcome: ResourceOutcome) {
  if (outcome === 'unavailable') return backoffs.reason(name)
  const failure = runs.failure(name)
  return failure && reasonWithHint(failure)
}

/** Whether a resource may have something to read when another one's rows have changed. */
function dependsOn({ parents, feeds }: Resource, name: ResourceName): boolean {
  const looksUp = Object.values(feeds).some(
    feed => feed.mode === 'timeline' && feed.lookup?.resource === name,
  )
  return looksUp || parents.includes(name)
}
