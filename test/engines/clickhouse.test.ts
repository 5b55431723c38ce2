import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parley } from '../cli/parley.ts'
import { identifier, literal, startClickHouse } from './clickhouse.ts'
import type { Engine } from './engine-process.ts'
import { expectEarlier, expectNewest, expectViews, lakeOfTests } from './lake.ts'

const lake = lakeOfTests()

let clickhouse: Engine

beforeAll(async () => {
  clickhouse = startClickHouse()
  await connect('lake', lake.catalogues.folder)
  await connect('bucket', lake.catalogues.bucket)
})

afterAll(() => clickhouse?.close())

const { endpoint, name, keyId, secret } = lake.bucket

/** Creates a database with the tables of the catalogue. */
async function connect(database: string, url: string, token = lake.token): Promise<void> {
  const isBucket = url === lake.catalogues.bucket
  const args = isBucket ? [url, keyId, secret] : [url, 'Parquet']
  const settings = {
    catalog_type: 'rest',
    warehouse: 'parley',
    auth_header: `Authorization: Bearer ${token}`,
    ...(isBucket && { storage_endpoint: `${endpoint}/${name}` }),
  }
  const given = Object.entries(settings).map(([key, value]) => `${key} = ${literal(value)}`)
  await clickhouse.ask(
    `CREATE DATABASE ${database} ENGINE = DataLakeCatalog(${args.map(literal).join(', ')}) SETTINGS ${given.join(', ')}`,
  )
}

const inFolder = (table: string): string => `icebergLocal(${literal(`${lake.folder}/${table}`)})`

const inBucket = (table: string): string =>
  `icebergS3(${[`${endpoint}/${name}/lake/${table}`, keyId, secret].map(literal).join(', ')})`

const inDatabase =
  (database: string) =>
  (table: string): string =>
    `${database}.${identifier(`parley.${table}`)}`

describe.each([
  ['a folder', inFolder],
  ['a bucket', inBucket],
  ['the catalogue of a folder', inDatabase('lake')],
  ['the catalogue of a bucket', inDatabase('bucket')],
])('ClickHouse with %s', (_, source) => {
  const read = (table: string, snapshot?: number) => {
    const settings = snapshot === undefined ? '' : ` SETTINGS iceberg_snapshot_id = ${snapshot}`
    return clickhouse.ask(`SELECT * FROM ${source(table)}${settings}`)
  }

  test('reads every value of every table as SQLite has it', () => expectNewest({ read }))

  test('reads every value of the earlier publications', () => expectEarlier({ read }))
})

test('ClickHouse has the rows of every view that parley schema prints', async () => {
  await clickhouse.ask('CREATE DATABASE views')
  await clickhouse.ask('USE views')
  const { stdout } = await parley(['schema', '--clickhouse', '--database', lake.database])
  await expectViews(clickhouse, { printed: stdout, from: identifier })
})

test('ClickHouse with a wrong token cannot connect', async () => {
  const connecting = connect('refused', lake.catalogues.folder, 'a-wrong-token-of-the-catalogue')
  await expect(connecting).rejects.toThrow('NotAuthorizedException')
})

async function eventCount(event: string): Promise<number> {
  const { rows } = await clickhouse.ask(`SELECT value FROM system.events WHERE event = '${event}'`)
  return Number(rows[0]?.[0] ?? 0)
}

test('a query of ClickHouse for the newest month leaves the files of the other months unread', async () => {
  const source = inFolder('messages')
  const { rows } = await clickhouse.ask(`SELECT toString(toStartOfMonth(max(received_at))) FROM ${source}`)
  const before = await eventCount('IcebergPartitionPrunedFiles')
  const files = await clickhouse.ask(
    `SELECT DISTINCT _path FROM ${source} WHERE received_at >= '${rows[0]?.[0]}'`,
  )
  const all = fileCount('messages')
  expect(all).toBeGreaterThan(2)
  expect(files.rows).toHaveLength(1)
  expect((await eventCount('IcebergPartitionPrunedFiles')) - before).toBe(all - 1)
})

/** The number of data files of a table in its newest snapshot. */
function fileCount(table: string): number {
  const folder = join(lake.folder, table, 'metadata')
  const version = readFileSync(join(folder, 'version-hint.text'), 'utf8')
  const metadata = JSON.parse(readFileSync(join(folder, `v${version}.metadata.json`), 'utf8'))
  return Number(metadata.snapshots.at(-1).summary['total-data-files'])
}
