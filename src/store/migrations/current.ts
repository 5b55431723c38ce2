import { EXIT_STATUS, StopError } from '../../base/errors.ts'
import type { Sqlite } from '../database/sqlite-types.ts'
import { appliedMigrations, newestMigration } from './journal.ts'

/**
 * For commands that only read: they cannot upgrade a database, and the tables of an older version lack columns that
 * this version queries. A database without any migration passes.
 * @throws StopError 73 when an older version wrote the database
 */
export function refuseOlder(db: Sqlite): void {
  const newest = appliedMigrations(db).at(-1)
  if (newest === undefined || newest >= newestMigration()) return
  throw new StopError(`${db.name} is from an older version of parley`, {
    code: 'database-older',
    hint: 'Run parley backfill to upgrade it, or restart the daemon if one runs; then run this command again.',
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}
