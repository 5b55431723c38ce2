/** What a schema has by parley's migrations; every other table and index is someone else's. */
export interface OwnObjects {
  tables: ReadonlySet<string>
  indices: ReadonlySet<string>
}

/** By the text of all migrations. A table that a later one drops counts as well. Pure. */
export function ownObjectsIn(migrations: readonly string[]): OwnObjects {
  const named = (pattern: RegExp) =>
    new Set(migrations.flatMap(sql => [...sql.matchAll(pattern)].flatMap(([, name]) => name ?? [])))
  return {
    tables: named(/^CREATE TABLE (?:IF NOT EXISTS )?[`"]?(\w+)/gim),
    indices: named(/^CREATE (?:UNIQUE )?INDEX (?:IF NOT EXISTS )?[`"]?(\w+)/gim),
  }
}
