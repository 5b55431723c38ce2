import { readFileSync } from 'node:fs'
import { readInstalled } from '../../base/installation.ts'
import { openSqlite } from '../database/sqlite.ts'
import type { Sqlite } from '../database/sqlite-types.ts'
import { FOLDER, type Migration, migrationsIn } from './journal.ts'

/** The tables and indices that parley's migrations create, so without typed CRM tables and full-text indices. */
export interface OwnObjects {
  tables: ReadonlySet<string>
  indices: ReadonlySet<string>
}

/** The tables and indices that the migrations in a folder create. Default: the migrations of this version. */
export function ownObjects(folder: string = FOLDER): OwnObjects {
  return ownObjectsIn(migrationsIn(folder).map(migration => migrationSql(folder, migration)))
}

/** The SQL of each index that all migrations leave, by its name. */
export function ownIndices(): ReadonlyMap<string, string> {
  const db = openSqlite(':memory:')
  try {
    for (const migration of migrationsIn(FOLDER)) db.exec(migrationSql(FOLDER, migration))
    return indicesOf(db)
  } finally {
    db.close()
  }
}

/** The SQL of each index of a database by its name, without those of constraints. */
export function indicesOf(db: Sqlite): ReadonlyMap<string, string> {
  const sql = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
  return new Map(db.prepare<unknown[], [string, string]>(sql).raw().all())
}

export function migrationSql(folder: string, { tag }: Migration): string {
  const file = `${folder}/${tag}.sql`
  return readInstalled(file, () => readFileSync(file, 'utf8'))
}

/** Parses the SQL of all migrations. A table that a later migration drops counts as well. Pure. */
export function ownObjectsIn(migrations: readonly string[]): OwnObjects {
  const named = (pattern: RegExp) =>
    new Set(migrations.flatMap(sql => [...sql.matchAll(pattern)].flatMap(([, name]) => name ?? [])))
  return {
    tables: named(/^CREATE TABLE (?:IF NOT EXISTS )?[`"]?(\w+)/gim),
    indices: named(/^CREATE (?:UNIQUE )?INDEX (?:IF NOT EXISTS )?[`"]?(\w+)/gim),
  }
}
