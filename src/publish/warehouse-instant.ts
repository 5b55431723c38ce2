import type { Sqlite } from '../store/database/sqlite-types.ts'
import { refuseOlder } from '../store/migrations/current.ts'
import { appliedMigrations } from '../store/migrations/journal.ts'
import { noWarehouseError, readStatus } from '../store/status/status.ts'

/** Reads a warehouse as of one instant: all statements of `work` see the same rows. */
export async function atOneInstant<Result>(db: Sqlite, work: () => Promise<Result>): Promise<Result> {
  if (appliedMigrations(db).length === 0) throw noWarehouseError(db.name)
  refuseOlder(db)
  db.pragma('temp_store = FILE')
  db.exec('BEGIN')
  try {
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
  const offered = readStatus(db).filter(({ state }) => state !== 'unavailable')
  const complete = offered.map(({ complete_as_of: at }) => at)
  const fresh = offered.flatMap(({ fresh_as_of: at }) => at ?? [])
  return {
    complete_as_of: complete.some(at => at === null) ? null : (complete.toSorted()[0] ?? null),
    fresh_as_of: fresh.toSorted()[0] ?? null,
  }
}
