import { openBriefWriter } from '../database/connections.ts'
import { hasTable } from '../database/existing-tables.ts'
import type { Sqlite } from '../database/sqlite-types.ts'
import { resolvedPath } from '../disk/location.ts'

/**
 * A folder that the warehouse was exported to, one value of `sync_meta` for each. The notes tell which exports may
 * still have content that was purged since.
 */
export interface ExportNote {
  /** An absolute path. */
  folder: string
  /** Content purged by this instant is in no file of the export. Empty when it is unknown or nothing was purged. */
  purgedAt: string
}

const PREFIX = 'export '

export function readExportNotes(db: Sqlite): ExportNote[] {
  if (!hasTable(db, 'sync_meta')) return []
  return db
    .prepare<unknown[], ExportNote>(
      `SELECT substr(key, ${PREFIX.length + 1}) AS folder, value AS purgedAt FROM sync_meta
       WHERE key >= '${PREFIX}' AND key < '${PREFIX.trimEnd()}!' ORDER BY key`,
    )
    .all()
}

/**
 * Stores a note, also while another process writes the warehouse. Keep a connection to the file open meanwhile, so that
 * its -wal and -shm files stay. Returns false where this is not possible: the user may only read the file, or the file
 * is locked.
 */
export function noteExport(path: string, { folder, purgedAt }: ExportNote): boolean {
  try {
    const db = openBriefWriter(resolvedPath(path))
    try {
      // A restore takes the database out of WAL mode before it replaces the file.
      if (db.pragma('journal_mode', { simple: true }) !== 'wal') return false
      db.prepare(
        'INSERT INTO sync_meta (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value',
      ).run(PREFIX + folder, purgedAt)
      return true
    } finally {
      db.close()
    }
  } catch {
    return false
  }
}
