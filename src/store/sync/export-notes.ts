import { tryToNote } from '../database/connections.ts'
import { hasTable } from '../database/existing-tables.ts'
import type { Sqlite } from '../database/sqlite-types.ts'
import { resolvedPath } from '../disk/location.ts'
import { createMeta } from './meta.ts'

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

/** Stores a note, as `tryToNote` does. */
export const noteExport = (path: string, { folder, purgedAt }: ExportNote): boolean =>
  tryToNote(resolvedPath(path), db => createMeta(sql => db.prepare(sql)).set(PREFIX + folder, purgedAt))
