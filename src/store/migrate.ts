import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { EXIT_STATUS, StopError } from '../errors.ts'
import type { Sqlite } from './open.ts'

/** Where `npm run schema` writes the migrations; beside `src` and `dist` alike. */
const FOLDER = fileURLToPath(new URL('../../drizzle', import.meta.url))

interface Journal {
  entries: readonly { when: number; tag: string }[]
}

function journal(): Journal {
  return JSON.parse(readFileSync(`${FOLDER}/meta/_journal.json`, 'utf8')) as Journal
}

/** Time stamp of the newest migration that this version knows. */
export function newestMigration(): number {
  return Math.max(...journal().entries.map(({ when }) => when))
}

/** Time stamps of the migrations that a database has had, oldest first. */
export function appliedMigrations(db: Sqlite): number[] {
  const table = db.prepare("SELECT 1 FROM sqlite_master WHERE name = '__drizzle_migrations'").get()
  if (!table) return []
  return db
    .prepare('SELECT created_at FROM __drizzle_migrations ORDER BY created_at')
    .pluck()
    .all() as number[]
}

/**
 * Brings the schema up to this version.
 * drizzle runs migrations inside a transaction, where switching foreign keys off has no effect: a table that is
 * rebuilt would silently lose its cascading children. So they are off before, and all references checked after.
 */
export function migrate(db: Sqlite, file: string): void {
  if (appliedMigrations(db).at(-1) === newestMigration()) return
  const require = createRequire(import.meta.url)
  const { drizzle } = require('drizzle-orm/better-sqlite3') as typeof import('drizzle-orm/better-sqlite3')
  const migrator =
    require('drizzle-orm/better-sqlite3/migrator') as typeof import('drizzle-orm/better-sqlite3/migrator')
  db.pragma('foreign_keys = OFF')
  try {
    migrator.migrate(drizzle(db), { migrationsFolder: FOLDER })
    const broken = db.pragma('foreign_key_check') as unknown[]
    if (broken.length === 0) return
    throw new StopError(`The upgrade of ${file} left ${broken.length} rows without their parent`, {
      code: 'migration-broken',
      hint: 'Restore the copy made before the upgrade and report this.',
      exitStatus: EXIT_STATUS.databaseUnavailable,
    })
  } finally {
    db.pragma('foreign_keys = ON')
  }
}
