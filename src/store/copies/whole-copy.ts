import { closeSync, fsyncSync, openSync, renameSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Sqlite } from '../database/sqlite-types.ts'
import { createFile } from '../disk/new-files.ts'

/** Copies a database, for upgrades, snapshots and restores. Child processes load this file, so it imports little. */

/**
 * Writes the committed content to a new file that only this user may read (mode 0600), and fsyncs it. The copy is not
 * in WAL mode, so it is a single file, and holds no remains of deleted rows. A read-only connection is enough.
 */
export function writeWholeCopy(db: Sqlite, part: string): void {
  // VACUUM INTO accepts an empty file. Creating it here gives it mode 0600 before the first row is in it.
  closeSync(createFile(part))
  db.prepare('VACUUM INTO ?').run(part)
  fsyncPath(part)
}

/** Renames a file within its folder, so that the new name survives a crash of the machine. */
export function renameDurably(from: string, to: string): void {
  renameSync(from, to)
  fsyncPath(dirname(to))
}

/** Flushes a file, or the directory entries of a folder, to the disk. */
export function fsyncPath(path: string): void {
  const handle = openSync(path, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}
