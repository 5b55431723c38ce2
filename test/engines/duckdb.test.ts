import { type DuckDBConnection, DuckDBInstance, type DuckDBValue } from '@duckdb/node-api'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { DICTIONARY } from '../../src/dictionary/dictionary.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { readCrmTablesAt } from '../../src/store/dictionary/fill-dictionary.ts'
import { parley } from '../cli/parley.ts'
import { type Cell, describedRows } from '../support/published-cells.ts'
import { ASKED, expectAnswer } from './answers.ts'
import { installed, type TableRows } from './engine-process.ts'
import { expectEarlier, expectNewest, lakeOfTests, sortedRows } from './lake.ts'

const lake = lakeOfTests()

let instance: DuckDBInstance
let duckdb: DuckDBConnection

beforeAll(async () => {
  // INSTALL finds the extensions here, so that it downloads nothing.
  const extensions = installed('duckdb', 'extensions')
  instance = await DuckDBInstance.create(':memory:', { extension_directory: extensions })
  duckdb = await instance.connect()
  const { bucket, catalogues, token, week } = lake
  await duckdb.run(`
    INSTALL iceberg; LOAD iceberg; INSTALL httpfs; LOAD httpfs; LOAD avro;
    CREATE SECRET parley (TYPE iceberg, TOKEN ${literal(token)});
    CREATE SECRET files (TYPE s3, KEY_ID ${literal(bucket.keyId)}, SECRET ${literal(bucket.secret)},
      REGION ${literal(bucket.region)}, ENDPOINT ${literal(new URL(bucket.endpoint).host)}, URL_STYLE 'path', USE_SSL false)`)
  const attached = {
    lake_folder: catalogues.folder,
    lake_bucket: catalogues.bucket,
    week: week.catalogues.folder,
  }
  for (const [name, url] of Object.entries(attached))
    await duckdb.run(
      `ATTACH 'parley' AS ${name} (TYPE iceberg, SECRET parley, ENDPOINT ${literal(url)}, ACCESS_DELEGATION_MODE 'none')`,
    )
})

afterAll(() => {
  duckdb?.closeSync()
  instance?.closeSync()
})

const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

async function ask(sql: string): Promise<TableRows> {
  const result = await duckdb.runAndReadAll(sql)
  return { columns: result.columnNames(), rows: result.getRows().map(row => row.map(cellOf)) }
}

function cellOf(value: DuckDBValue): Cell {
  if (typeof value === 'bigint') return String(value)
  if (value !== null && typeof value === 'object')
    return 'micros' in value ? String(value.micros) : String(value)
  return value
}

const inCatalogue = (kind: string) => (table: string, snapshot?: number) =>
  ask(
    `SELECT * FROM lake_${kind}.parley.${quoted(table)}${snapshot === undefined ? '' : ` AT (VERSION => ${snapshot})`}`,
  )

const atPlace = (place: string) => (table: string, snapshot?: number) =>
  ask(
    `SELECT * FROM iceberg_scan(${literal(`${place}/${table}`)}${snapshot === undefined ? '' : `, snapshot_from_id = ${snapshot}`})`,
  )

describe.each([
  ['the catalogue of a folder', inCatalogue('folder')],
  ['the catalogue of a bucket', inCatalogue('bucket')],
  ['a folder', atPlace(lake.folder)],
  ['a bucket', atPlace(`s3://${lake.bucket.name}/lake`)],
])('DuckDB with %s', (_, read) => {
  test('reads every value of every table as SQLite has it', () => expectNewest({ read }))

  test('reads every value of the earlier publications', () => expectEarlier({ read }))
})

test('DuckDB has the rows of every view that parley schema prints over the file of the warehouse', async () => {
  const { stdout } = await parley(['schema', '--duckdb', '--database', lake.database])
  await duckdb.run(stdout)
  const db = openSqlite(lake.database, { readonly: true })
  for (const described of [...DICTIONARY, ...readCrmTablesAt(lake.database)]) {
    const { name, columns } = described
    if (name === 'sync_status') continue
    const found = await ask(
      `SELECT ${columns.map(column => quoted(column.name)).join(', ')} FROM memory.${quoted(name)}`,
    )
    expect(sortedRows(found.rows), name).toEqual(sortedRows(describedRows(db, described)))
  }
  db.close()
})

describe('DuckDB, with the catalogue of a folder and the views of another engine,', () => {
  beforeAll(async () => {
    await duckdb.run("ATTACH ':memory:' AS asked; USE asked")
    // Its own views read the file of the warehouse. Trino writes names as DuckDB does.
    const printed = ['schema', '--trino', '--catalogue', 'week.parley', '--database', lake.week.database]
    const { stdout } = await parley(printed)
    await duckdb.run(stdout)
    await duckdb.run("SET search_path = 'asked.main,week.parley'")
  })

  test.each(ASKED)('answers $name as SQLite does', ({ sql }) => expectAnswer(ask, sql))
})
