import type { Clock } from '../clock.ts'
import type { Settings } from '../config/load-settings.ts'
import { openDatabase } from '../store/database/open.ts'
import { databaseError } from '../store/database/sqlite-errors.ts'
import type { Sqlite } from '../store/database/sqlite-types.ts'
import type { PublishProgress } from './publish.ts'
import type { TargetSummary } from './summary.ts'
import { type PublicationTarget, publishTo } from './target.ts'

/** One publication, as the command and the daemon's child process make it. */
export interface OncePublishing {
  /** An absolute path. */
  database: string
  target: PublicationTarget
  /** `keep`, `tables` and `location` of `[publish]` apply; its target and schedule do not. */
  settings: Pick<Settings, 'publish' | 'database'>
  clock: Clock
  /** Version of this program. */
  version: string
  /** Compares everything, also what is not noted as changed. */
  full?: boolean
  signal: AbortSignal
  onProgress(progress: PublishProgress): void
  /** Called with the warehouse's connection at the end, when the publication is complete or has failed. */
  onEnd?(db: Sqlite, outcome: PublishOutcome): void
}

export type PublishOutcome = { summary: TargetSummary } | { error: unknown }

/** @throws StopError as `openDatabase`, `publishTo` */
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
}: OncePublishing): Promise<TargetSummary> {
  const { keep, tables, location } = settings.publish
  const db = openDatabase({ path: database, readonly: true })
  try {
    const options = { db, settings, location, clock, version, keep, tables, full, signal, onProgress }
    const summary = await publishTo(target, options)
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
