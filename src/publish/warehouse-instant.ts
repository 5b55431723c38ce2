import type { Sqlite } from '../store/database/sqlite-types.ts'
import { refuseOlder } from '../store/file/open.ts'
import { appliedMigrations } from '../store/migrations/journal.ts'
import { noWarehouseError } from '../store/status/status.ts'

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
