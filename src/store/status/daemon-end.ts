import { closeDatabase } from '../database/close.ts'
import { workspaceOf } from '../database/workspace.ts'
import { openWritableFile } from '../file/writable.ts'
import { createMeta, META } from '../sync/meta.ts'
import type { DaemonState } from './report.ts'

/**
 * Stores the state of a daemon that is stopped while it waits: it has closed the database but holds its lock. Removes
 * the note that the API is unreachable, since that is no longer the reason why nothing is read. Does nothing if the
 * database of another workspace is at this path by now.
 * @throws the error of SQLite, for example on a full disk
 */
export function noteDaemonEnd(file: string, workspaceId: string, state: DaemonState): void {
  const db = openWritableFile(file, 0o600)
  try {
    if (workspaceOf(db)?.id !== workspaceId) return
    const meta = createMeta(sql => db.prepare(sql))
    const note = db.transaction(() => {
      meta.set(META.daemonState, JSON.stringify(state))
      meta.remove(META.unreachable)
    })
    note.immediate()
  } finally {
    closeDatabase(db)
  }
}
