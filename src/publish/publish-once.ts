import type { Clock } from '../base/clock.ts'
import { EXIT_STATUS, StopError } from '../base/errors.ts'
import { shellWord } from '../base/safe-text.ts'
import type { TableProgress } from '../export/partitions.ts'
import { databaseError } from '../store/database/sqlite-errors.ts'
import type { Sqlite } from '../store/database/sqlite-types.ts'
import { openDatabase } from '../store/file/open.ts'
import { readPublications } from '../store/sync/publications.ts'
import { metadataVersion } from './metadata-file.ts'
import { PUBLICATIONS } from './publications.ts'
import { type PublishSummary, publishWarehouse } from './publish.ts'
import {
  openTargetReader,
  openTargetStorage,
  type PublishTarget,
  refuseUnusableLocation,
  type TargetSettings,
} from './storage/open.ts'
import type { TargetReader } from './storage/target-reader.ts'

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
  /**
   * Called before anything is written if the target is empty and the warehouse knows of a publication there. The folder
   * may have been moved, or its disk not be mounted. Throws the error, or returns to begin again.
   */
  onEmptied(error: StopError): void
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
  onEmptied,
  onEnd,
}: OncePublishing): Promise<PublishSummary> {
  const { keep, tables, location } = settings.publish
  const db = openDatabase({ path: database, readonly: true })
  try {
    const access = { settings, location, clock, signal }
    const reader = await openTargetReader(target, access)
    try {
      await refuseUnusableLocation(reader, location)
      const emptied = await emptiedError(db, reader)
      if (emptied) onEmptied(emptied)
    } finally {
      reader.close()
    }
    const storage = await openTargetStorage(target, access)
    const options = { db, storage, clock, version, keep, tables, full, signal, onProgress }
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

async function emptiedError(db: Sqlite, { name, list }: TargetReader): Promise<StopError | undefined> {
  const { last } = readPublications(db, name)
  if (last === undefined) return undefined
  const hasTable = async (folder: string) =>
    (await list(folder)).some(path => metadataVersion(path) !== undefined)
  // The short listing comes first. A target without the table may have others, and is then damaged, not empty.
  if ((await hasTable(PUBLICATIONS)) || (await hasTable(''))) return undefined
  return new StopError(
    `${name} is empty; the last one known is publication ${last.publication} of ${last.published_at}`,
    {
      code: 'publish-emptied',
      hint: `Bring the files back: the folder may have been moved, or its disk not be mounted. Or parley publish ${shellWord(name)} begins again with number 1.`,
      exitStatus: EXIT_STATUS.databaseUnavailable,
    },
  )
}
