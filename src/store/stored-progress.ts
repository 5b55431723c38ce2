import { hasTable } from './database/existing-tables.ts'
import { statementCache } from './database/statements.ts'
import { databaseStats, openDatabase, refuseOlder } from './file/open.ts'
import { createRowTimes } from './rows/event-times.ts'
import { createStoredRows } from './rows/row-state.ts'
import type { Store } from './store.ts'
import { createState } from './sync/resource-state.ts'
import { createSegments } from './sync/segments.ts'
import { createWorkload, type ReadWorkload } from './sync/workload.ts'

/** What the plan of a backfill reads from a database: how far the lists and single reads are. */
export interface StoredProgress extends Pick<Store, 'state' | 'segments' | 'rowTimes' | 'stored'> {
  workload: ReadWorkload
  close(): void
}

/**
 * Opens the database read-only.
 * @returns undefined when there is no database, or the database is empty
 * @throws StopError (73) when an older version wrote the database, or it cannot be opened
 */
export function openStoredProgress(path: string): StoredProgress | undefined {
  if (databaseStats(path) === undefined) return undefined
  const db = openDatabase({ path, readonly: true })
  try {
    if (!hasTable(db, 'sync_resources')) {
      db.close()
      return undefined
    }
    refuseOlder(db)
  } catch (error) {
    db.close()
    throw error
  }
  const prepare = statementCache(db)
  return {
    state: createState(prepare),
    segments: createSegments(prepare),
    rowTimes: createRowTimes(prepare),
    stored: createStoredRows(prepare),
    workload: createWorkload(prepare),
    close: () => void db.close(),
  }
}
