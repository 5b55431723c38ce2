import { closeSync, fsyncSync, openSync } from 'node:fs'
import type { Sqlite } from './open.ts'

/** How a copy of a database is made, be it before an upgrade or for people. It imports nothing: a process of its own does it too. */

/** Bytes of what is stored, as a copy of it would need: without free pages, with what is still in the WAL. */
export function contentBytes(db: Sqlite): number {
  const pragma = (name: string) => Number(db.pragma(name, { simple: true }))
  return (pragma('page_count') - pragma('freelist_count')) * pragma('page_size')
}

/**
 * Writes what is committed at this moment into a new file that only this user may read, and brings it to the disk.
 * The copy is not in WAL mode and needs no file beside it; of what was erased nothing is left in it. The database may
 * be open for reading only.
 */
export function writeWholeCopy(db: Sqlite, part: string): void {
  // Made before it is filled, so that nobody else can read it meanwhile.
  closeSync(openSync(part, 'wx', 0o600))
  db.prepare('VACUUM INTO ?').run(part)
  bringToDisk(part)
}

/** Of a file, or of the names in a folder. */
export function bringToDisk(path: string): void {
  const handle = openSync(path, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}
