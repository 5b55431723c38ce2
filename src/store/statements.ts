import type { Sqlite, Statement } from './open.ts'

/** Prepares each SQL text once. Texts come from declarations, so there is a bounded number of them. */
export type Prepare = (sql: string) => Statement

export function statementCache(db: Sqlite): Prepare {
  const statements = new Map<string, Statement>()
  return sql => {
    const known = statements.get(sql)
    if (known) return known
    const statement = db.prepare<unknown[]>(sql)
    statements.set(sql, statement)
    return statement
  }
}
