import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { CATALOG } from '../catalog/catalog.ts'
import type { ApiSettings } from '../config/loaded-settings.ts'
import { SEARCH_BUILD_PACE } from '../retention/maintain.ts'
import { buildSearch, createSearchIndices } from '../store/search/indices.ts'
import type { OpenStore } from '../store/store.ts'

/** The interval of updates: long enough for most new e-mails to get their text, so that they are indexed only once. */
const UPDATE_MS = 30_000
const LOADED_CHECK_MS = 1000

export interface SearchDeps {
  store: OpenStore
  clock: Clock
  log: Log
  settings: Pick<ApiSettings, 'search'> & { sync: Pick<ApiSettings['sync'], 'resources'> }
  signal: AbortSignal
}

/**
 * Builds the full-text indices as soon as their resources are loaded, then updates them every 30 s. Drops them when
 * `search.enabled` is false.
 */
export async function maintainSearch({ store, clock, log, settings, signal }: SearchDeps): Promise<void> {
  const isWanted = settings.search.enabled
  const search = createSearchIndices(store)
  const hadAny = search.exists()
  let isLogged = false
  let upToDateAt = -1
  const update = async (): Promise<boolean> => {
    const commits = store.transaction.commits()
    if (commits === upToDateAt) return true
    if (isWanted && !search.exists() && !isLoaded(store, settings.sync)) return false
    const began = clock.elapsed()
    const { complete } = await buildSearch({ store, clock, isWanted, signal, ...SEARCH_BUILD_PACE })
    if (complete && !isLogged && hadAny !== isWanted) {
      const message = isWanted ? 'The full-text indices are built' : 'The full-text indices are dropped'
      log.info(message, { duration_ms: Math.round(clock.elapsed() - began) })
    }
    isLogged ||= complete
    if (complete) upToDateAt = commits
    return complete
  }
  while (!signal.aborted) {
    let waitMs = UPDATE_MS
    try {
      if (await update()) {
        if (!isWanted) return
      } else if (!search.exists()) waitMs = LOADED_CHECK_MS
    } catch (error) {
      // The disk may be full, or another program may hold a write transaction.
      log.warn('The full-text indices cannot be written; parley tries again', { error })
    }
    await clock.sleep(waitMs, signal)
  }
}

const SEARCHED = CATALOG.filter(({ isSearched }) => isSearched).map(({ name }) => name)

/** Whether each searched resource that is synced has been read completely once, is failing, or is unavailable. */
function isLoaded({ state }: OpenStore, { resources }: SearchDeps['settings']['sync']): boolean {
  return SEARCHED.filter(name => resources?.includes(name) ?? true)
    .map(state.get)
    .every(one => (one.firstCompleteAt ?? one.failingSince ?? one.unavailableSince) !== null)
}
