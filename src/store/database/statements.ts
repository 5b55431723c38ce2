import type { Prepare, Sqlite, Statement } from './sqlite-types.ts'

export function statementCache(db: Sqlite): Prepare {
  const statements = new Map<string, Statement>()
  return <Row>(sql: string) => {
    const statement = statements.get(sql) ?? db.prepare<unknown[]>(sql)
    statements.set(sql, statement)
    return statement as Statement<Row>
  }
}

/** @returns the row of a query that always has exactly one row, such as a count */
export function onlyRow<Row>(statement: Pick<Statement<Row>, 'get'>, ...parameters: unknown[]): Row {
  const row = statement.get(...parameters)
  if (row === undefined) throw new TypeError('The query returned no row')
  return row
}
