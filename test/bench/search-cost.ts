import { systemClock } from '../../src/base/clock.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { buildSearch } from '../../src/store/search/indices.ts'
import { openStore } from '../../src/store/store.ts'

/** The time and space that the full-text indices add to a warehouse. */
export interface SearchCost {
  /** Built at once, as at the end of a backfill. */
  buildMs: number
  bytes: number
}

/** Builds the indices of a finished warehouse without indices, as a backfill does at its end. */
export async function measureSearch(path: string): Promise<SearchCost> {
  const clock = systemClock()
  const store = openStore({ path, mode: 0o600, command: 'bench', pid: process.pid, clock })
  const began = clock.elapsed()
  try {
    const signal = new AbortController().signal
    await buildSearch({ store, clock, isWanted: true, pieceMs: 200, share: 1, signal })
  } finally {
    store.close()
  }
  return { buildMs: clock.elapsed() - began, bytes: bytesOfSearch(path) }
}

function bytesOfSearch(path: string): number {
  const db = openSqlite(path, { readonly: true })
  try {
    return db.prepare("SELECT sum(pgsize) FROM dbstat WHERE name GLOB 'search_*'").pluck().get() as number
  } finally {
    db.close()
  }
}
