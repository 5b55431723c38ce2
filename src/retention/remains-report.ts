import type { Log } from '../log.ts'
import type { OpenStore } from '../store/store.ts'
import { META, parseNote } from '../store/sync/meta.ts'

/**
 * Logs once that purged content stays in a file of SQLite, and once that it is gone. The database stores which of them
 * were logged, since a reader or a full disk may be in the way for many attempts and processes.
 */
export type PlaceOfRemains = 'wal' | 'free space'

interface RemainsLines {
  begins: string
  ends: string
}

const LINES: Readonly<Record<PlaceOfRemains, RemainsLines>> = {
  wal: {
    begins: 'Purged content stays in the -wal file; its removal is tried again',
    ends: 'The -wal file no longer holds purged content',
  },
  'free space': {
    begins: 'The free space of the database file may hold remains of purged content',
    ends: 'The free space of the database file no longer holds remains of purged content',
  },
}

export interface RemainsReport {
  place: PlaceOfRemains
  path: string
  /** Undefined when the content is gone. */
  reason: string | undefined
}

export async function reportRemains(
  { store, log }: { store: Pick<OpenStore, 'state' | 'transaction'>; log: Log },
  { place, path, reason }: RemainsReport,
): Promise<void> {
  const logged = parseNote<PlaceOfRemains[]>(store.state.meta(META.remainsLogged)) ?? []
  const isLogged = logged.includes(place)
  if (isLogged === (reason !== undefined)) return
  const others = logged.filter(one => one !== place)
  const next = isLogged ? others : [...others, place]
  await store.transaction(() => store.state.setMeta(META.remainsLogged, JSON.stringify(next)))
  if (isLogged) log.info(LINES[place].ends, { path })
  else log.warn(LINES[place].begins, { path, reason })
}
