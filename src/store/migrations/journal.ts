import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { readInstalled } from '../../base/installation.ts'
import { hasTable } from '../database/existing-tables.ts'
import type { Sqlite } from '../database/sqlite-types.ts'

/** The folder where `npm run schema` writes the migrations. The path is the same from `src` and from `dist`. */
export const FOLDER = fileURLToPath(new URL('../../../drizzle', import.meta.url))

export interface Migration {
  /** Its time stamp: the database stores it to mark the migration as applied. */
  when: number
  tag: string
}

export function migrationsIn(folder: string): readonly Migration[] {
  const file = `${folder}/meta/_journal.json`
  const journal = readInstalled(
    file,
    () => JSON.parse(readFileSync(file, 'utf8')) as { entries: Migration[] },
  )
  return journal.entries
}

/** Time stamp of the newest migration that this version knows. */
export function newestMigration(folder: string = FOLDER): number {
  return Math.max(...migrationsIn(folder).map(({ when }) => when))
}

/** Time stamps of the migrations applied to a database, oldest first. */
export function appliedMigrations(db: Sqlite): number[] {
  if (!hasTable(db, '__drizzle_migrations')) return []
  return db
    .prepare<unknown[], number>('SELECT created_at FROM __drizzle_migrations ORDER BY created_at')
    .pluck()
    .all()
}
