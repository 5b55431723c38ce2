import type { Sqlite } from '../store/database/sqlite-types.ts'
import { refuseOlder } from '../store/migrations/current.ts'
import { appliedMigrations } from '../store/migrations/journal.ts'
import { noWarehouseError, type StatusRow } from '../store/status/status.ts'

/** Reads a warehouse as of one instant: all statements of `work` see the same rows. */
export async function atOneInstant<Result>(db: Sqlite, work: () => Promise<Result>): Promise<Result> {
  if (appliedMigrations(db).length === 0) throw noWarehouseError(db.name)
  refuseOlder(db)
  db.pragma('temp_store = FILE')
  db.exec('BEGIN')
  try {
    // The view counts all rows whenever it is read, and it depends on the clock. This copy of it goes with the rollback.
    db.exec('CREATE TEMP TABLE sync_status AS SELECT * FROM main.sync_status')
    return await work()
  } finally {
    // Some errors of SQLite have already ended the transaction.
    if (db.inTransaction) db.exec('ROLLBACK')
  }
}

export interface StatusInstants {
  /** Everything that the API published before this instant is in the warehouse; null while history is loading. */
  complete_as_of: string | null
  fresh_as_of: string | null
}

/** Up to when the warehouse as a whole is fresh and complete. */
export function statusInstants(db: Sqlite): StatusInstants {
  const offered = db
    .prepare<unknown[], Pick<StatusRow, 'complete_as_of' | 'fresh_as_of'>>(
      "SELECT complete_as_of, fresh_as_of FROM sync_status WHERE state <> 'unavailable'",
    )
    .all()
  const complete = offered.map(({ complete_as_of: at }) => at)
  const fresh = offered.flatMap(({ fresh_as_of: at }) => at ?? [])
  return {
    complete_as_of: complete.some(at => at === null) ? null : (complete.toSorted()[0] ?? null),
    fresh_as_of: fresh.toSorted()[0] ?? null,
  }
}
