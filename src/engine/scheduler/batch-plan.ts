import type { Store } from '../../store/store.ts'
import type { Batches } from '../context/job.ts'

export type BatchPlan = ReturnType<typeof createPlanInBatches>

export interface BatchPlanParts {
  /** Whether the input is complete. Called only before the work begins. */
  canBegin(): boolean
  batches(): Batches
}

/**
 * Work that a source has to finish before it creates requests, for example writing tasks for new rows. The first batch
 * runs at once and is usually the only one; each of the others runs in its own transaction. Rows that
 * arrive meanwhile are left to the next plan. A plan that fails runs again.
 *
 * A backfill runs all batches at once: if no request were left between two batches, the run would end. Nothing else
 * needs the event loop of a backfill. While another program holds the write lock, the plan does not begin; the next
 * `isReady` tries again.
 */
export function createPlanInBatches(
  { store, schedule }: { store: Pick<Store, 'transaction' | 'attempt'>; schedule: { isTimed: boolean } },
  { canBegin, batches }: BatchPlanParts,
) {
  let state: 'none' | 'running' | 'outdated' | 'ready' = 'none'
  let failure: { error: unknown } | undefined

  const runRest = async (rest: Batches) => {
    try {
      while (!(await store.transaction(() => rest.next().done)));
      state = state === 'outdated' ? 'none' : 'ready'
    } catch (error) {
      state = 'none'
      failure = { error }
    }
  }

  const begin = () => {
    const rest = batches()
    const begun = store.attempt(() => {
      let done = rest.next().done
      while (!done && !schedule.isTimed) done = rest.next().done
      return done
    })
    if (!begun) return
    state = begun.value ? 'ready' : 'running'
    if (state === 'running') void runRest(rest)
  }

  return {
    /** Begins the work if it can begin. True once it is finished. @throws the error with which it failed */
    isReady(): boolean {
      if (failure) {
        const { error } = failure
        failure = undefined
        throw error
      }
      if (state === 'none' && canBegin()) begin()
      return state === 'ready'
    },
    /** Called when the input of the work has changed. The work then runs again. */
    invalidate(): void {
      state = state === 'running' || state === 'outdated' ? 'outdated' : 'none'
    },
  }
}

/** The most rows of a table in one batch. A batch takes about 10 ms when each row becomes a task. */
const BATCH_SIZE = 5000

/** Does the work for the numbers from `after` (exclusive) to `upTo` (inclusive), range by range. */
export function* byRange(
  after: number,
  upTo: number,
  work: (range: { after: number; upTo: number }) => void,
): Batches {
  for (let from = after; from < upTo; from += BATCH_SIZE) {
    if (from > after) yield
    work({ after: from, upTo: Math.min(from + BATCH_SIZE, upTo) })
  }
}
