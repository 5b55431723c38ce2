import type { Clock } from '../clock.ts'
import type { ApiSettings } from '../config.ts'
import type { Log } from '../log.ts'
import type { ResourceName } from '../resource.ts'
import { SEARCH_PIECE } from '../retention/maintain.ts'
import { createSearch } from '../store/search.ts'
import { buildSearch } from '../store/search-build.ts'
import type { Store } from '../store/store.ts'

/** Most new e-mails have their text by then, so that they are taken in once and not twice. */
const TAKE_IN_MS = 30_000
const LOADED_YET_MS = 1000

export interface KeepingDeps {
  store: Store
  clock: Clock
  log: Log
  settings: Pick<ApiSettings, 'search'> & { sync: Pick<ApiSettings['sync'], 'resources'> }
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
  const keep = async (): Promise<boolean> => {
    if (isWanted && !search.isBegun() && !isLoaded(store, settings.sync)) return false
    const began = clock.elapsed()
    const { complete } = await buildSearch({ store, clock, isWanted, signal, ...SEARCH_PIECE })
    if (complete && !isTold && hadAny !== isWanted) {
      const said = isWanted ? 'The full-text indices are made' : 'The full-text indices are dropped'
      log.info(said, { duration_ms: Math.round(clock.elapsed() - began) })
    }
    isTold ||= complete
    return complete
  }
  while (!signal.aborted) {
    let waitMs = TAKE_IN_MS
    try {
      if ((await keep()) && !isWanted) return
      if (!search.isBegun()) waitMs = LOADED_YET_MS
    } catch (error) {
      // The disk may be full, or another program may write for long.
      log.warn('The full-text indices cannot be written; this is tried again', { error })
    }
    await clock.sleep(waitMs, signal)
  }
}

const INDEXED: readonly ResourceName[] = ['messages', 'message_bodies', 'meetings', 'transcripts']

/** A resource that cannot be read is not waited for. */
function isLoaded({ state }: Store, { resources }: KeepingDeps['settings']['sync']): boolean {
  return INDEXED.filter(name => resources?.includes(name) ?? true)
    .map(state.get)
    .every(one => (one.firstCompleteAt ?? one.failingSince ?? one.unavailableSince) !== null)
}
