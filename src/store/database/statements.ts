import type { Prepare, Sqlite, Statement } from './connection.ts'

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
