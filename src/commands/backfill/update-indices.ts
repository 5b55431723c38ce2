import type { App } from '../../app/app.ts'
import type { Log } from '../../base/log.ts'
import type { Settings } from '../../config/load-settings.ts'
import { buildSearch } from '../../store/search/indices.ts'
import type { LiveArea } from '../../terminal/live-area.ts'

export interface SearchUpdate {
  app: Pick<App, 'clock' | 'store'>
  settings: Pick<Settings, 'search'>
  log: Log
  /** Shows the progress of the build; undefined when standard error is not a terminal. */
  area: Pick<LiveArea, 'draw' | 'clear'> | undefined
  signal: AbortSignal
}

/** Work is done in batches that take this many ms. The signal is checked between two batches. */
const BATCH_MS = 200

/**
 * A final step of a backfill: adds new rows to the full-text indices, or drops the indices when `search.enabled` is
 * false. Returns true when no work is left.
 */
export async function updateSearchIndices({
  app,
  settings,
  log,
  area,
  signal,
}: SearchUpdate): Promise<boolean> {
  const { clock, store } = app
  const began = clock.elapsed()
  const isWanted = settings.search.enabled
  const { complete, changed } = await buildSearch({
    store,
    clock,
    isWanted,
    pieceMs: BATCH_MS,
    share: 1,
    signal,
    onProgress: ({ done, total }) =>
      area?.draw([`Full-text indices: ${total === 0 ? 100 : Math.floor((100 * done) / total)} %`]),
  })
  area?.clear()
  if (!complete) log.warn('Full-text indices are not complete; the next run continues them')
  else if (changed) {
    const said = isWanted ? 'Full-text indices are up to date' : 'Dropped the full-text indices'
    log.info(said, { duration_ms: Math.round(clock.elapsed() - began) })
  }
  return complete
}
