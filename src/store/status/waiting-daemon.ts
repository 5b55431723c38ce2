import { closeDatabase } from '../database/connections.ts'
import type { Sqlite } from '../database/sqlite-types.ts'
import { requireStillThere } from '../disk/location.ts'
import { openWritableFile } from '../file/open.ts'
import { workspaceOf } from '../file/workspace.ts'
import { clearGates } from '../sync/gates.ts'
import { createMeta, META, type Meta } from '../sync/meta.ts'
import type { DaemonState } from './report.ts'

/**
 * Writes to `sync_meta` for a daemon that waits: it has closed the database but holds its lock. Does nothing and returns
 * false if the database of another workspace is at this path by now.
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

/**
 * Stores the state of a daemon that is stopped while it waits. Removes the gates, since they are no longer the reason why
 * nothing is read.
 * @throws as `noteWhileWaiting`
 */
export function noteDaemonEnd(file: string, workspaceId: string, state: DaemonState): void {
  noteWhileWaiting(file, workspaceId, (meta, db) => {
    meta.set(META.daemonState, JSON.stringify(state))
    clearGates(db)
  })
}
