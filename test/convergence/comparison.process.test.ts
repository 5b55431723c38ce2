import { afterAll, beforeAll, expect, test } from 'vitest'
import { errorCode } from '../../src/base/errors.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import type { Sqlite } from '../../src/store/database/sqlite-types.ts'
import { compareTable, forgottenTables } from '../support/compare.ts'
import { type ExpectedTable, expectedWarehouse } from '../support/expected.ts'
import { startTrial, type Trial } from '../support/trial.ts'
import { readTruth } from '../support/truth.ts'

/** The comparison itself must be able to fail: at every table and every column. */

let trial: Trial
let db: Sqlite
let expected: ExpectedTable[]

beforeAll(async () => {
  trial = await startTrial()
  await trial.backfill()
  expected = expectedWarehouse(await readTruth(trial.simulator))
  db = openSqlite(trial.database)
})

afterAll(async () => {
  db.close()
  await trial.close()
})

/** The tables that an edit of one shows in: views show nothing of their own. */
const tables = (): ExpectedTable[] => expected.filter(({ isView }) => !isView)

function whileChanged(sql: string, values: unknown[], look: () => string[]): string[] {
  db.pragma('foreign_keys = OFF')
  db.exec('BEGIN')
  try {
    db.prepare(sql).run(...values)
    return look()
  } finally {
    db.exec('ROLLBACK')
  }
}

test('every table of the warehouse is compared and has rows to compare', () => {
  expect(forgottenTables(db, expected)).toEqual([])
  expect(expected.filter(({ rows }) => rows.length === 0).map(({ table }) => table)).toEqual([])
})

test('the comparison finds a missing row in every table', () => {
  const unnoticed = tables().filter(table => {
    const [row] = table.rows
    const where = Object.keys(row ?? {}).filter(column => table.key.includes(column))
    const values = where.map(column => row?.[column])
    const condition = where.map(column => `"${column}" IS ?`).join(' AND ')
    const sql = `DELETE FROM "${table.table}" WHERE ${condition}`
    return whileChanged(sql, values, () => compareTable(db, table)).length === 0
  })
  expect(unnoticed.map(({ table }) => table)).toEqual([])
})

test('the comparison finds another value in every column', () => {
  const unnoticed = tables().flatMap(table => {
    return Object.keys(table.rows[0] ?? {})
      .filter(column => {
        const other = `iif(typeof("${column}") IN ('integer', 'real'), "${column}" + 7777, '"another"')`
        const sql = `UPDATE OR IGNORE "${table.table}" SET "${column}" = ${other}`
        try {
          return whileChanged(sql, [], () => compareTable(db, table)).length === 0
        } catch (error) {
          // A number's column takes no text: where all are NULL, a number is another value.
          if (!errorCode(error)?.startsWith('SQLITE_')) throw error
          const number = `UPDATE OR IGNORE "${table.table}" SET "${column}" = 7777`
          return whileChanged(number, [], () => compareTable(db, table)).length === 0
        }
      })
      .map(column => `${table.table}.${column}`)
  })
  expect(unnoticed).toEqual([])
})

test('the comparison finds a surplus row in every table with a tombstone', () => {
  const entities = tables().filter(({ parent, table }) => {
    const columns = db.prepare('SELECT name FROM pragma_table_info(?)').pluck().all(table)
    return !parent && columns.includes('_deleted_at')
  })
  const unnoticed = entities.filter(table => {
    const fewer = { ...table, rows: table.rows.slice(1) }
    return compareTable(db, fewer).length === 0
  })
  expect(unnoticed.map(({ table }) => table)).toEqual([])
})
