/** The tables and indices that parley's migrations create, so without typed CRM tables and full-text indices. */
export interface OwnObjects {
  tables: ReadonlySet<string>
  indices: ReadonlySet<string>
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
