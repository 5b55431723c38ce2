import type { Clock } from '../../base/clock.ts'
import { StopError } from '../../base/errors.ts'
import type { Prepare, Sqlite } from '../database/sqlite-types.ts'
import type { Transaction } from '../database/transaction.ts'
import { createSearchIndices, type SearchProgress } from './indices.ts'
import { SEARCH_REBUILT } from './objects.ts'

export interface BuildOptions {
  store: { db: Sqlite; prepare: Prepare; transaction: Transaction }
  clock: Clock
  /** The setting `search.enabled`: false drops the indices. */
  isWanted: boolean
  /** Duration of one transaction in ms. One very long text, or FTS5 writing its buffer, may take longer. */
  pieceMs: number
  /** Share of the time that building may take, above 0 and up to 1. It pauses for the rest. */
  share: number
  /** Stops after the current transaction. The next call continues there. */
  signal: AbortSignal
  /** Called after each transaction. */
  onProgress?: (progress: SearchProgress) => void
}

export interface Built {
  /** True when no work is left. */
  complete: boolean
  /** True when there was work to do. */
  changed: boolean
}

/** Brings the full-text indices up to date with the rows, or drops them. @throws StopError (73 or 75) */
export async function buildSearch(options: BuildOptions): Promise<Built> {
  const { store, clock, isWanted, pieceMs, share, signal, onProgress } = options
  let search = createSearchIndices(store)
  let isFirstDamage = true
  const changed = search.isDue(isWanted)
  for (let more = true; more; ) {
    if (signal.aborted) return { complete: false, changed }
    let tookMs = 0
    try {
      more = await store.transaction.aside(() => {
        const began = clock.elapsed()
        const goesOn = search.advance(isWanted, () => clock.elapsed() - began < pieceMs)
        tookMs = clock.elapsed() - began
        return goesOn
      })
    } catch (error) {
      const isBegunAgain = error instanceof StopError && error.code === SEARCH_REBUILT && isFirstDamage
      if (!isBegunAgain) throw error
      isFirstDamage = false
      search = createSearchIndices(store)
    }
    onProgress?.(search.progress())
    const pauseMs = (tookMs * (1 - share)) / share
    if (more && pauseMs > 0) await clock.sleep(pauseMs, signal)
  }
  return { complete: true, changed }
}
