import type { Log } from '../base/log.ts'
import type { NotedRemains, PlaceOfRemains, PurgeRemains } from '../store/status/report.ts'
import type { OpenStore } from '../store/store.ts'
import { META, readNote } from '../store/sync/meta.ts'

/**
 * The database stores a note about each place where a purge may have left content, for `parley status`. The notes also
 * limit the log: `reportRemains` logs once when content stays and once when it is gone. Otherwise every attempt that a
 * reader of the database blocks would log again, in later processes too.
 */

type RemainsStore = Pick<OpenStore, 'state' | 'transaction'>

const LINES = {
  wal: {
    begins: 'Purged content stays in the -wal file; its removal is tried again',
    ends: 'The -wal file no longer holds purged content',
  },
  'free space': {
    begins: 'The free space of the database file may hold remains of purged content',
    ends: 'The free space of the database file no longer holds remains of purged content',
  },
} as const

export interface FileReport {
  place: keyof typeof LINES
  path: string
  /** Undefined when the content is gone. */
  reason: string | undefined
}

/** Records whether a file of SQLite holds purged content, and logs when that changes. */
export async function reportRemains(
  { store, log }: { store: RemainsStore; log: Log },
  { place, path, reason }: FileReport,
): Promise<void> {
  const wasNoted = notesIn(store)[place] !== undefined
  await noteRemains(store, place, reason === undefined ? [] : [{ path, reason }])
  if (wasNoted === (reason !== undefined)) return
  if (wasNoted) log.info(LINES[place].ends, { path })
  else log.warn(LINES[place].begins, { path, reason })
}

/** Replaces the note about a place. */
export async function noteRemains(
  store: RemainsStore,
  place: PlaceOfRemains,
  remains: readonly PurgeRemains[],
): Promise<void> {
  const { [place]: noted, ...others } = notesIn(store)
  if (JSON.stringify(noted ?? []) === JSON.stringify(remains)) return
  const notes: NotedRemains = remains.length === 0 ? others : { ...others, [place]: remains }
  await store.transaction(() => store.state.setMeta(META.purgeRemains, JSON.stringify(notes)))
}

function notesIn({ state }: RemainsStore): NotedRemains {
  return readNote<NotedRemains>(state.meta, META.purgeRemains) ?? {}
}
