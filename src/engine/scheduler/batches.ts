import type { Store } from '../../store/store.ts'

/** Work on the database that would hold up the event loop for long: it yields where others may have their turn. */
export type Batches = Generator<undefined, void, undefined>

/** What a source prepares before it asks for anything. */
export interface Plan {
  /** Begins it when it is not made and may be. False until it is. @throws what it failed with */
  isMade(): boolean
  /** What it was made from has changed: it is to be made anew. */
  forget(): void
}

export interface PlanContext {
  store: Pick<Store, 'transaction' | 'attempt'>
  schedule: { isTimed: boolean }
}

export interface PlanParts {
  /** What it is made from is there. Asked again until it is, and not after that. */
  mayBegin(): boolean
  batches(): Batches
}

/**
 * The first batch is done at once, and mostly it is all; each of the others in a transaction of its own. What comes
 * meanwhile is for the next plan, and one that was cut short is made again. A backfill makes it in one go: it ends
 * when nothing is left to ask for, and it serves nobody who would have to wait. While another program writes, the plan
 * is not begun; the next question begins it.
 */
export function createPlan({ store, schedule }: PlanContext, { mayBegin, batches }: PlanParts): Plan {
  let state: 'none' | 'under way' | 'outdated' | 'made' = 'none'
  let failure: { error: unknown } | undefined

  const goOn = async (rest: Batches) => {
    try {
      while (!(await store.transaction(() => rest.next().done)));
      state = state === 'outdated' ? 'none' : 'made'
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
    state = begun.value ? 'made' : 'under way'
    if (state === 'under way') void goOn(rest)
  }

  return {
    isMade() {
      if (failure) {
        const { error } = failure
        failure = undefined
        throw error
      }
      if (state === 'none' && mayBegin()) begin()
      return state === 'made'
    },
    forget() {
      state = state === 'under way' || state === 'outdated' ? 'outdated' : 'none'
    },
  }
}

/** Rows of a table in one batch: some ten milliseconds where each of them becomes a task. */
const BATCH_SIZE = 5000

/** Does the work for the numbers after `after` up to and with `upTo`, range by range. */
export function* byRange(after: number, upTo: number, work: (after: number, upTo: number) => void): Batches {
  for (let from = after; from < upTo; from += BATCH_SIZE) {
    if (from > after) yield
    work(from, Math.min(from + BATCH_SIZE, upTo))
  }
}
