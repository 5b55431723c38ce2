import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { TABLES } from '../../src/catalog/catalog.ts'
import { systemClock } from '../../src/clock.ts'
import { folderOf } from '../../src/export/crm-tables.ts'
import { createCatalogue } from '../../src/publish/catalogue/catalogue.ts'
import { folderReader } from '../../src/publish/storage/target-reader.ts'
import { quote } from '../../src/store/database/sql.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { readCrmObjectsAt } from '../../src/store/views/fill-dictionary.ts'
import { parley } from '../cli/parley.ts'
import { start } from '../server/status-server.ts'
import { type Cell, CLOCK_TABLE } from '../support/published-cells.ts'
import { type ClickHouse, identifier, literal, startClickHouse } from './clickhouse.ts'
import { type Published, sortedRows, startPublished } from './published.ts'

const TOKEN = "a-token'of-the-catalogue"
const CLIENT = new URL('catalogue-client.mjs', import.meta.url).pathname

let published: Published
let clickhouse: ClickHouse

beforeAll(async () => {
  published = await startPublished()
  await published.publish()
  clickhouse = startClickHouse()
})

afterAll(async () => {
  await clickhouse.close()
  await published.trial.close()
})

/** Serves the catalogue of the target. Returns its URL. */
async function serve(): Promise<string> {
  const catalogue = createCatalogue(folderReader(published.folder), systemClock())
  const { server } = await start({ catalogue: { catalogue, token: TOKEN } })
  return `http://${server.address}/iceberg`
}

/** A database of ClickHouse with the tables of the catalogue, until the test ends. Returns its name. */
async function connect(url: string, token = TOKEN): Promise<string> {
  await clickhouse.query('SET allow_database_iceberg = 1')
  const header = literal(`Authorization: Bearer ${token}`)
  await clickhouse.query(
    `CREATE DATABASE lake ENGINE = DataLakeCatalog(${literal(url)}, 'Parquet') SETTINGS catalog_type = 'rest', warehouse = 'parley', auth_header = ${header}`,
  )
  onTestFinished(() => void clickhouse.query('DROP DATABASE lake'))
  return 'lake'
}

const names = (rows: readonly unknown[][]): string[] => rows.map(([name]) => String(name)).sort()

/** Compares every value of every table with SQLite's. Returns the number of rows. */
async function compare(database: string): Promise<number> {
  const warehouse = published.warehouse()
  const expected = [...warehouse.keys(), 'publications'].map(table => `parley.${table}`)
  expect(names(await clickhouse.query(`SHOW TABLES FROM ${database}`))).toEqual(expected.toSorted())
  let count = 0
  for (const [table, { columns, rows }] of warehouse) {
    const found = await clickhouse.rows(`${database}.${identifier(`parley.${table}`)}`)
    expect(found.columns, table).toEqual(columns)
    if (table !== CLOCK_TABLE) expect(sortedRows(found.rows), table).toEqual(rows)
    count += rows.length
  }
  return count
}

test('ClickHouse reads every value of every table through the catalogue, also after a further publication', async () => {
  const database = await connect(await serve())
  const rows = await compare(database)
  process.stdout.write(`ClickHouse read ${rows} rows through the catalogue as SQLite has them\n`)
  expect(rows).toBeGreaterThan(1000)
  await published.trial.simulator.changeAtOnce([
    { kind: 'publish', resource: 'messages', count: 3 },
    { kind: 'edit', resource: 'crm_records', count: 2 },
    { kind: 'addField', object: 'deal', field: 'added later', type: 'decimal' },
  ])
  expect((await published.trial.backfill()).status).toBe(0)
  expect(await published.publish()).toBe(2)
  const later = `SELECT max(publication) FROM ${database}.\`parley.publications\``
  await expect.poll(() => clickhouse.query(later), { timeout: 30_000 }).toEqual([['2']])
  expect(await compare(database)).toBeGreaterThan(rows)
})

/** The views over typed tables of the warehouse that have a view in ClickHouse, by their names there. */
function viewsOfWarehouse(): ReadonlyMap<string, string> {
  const objects = readCrmObjectsAt(published.trial.database)
  const views = objects.flatMap(({ table, liveView, labelledView }) => [
    [`live_${folderOf(table)}`, liveView] as const,
    [`labelled_${folderOf(table)}`, labelledView] as const,
  ])
  const declared = [...TABLES.keys()].map(name => [`live_${name}`, `live_${name}`] as const)
  return new Map([...declared, ...views])
}

test('the live_ and labelled_ views in ClickHouse have the rows and the texts of those in SQLite', async () => {
  await connect(await serve())
  const { stdout } = await parley(['schema', '--clickhouse', '--database', published.trial.database])
  await clickhouse.query('CREATE DATABASE views')
  onTestFinished(() => void clickhouse.query('DROP DATABASE views'))
  await clickhouse.query('USE views')
  const statements = stdout.split(/;\n+/).filter(statement => statement.trim() !== '')
  for (const statement of statements) await clickhouse.query(statement)
  const db = openSqlite(published.trial.database, { readonly: true })
  onTestFinished(() => void db.close())
  const expected = viewsOfWarehouse()
  expect(names(await clickhouse.query('SHOW TABLES FROM views'))).toEqual([...expected.keys()].sort())
  for (const [name, view] of expected) {
    const described = await clickhouse.query(`DESCRIBE views.${identifier(name)}`)
    const inSqlite = db.prepare<[string], string>('SELECT name FROM pragma_table_info(?)').pluck().all(view)
    expect(
      described.map(([column]) => column),
      name,
    ).toEqual(inSqlite)
    const texts = described
      .filter(([, type]) => type === 'Nullable(String)')
      .map(([column]) => String(column))
    const found = await clickhouse.query(
      `SELECT ${texts.map(identifier).join(', ')} FROM views.${identifier(name)}`,
    )
    const rows = db
      .prepare<[], Cell[]>(`SELECT ${texts.map(quote).join(', ')} FROM ${quote(view)}`)
      .raw()
      .all()
    expect(sortedRows(found), name).toEqual(sortedRows(rows))
  }
})

test('ClickHouse with a wrong token cannot connect', async () => {
  const url = await serve()
  await expect(connect(url, 'a-wrong-token-of-the-catalogue')).rejects.toThrow('NotAuthorizedException')
})

test('another client of the specification finds every table and is refused to change one', async () => {
  const url = await serve()
  const { stdout } = await promisify(execFile)(process.execPath, [CLIENT, url, TOKEN])
  const found = JSON.parse(stdout)
  expect(found).toMatchObject({
    namespace: { namespace: ['parley'] },
    exists: [true, false],
    missing: [404, 'NoSuchTableException'],
    dropping: [403, 'ForbiddenException'],
  })
  expect(Object.keys(found.snapshots).sort()).toEqual(
    [...published.warehouse().keys(), 'publications'].toSorted(),
  )
})
