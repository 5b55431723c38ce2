import type { DuckDBConnection } from '@duckdb/node-api'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ossieModel } from '../../src/commands/schema/ossie.ts'
import { METRICS } from '../../src/dictionary/metrics.ts'
import { quote } from '../../src/store/database/sql.ts'
import type { Sqlite } from '../../src/store/database/sqlite-types.ts'
import { openDatabase } from '../../src/store/file/open.ts'
import { dealViews } from '../../src/store/views/deal-views.ts'
import { demoWarehouse } from './demo-warehouse.ts'
import { differences } from './differences.ts'
import { answerOf, type ExportInDuckdb, exportInDuckdb, plainRows } from './duckdb-answers.ts'
import { questionFiles, withParameters } from './question-file.ts'
import type { Expected } from './recount.ts'
import { RECOUNTS } from './recounts.ts'

/** The questions in DuckDB, over an export of a workspace that was read, changed and read again. */

/** Two engines may round a number between two tenths to either, since they add up numbers in another order. */
const ONE_DIGIT = 0.1001

let sqlite: Sqlite
let exported: ExportInDuckdb
let connection: DuckDBConnection

beforeAll(async () => {
  const { file } = await demoWarehouse()
  sqlite = openDatabase({ path: file, readonly: true })
  exported = await exportInDuckdb(file)
  connection = exported.connection
})

afterAll(() => {
  exported.close()
  sqlite.close()
})

describe.each(questionFiles())('$name', file => {
  test.each([
    ['as it is', {}],
    ['with the parameters of the workspace', RECOUNTS[file.name]?.parameters ?? {}],
  ])('the question gives the same answer in DuckDB and SQLite, %s', async (_, parameters) => {
    const sql = withParameters(file, parameters)
    const wanted = sqlite.prepare(sql).all() as Expected[]
    expect(differences(await answerOf(connection, sql), plainRows(wanted), ONE_DIGIT)).toEqual([])
  })

  test('the warehouse has the question, in both of its columns', () => {
    const [row] = sqlite.prepare('SELECT * FROM parley_questions WHERE name = ?').all(file.name) as Expected[]
    expect(row).toMatchObject({
      question: file.question,
      sql: file.sql,
      duckdb_sql: file.sql,
    })
    const parameters = JSON.parse(String(row?.['parameters'])) as { name: string; value: string }[]
    expect(new Map(parameters.map(({ name, value }) => [name, value]))).toEqual(file.parameters)
    expect(parameters.filter(parameter => Object.values(parameter).includes(''))).toEqual([])
  })
})

test.each(questionFiles().filter(({ sql }) => sql.includes(' LIKE ')))(
  'the term that $name has for letters outside ASCII finds both cases in DuckDB and SQLite',
  async ({ sql }) => {
    const [, term, condition] =
      /outside ASCII.*?'(%_.*?)'.* ON (\S+ LIKE \S+)/s.exec(sql.replaceAll('\n-- ', ' ')) ?? []
    const asked = `SELECT t.text FROM (SELECT '${term}' AS term) q
      JOIN (SELECT 'Die Übernahme' AS text UNION ALL SELECT 'die übernahme' UNION ALL SELECT 'die Angabe') t ON ${condition}
      ORDER BY t.text`
    const both = [{ text: 'Die Übernahme' }, { text: 'die übernahme' }]
    expect(sqlite.prepare(asked).all()).toEqual(both)
    expect(await answerOf(connection, asked)).toEqual(both)
  },
)

interface OssieMetric {
  name: string
  expression: { dialects: readonly { expression: string }[] }
}

test.each(METRICS)(
  'the metric $name has the same value in DuckDB, SQLite and a semantic model',
  async metric => {
    const sql = `SELECT ${metric.expression(value => value)} AS value FROM ${metric.dataset} WHERE ${metric.filter}`
    const found = await connection.runAndReadAll(sql)
    const [[value] = []] = found.getRows()
    const model = ossieModel({}) as { semantic_model: [{ metrics: OssieMetric[] }] }
    const [{ metrics }] = model.semantic_model
    const inModel = metrics.find(({ name }) => name === metric.name)?.expression.dialects[0]?.expression
    const ofModel = sqlite.prepare(`SELECT ${inModel} FROM ${metric.dataset}`).pluck().get()
    expect(ofModel).toBe(sqlite.prepare(sql).pluck().get())
    // The engines add up in different orders.
    expect(Number(value) / (sqlite.prepare<[], number>(sql).pluck().get() ?? 0)).toBeCloseTo(1, 12)
  },
)

test('the views of deals have the same rows in DuckDB', async () => {
  for (const { name } of dealViews(sqlite)) {
    const columns = sqlite.prepare(`SELECT * FROM ${name}`).columns()
    // The length of the current stay grows between the two answers.
    const shown = columns.map(column => column.name).filter(column => column !== 'days')
    const wanted = sqlite.prepare(`SELECT ${shown.map(quote).join(', ')} FROM ${name}`).all() as Expected[]
    const found = await connection.runAndReadAll(`SELECT ${shown.map(asStored).join(', ')} FROM ${name}`)
    const sorted = (rows: readonly Expected[]) => rows.map(row => JSON.stringify(row)).sort()
    expect(wanted.length).toBeGreaterThan(20)
    expect(sorted(plainRows(found.getRowObjectsJS()))).toEqual(sorted(plainRows(wanted)))
  }
})

/** Instants as SQLite has them. */
const asStored = (column: string): string =>
  /^at$|_at$|^known_from$/.test(column)
    ? `strftime(${quote(column)} AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%S.%gZ') AS ${quote(column)}`
    : quote(column)
