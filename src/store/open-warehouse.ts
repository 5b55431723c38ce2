import { resolve } from 'node:path'
import { closeDatabase, closeKeepingWal } from './database/connections.ts'
import type { Sqlite } from './database/sqlite-types.ts'
import { requireStillThere } from './disk/location.ts'
import {
  APPLICATION_ID,
  applyMode,
  type ModeChange,
  type OpenOptions,
  openDatabase,
  openWritableFile,
} from './file/open.ts'
import { workspaceOf } from './file/workspace.ts'
import { writeError } from './migrations/foreign-objects.ts'
import { migrate, type UpgradeOptions } from './migrations/migrate.ts'
import { ensureReportTables } from './reporting/derived-tables.ts'
import { reportViews } from './reporting/views.ts'
import { createMeta, type Meta } from './sync/meta.ts'
import { replaceViews } from './views/replace.ts'
import { ensureViews } from './views/views.ts'

export interface WarehouseOptions extends Omit<OpenOptions, 'readonly'>, UpgradeOptions {
  migrations?: string
  /** When set, existing files get the mode too. Called for each file that had another mode. */
  onMode?: ((change: ModeChange) => void) | undefined
}

/**
 * Opens the warehouse for writing and brings schema and views up to this version. The caller holds the lock.
 * @throws StopError (73) when the file cannot be opened or migrated, parley did not create it, or a newer version wrote
 * it, (78) for another workspace
 */
export function openWarehouse(options: WarehouseOptions): Sqlite {
  const { path, mode = 0o600, workspace, onMode, ...upgrade } = options
  const file = resolve(path)
  const db = openDatabase({ path, mode, workspace, migrations: upgrade.migrations })
  try {
    // The id precedes the first table, so that a database whose creation was interrupted is recognised as parley's.
    if (db.pragma('application_id', { simple: true }) !== APPLICATION_ID) {
      db.pragma(`application_id = ${APPLICATION_ID}`)
    }
    migrate(db, file, upgrade)
    ensureViews(db)
    ensureReportTables(db)
    replaceViews(db, reportViews(db))
    // SQLite creates -wal and -shm with the mode of the database; files that exist already are changed here.
    if (onMode) for (const change of applyMode(filesOf(file), mode)) onMode(change)
    return db
  } catch (error) {
    closeKeepingWal(db)
    throw writeError(error, file)
  }
}

const filesOf = (file: string): string[] => ['', '-wal', '-shm'].map(suffix => `${file}${suffix}`)

/**
 * Writes to `sync_meta` for a waiting daemon, which has closed the database but holds its lock. Does nothing and
 * returns false if the database of another workspace is at this path by now.
 * @throws StopError (73) when there is no file at this path, or the error of SQLite, for example on a full disk
 */
export function noteWhileWaiting(
  file: string,
  workspaceId: string,
  write: (meta: Meta, db: Sqlite) => void,
): boolean {
  requireStillThere(file)
  const db = openWritableFile(file, 0o600)
  try {
    if (workspaceOf(db)?.id !== workspaceId) return false
    const meta = createMeta(sql => db.prepare(sql))
    db.transaction(() => write(meta, db)).immediate()
    return true
  } finally {
    closeDatabase(db)
  }
}
