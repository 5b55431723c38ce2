import type { Clock } from '../base/clock.ts'
import type { TableProgress } from '../export/partitions.ts'
import { databaseError } from '../store/database/sqlite-errors.ts'
import type { Sqlite } from '../store/database/sqlite-types.ts'
import { openDatabase } from '../store/file/open.ts'
import { type PublishSummary, publishWarehouse } from './publish.ts'
import { openTargetStorage, type PublishTarget, type TargetSettings } from './storage/open.ts'

/** One publication, as the command and the daemon's child process make it. */
export interface OncePublishing {
  /** An absolute path. */
  database: string
  target: PublishTarget
  /** `keep`, `tables` and `location` of `[publish]` apply; its target and schedule do not. */
  settings: TargetSettings
  clock: Clock
  /** Version of this program. */
  version: string
  /** Compares every row, including rows of which no change was noted. */
  full?: boolean
  signal: AbortSignal
  onProgress(progress: TableProgress): void
  /** Called with the warehouse's connection at the end, when the publication is complete or has failed. */
  onEnd?(db: Sqlite, outcome: PublishOutcome): void
}

export type PublishOutcome = { summary: PublishSummary } | { error: unknown }

/** @throws the StopErrors of `openDatabase`, `openTargetStorage` and `publishWarehouse` */
export async function publishOnce({
  database,
  target,
  settings,
  clock,
  version,
  full = false,
  signal,
  onProgress,
  onEnd,
}: OncePublishing): Promise<PublishSummary> {
  const { keep, tables, location } = settings.publish
  const db = openDatabase({ path: database, readonly: true })
  try {
    const storage = await openTargetStorage(target, { settings, location, clock, signal })
    const { mode } = settings.database
    const options = { db, storage, clock, mode, version, keep, tables, full, signal, onProgress }
    const summary = await publishWarehouse(options).finally(storage.close)
    onEnd?.(db, { summary })
    return summary
  } catch (thrown) {
    const error = databaseError(thrown, database)
    onEnd?.(db, { error })
    throw error
  } finally {
    db.close()
  }
}
