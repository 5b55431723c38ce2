import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import type { Manifest } from '../../src/export/manifest.ts'
import { quote } from '../../src/store/database/sql.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { type DuckCell, openDuck, sorted } from '../export/duckdb.ts'
import { emptyFolder, parley } from './parley.ts'
import { backfilled } from './workspace.ts'

const duck = await openDuck()

const PAGE = new URL('../../drizzle/README.md', import.meta.url)

const manifestIn = (folder: string) =>
  JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8')) as Manifest

/** The instant as of which every resource is complete. */
const completeAsOf = (folder: string) =>
  manifestIn(folder)
    .resources.flatMap(({ state, complete_as_of }) => (state === 'unavailable' ? [] : String(complete_as_of)))
    .toSorted()[0]

type Stored = string | number | bigint | null

/** A stored cell as a reader of this type sees it. A text in a CRM's column that is no value of its type is NULL. */
function cellAs(type: string | undefined, cell: Stored): DuckCell {
  if (cell === null) return null
  if (type === 'BOOLEAN') return cell === 1n
  if (type === 'DOUBLE') return Number.isFinite(Number(cell)) ? Number(cell) : null
  if (type?.startsWith('TIMESTAMP')) return /^\d{4}-\d\d-\d\dT.{12}Z$/.test(String(cell)) ? cell : null
  return cell
}

test.concurrent('an export needs no API settings, and every table has the rows of the warehouse, those of CRM objects too', async context => {
  const { cwd, file } = await backfilled(context)
  const exported = await parley(['export', 'parquet', 'out'], { cwd })
  expect(exported).toMatchObject({ status: EXIT_STATUS.done, stderr: '' })
  expect(exported.stdout).toMatch(/^transcript_entries +\d+/m)
  const folder = join(cwd, 'out')
  expect(exported.stdout).toMatch(`\nThe data are complete as of ${completeAsOf(folder)}.\n`)
  const db = openSqlite(file, { readonly: true })
  const { tables } = manifestIn(folder)
  for (const { table, folder: name, columns, rows } of tables) {
    const names = columns.map(column => quote(column.name))
    const own = new Set(db.prepare('SELECT name FROM pragma_table_info(?)').pluck().all(table) as string[])
    const sources = columns.map(({ name: column }) => {
      const digits = quote(column.replace(/_exact$/, ''))
      return own.has(column) ? quote(column) : `iif(typeof(${digits}) = 'text', ${digits}, NULL)`
    })
    const found = await duck.read(
      `SELECT ${names.join(', ')} FROM read_parquet('${folder}/${name}/**/*.parquet', hive_partitioning = true)`,
    )
    const types = Object.values(found.types)
    const stored = db
      .prepare(`SELECT ${sources.join(', ')} FROM ${quote(table)}`)
      .raw()
      .safeIntegers()
      .all() as Stored[][]
    expect(sorted(found.rows), table).toEqual(
      sorted(stored.map(row => row.map((cell, index) => cellAs(types[index], cell)))),
    )
    expect(rows, table).toBe(stored.length)
  }
  const typed = db.prepare('SELECT table_name FROM crm_objects WHERE table_name IS NOT NULL').pluck().all()
  expect(tables.map(({ table }) => table)).toEqual(expect.arrayContaining(typed))
  expect(typed).toContain('crm_deal')
  const deal = tables.find(({ table }) => table === 'crm_deal')
  expect(new Set(deal?.columns.map(({ type }) => type))).toEqual(
    new Set(['STRING', 'DOUBLE', 'BOOLEAN', 'DATE', 'TIMESTAMP(MILLIS, UTC)']),
  )
  db.close()
})

test.concurrent('every query of the analysts’ page for DuckDB finds its files, tables and columns, as it stands there', async context => {
  const { cwd } = await backfilled(context)
  await parley(['export', 'parquet', 'lake'], { cwd })
  const queries = [...readFileSync(PAGE, 'utf8').matchAll(/^```sql duckdb\n(.*?)^```/gms)]
  expect(queries.length).toBeGreaterThan(2)
  const withViews = await openDuck()
  await withViews.read(`SET file_search_path = '${cwd}/lake'`)
  await withViews.read(readFileSync(join(cwd, 'lake', 'views.sql'), 'utf8'))
  for (const [, sql = ''] of queries) {
    const { types } = await withViews.read(sql)
    expect(Object.keys(types).length, sql).toBeGreaterThan(1)
  }
})

