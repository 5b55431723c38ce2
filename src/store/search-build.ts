import type { Clock } from '../clock.ts'
import { createSearch, type SearchProgress } from './search.ts'
import type { Store } from './store.ts'

export interface BuildOptions {
  store: Pick<Store, 'db' | 'prepare' | 'transaction'>
  clock: Clock
  /** What the owner has set: false drops the indices. */
  isWanted: boolean
  /** How long a piece may be, but for what cannot be cut: one very long text, or FTS5's own writing out. */
  pieceMs: number
  /** How much of the time it may take, up to 1. */
  share: number
  /** Ends it after the piece under way; the next time it goes on from there. */
  signal: AbortSignal
  /** Told after each piece. */
  onProgress?: (progress: SearchProgress) => void
}

export interface Built {
  /** True when nothing is left to do. */
  complete: boolean
  /** True when there was anything to do. */
  changed: boolean
}

/** Brings the full-text indices up to what is stored, or drops them. @throws StopError (73) */
export async function buildSearch(options: BuildOptions): Promise<Built> {
  const { store, clock, isWanted, pieceMs, share, signal, onProgress } = options
  const search = createSearch(store)
  const changed = search.isDue(isWanted)
  for (let more = true; more; ) {
    if (signal.aborted) return { complete: false, changed }
    let tookMs = 0
    more = await store.transaction(() => {
      const began = clock.elapsed()
      const goesOn = search.advance(isWanted, () => clock.elapsed() - began < pieceMs)
      tookMs = clock.elapsed() - began
      return goesOn
    })
    onProgress?.(search.progress())
    const pauseMs = (tookMs * (1 - share)) / share
    if (more && pauseMs > 0) await clock.sleep(pauseMs, signal)
  }
  return { complete: true, changed }
}
