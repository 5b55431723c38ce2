import type { Clock } from '../clock.ts'
import type { ApiSettings } from '../config.ts'
import type { Log } from '../log.ts'
import type { ResourceName } from '../resource.ts'
import { createSearch } from '../store/search.ts'
import { type BuildOptions, buildSearch } from '../store/search-build.ts'
import type { Store } from '../store/store.ts'

/** Small enough that the reading does not notice it, together with what FTS5 writes out at each one's end. */
export const SEARCH_PIECE: Pick<BuildOptions, 'pieceMs' | 'share'> = { pieceMs: 5, share: 0.25 }

/** Most new e-mails have their text by then, so that they are taken in once and not twice. */
const TAKE_IN_MS = 30_000
const LOADED_YET_MS = 1000

export interface KeepingDeps {
  store: Store
  clock: Clock
  log: Log
  settings: Pick<ApiSettings, 'search' | 'sync'>
  signal: AbortSignal
}

/**
 * Makes the full-text indices beside the reading, once what they are made of was read to its end for the first time,
 * and takes in now and then what has come since; or drops them, where they are not wanted.
 */
export async function keepSearch({ store, clock, log, settings, signal }: KeepingDeps): Promise<void> {
  const isWanted = settings.search.enabled
  const search = createSearch(store)
  const hadAny = search.isBegun()
  let isTold = false
  while (!signal.aborted) {
    if (!isWanted || search.isBegun() || isLoaded(store, settings.sync)) {
      const began = clock.elapsed()
      const { complete } = await buildSearch({ store, clock, isWanted, signal, ...SEARCH_PIECE })
      if (complete && !isTold && hadAny !== isWanted) {
        const said = isWanted ? 'The full-text indices are made' : 'The full-text indices are dropped'
        log.info(said, { duration_ms: Math.round(clock.elapsed() - began) })
      }
      isTold ||= complete
      if (complete && !isWanted) return
    }
    await clock.sleep(search.isBegun() ? TAKE_IN_MS : LOADED_YET_MS, signal)
  }
}

const INDEXED: readonly ResourceName[] = ['messages', 'message_bodies', 'meetings', 'transcripts']

/** A resource that cannot be read is not waited for. */
function isLoaded({ state }: Store, { resources }: ApiSettings['sync']): boolean {
  return INDEXED.filter(name => resources?.includes(name) ?? true)
    .map(state.get)
    .every(one => (one.firstCompleteAt ?? one.failingSince ?? one.unavailableSince) !== null)
}