test.concurrent('a number too long for a double keeps its digits in the column next to it', async context => {
  const { cwd, file } = await backfilled(context)
  const db = openSqlite(file)
  db.exec("UPDATE crm_deal SET amount = '12345678901234567890.12' WHERE id = (SELECT min(id) FROM crm_deal)")
  db.close()
  await parley(['export', 'parquet', 'out', '--tables', 'crm_deal'], { cwd })
  const { types, rows } = await duck.read(
    `SELECT amount, amount_exact FROM read_parquet('${cwd}/out/crm_deal/*.parquet') WHERE amount_exact LIKE '1234567890%'`,
  )
  expect({ types, rows }).toEqual({
    types: { amount: 'DOUBLE', amount_exact: 'VARCHAR' },
    rows: [[Number('12345678901234567890.12'), '12345678901234567890.12']],
  })
})

test.concurrent('a second export writes what changed, and reports it as JSON', async context => {
  const { cwd } = await backfilled(context)
  await parley(['export', 'parquet', 'out'], { cwd })
  const db = openSqlite(join(cwd, 'parley.db'))
  db.exec("UPDATE meetings SET title = 'another' WHERE id = (SELECT min(id) FROM meetings)")
  db.close()
  const { status, stdout } = await parley(['export', 'parquet', 'out', '--json'], { cwd })
  expect(status).toBe(EXIT_STATUS.done)
  const summary = JSON.parse(stdout) as { folder: string; tables: { table: string; files_written: number }[] }
  expect(summary).toMatchObject({
    folder: join(cwd, 'out'),
    complete_as_of: completeAsOf(join(cwd, 'out')),
    files_removed: 0,
  })
  expect(summary.tables.filter(({ files_written }) => files_written > 0)).toMatchObject([
    { table: 'meetings', files_written: 1 },
  ])
})

test.concurrent('an impossible export fails with a hint', async context => {
  const { cwd } = await backfilled(context)
  writeFileSync(join(cwd, 'file'), '')
  mkdirSync(join(cwd, 'foreign'))
  writeFileSync(join(cwd, 'foreign', 'thesis.txt'), '')
  const cases: [args: string[], status: number, says: RegExp][] = [
    [['parquet', 'file'], EXIT_STATUS.usage, /file is not a folder\nhint: Name a folder that is empty/],
    [
      ['parquet', 'foreign'],
      EXIT_STATUS.usage,
      /foreign has files that are not from an export of parley\nhint: .*not changed/,
    ],
    [
      ['parquet', 'out', '--tables', 'mesages'],
      EXIT_STATUS.usage,
      /Unknown table "mesages"\nhint: Did you mean messages\?/,
    ],
    [['parquet', 'out', '--tables', ' , '], EXIT_STATUS.usage, /--tables.*Expected table names/s],
    [['parquet', 'out', '--since', 'yesterday'], EXIT_STATUS.usage, /--since.*'yesterday'.*UTC day such as/s],
    [['csv', 'out'], EXIT_STATUS.usage, /Allowed choices are parquet/],
    [['parquet'], EXIT_STATUS.usage, /missing required argument 'folder'/],
    [
      ['parquet', 'out', '--database', 'none.db'],
      EXIT_STATUS.databaseUnavailable,
      /There is no warehouse at .*none.db yet/,
    ],
    [['parquet', 'file/out'], EXIT_STATUS.databaseUnavailable, /Cannot export to .*file\/out/],
  ]
  for (const [args, status, says] of cases) {
    const ended = await parley(['export', ...args], { cwd })
    expect(ended, args.join(' ')).toMatchObject({ status, stdout: '' })
    expect(ended.stderr).toMatch(says)
  }
  expect(existsSync(join(cwd, 'none.db'))).toBe(false)
})

test.concurrent('the help shows an example', async () => {
  const { status, stdout } = await parley(['export', '--help'], { cwd: emptyFolder() })
  expect(status).toBe(EXIT_STATUS.done)
  expect(stdout).toContain('$ parley export parquet /data/parley')
})
