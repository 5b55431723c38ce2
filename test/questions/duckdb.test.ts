import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type DuckDBConnection, DuckDBInstance, type JS } from '@duckdb/node-api'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { DICTIONARY } from '../../src/dictionary/dictionary.ts'
import { duckdbSql } from '../../src/dictionary/duckdb-sql.ts'
import { openDatabase } from '../../src/store/database/open.ts'
import { quote } from '../../src/store/database/sql.ts'
import type { Sqlite } from '../../src/store/database/sqlite-types.ts'
import { dealViews } from '../../src/store/views/deals.ts'
import { exportTo } from '../export/exporting.ts'
import { makeParquetViews } from '../support/duckdb-views.ts'
import { demoWarehouse } from './demo-warehouse.ts'
import { differences } from './differences.ts'
import { questionFiles, withParameters } from './question-file.ts'
import type { Expected } from './recount.ts'
import { RECOUNTS } from './recounts.ts'

/** The questions in DuckDB, over an export of a workspace that was read, changed and read again. */

/** Each engine has its own clock, and seconds may pass between their answers. */
const NOW = new Date().toISOString()

let sqlite: Sqlite
let instance: DuckDBInstance
let connection: DuckDBConnection

beforeAll(async () => {
  const { file } = await demoWarehouse()
  const target = mkdtempSync(join(tmpdir(), 'parley-questions-'))
  await exportTo(file, target)
  sqlite = openDatabase({ path: file, readonly: true })
  instance = await DuckDBInstance.create(':memory:')
  connection = await instance.connect()
  await makeParquetViews(connection, target)
})

afterAll(() => {
  connection.closeSync()
  instance.closeSync()
  sqlite.close()
})

describe.each(questionFiles())('$name', file => {
  test('the question runs in DuckDB as it is', async () => {
    await connection.run(duckdbSql(file.sql, DICTIONARY))
  })

  test.each([
    ['at the same instant', {}],
    ['with the parameters of the workspace', RECOUNTS[file.name]?.parameters ?? {}],
  ])('the question gives the same answer in DuckDB and SQLite, %s', async (_, parameters) => {
    const sql = withParameters(file, parameters).replaceAll("'now'", `'${NOW}'`)
    const wanted = sqlite.prepare(sql).all() as Expected[]
    const result = await connection.runAndReadAll(duckdbSql(sql, DICTIONARY))
    const found = result.getRowObjectsJS().map(row => mapped(row, plain))
    expect(
      differences(
        found,
        wanted.map(row => mapped(row, plain)),
      ),
    ).toEqual([])
  })

  test('the warehouse has the question as SQL for both', () => {
    const [row] = sqlite.prepare('SELECT * FROM parley_questions WHERE name = ?').all(file.name) as Expected[]
    expect(row).toMatchObject({
      question: file.question,
      sql: file.sql,
      duckdb_sql: duckdbSql(file.sql, DICTIONARY),
    })
    const parameters = JSON.parse(String(row?.['parameters'])) as { name: string; value: string }[]
    expect(new Map(parameters.map(({ name, value }) => [name, value]))).toEqual(file.parameters)
    expect(parameters.filter(parameter => Object.values(parameter).includes(''))).toEqual([])
  })
})

test('the views of deals have the same rows in DuckDB, with their SQL as it is', async () => {
  await connection.run('CREATE MACRO julianday(t) AS julian(CAST(t AS TIMESTAMP))')
  for (const { name, sql } of dealViews(sqlite)) {
    await connection.run(sql)
    const columns = sqlite.prepare(`SELECT * FROM ${name}`).columns()
    // The length of the current stay grows between the two answers.
    const shown = columns.map(column => column.name).filter(column => column !== 'days')
    const wanted = sqlite.prepare(`SELECT ${shown.map(quote).join(', ')} FROM ${name}`).all() as Expected[]
    const found = await connection.runAndReadAll(`SELECT ${shown.map(asStored).join(', ')} FROM ${name}`)
    const sorted = (rows: readonly Record<string, JS | string | number | null>[]) =>
      rows.map(row => JSON.stringify(mapped(row, plain))).sort()
    expect(wanted.length).toBeGreaterThan(20)
    expect(sorted(found.getRowObjectsJS())).toEqual(sorted(wanted))
  }
})

/** Instants as SQLite has them. */
const asStored = (column: string): string =>
  /^at$|_at$|^known_from$/.test(column)
    ? `strftime(${quote(column)} AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%S.%gZ') AS ${quote(column)}`
    : quote(column)

const mapped = <From, To>(row: Readonly<Record<string, From>>, map: (cell: From) => To): Record<string, To> =>
  Object.fromEntries(Object.entries(row).map(([name, cell]) => [name, map(cell)]))

/** JSON gives numbers as text in one engine and as numbers in the other; DuckDB has types for truth and whole numbers. */
function plain(cell: JS | string | number | null): string | number | null {
  if (cell === null || cell === undefined) return null
  if (typeof cell === 'bigint' || typeof cell === 'boolean') return Number(cell)
  if (typeof cell === 'number') return cell
  const text = String(cell)
  return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text
}
