import type { App } from '../app.ts'
import type { Settings } from '../config.ts'
import type { Log } from '../log.ts'
import { buildSearch } from '../store/search-build.ts'
import type { LiveArea } from './live-area.ts'

export interface SearchStep {
  app: Pick<App, 'clock' | 'store'>
  settings: Pick<Settings, 'search'>
  log: Log
  /** Where there is one, it shows how far the building is. */
  area: Pick<LiveArea, 'draw' | 'clear'> | undefined
  signal: AbortSignal
}

/** A signal is heard between two pieces. */
const PIECE_MS = 200

/** The last step of a backfill: what was read is taken into the full-text indices. True when that came to its end. */
export async function indexForSearch({ app, settings, log, area, signal }: SearchStep): Promise<boolean> {
  const { clock, store } = app
  const began = clock.elapsed()
  const isWanted = settings.search.enabled
  const { complete, changed } = await buildSearch({
    store,
    clock,
    isWanted,
    pieceMs: PIECE_MS,
    share: 1,
    signal,
    onProgress: ({ done, total }) =>
      area?.draw([`Full-text indices: ${total === 0 ? 100 : Math.floor((100 * done) / total)} %`]),
  })
  area?.clear()
  if (!complete) log.warn('The full-text indices are not finished; the next run goes on with them')
  else if (changed) {
    const said = isWanted ? 'The full-text indices are up to date' : 'The full-text indices are dropped'
    log.info(said, { duration_ms: Math.round(clock.elapsed() - began) })
  }
  return complete
}
