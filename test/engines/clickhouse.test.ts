import { afterAll, beforeAll, expect, test } from 'vitest'
import { CLOCK_TABLE } from '../support/published-cells.ts'
import { type ClickHouse, literal, startClickHouse } from './clickhouse.ts'
import { type ExpectedRows, fileCount, type Published, sortedRows, startPublished } from './published.ts'

let published: Published
let clickhouse: ClickHouse
/** The warehouse as of each publication. */
const warehouses = new Map<number, ReadonlyMap<string, ExpectedRows>>()

async function publish(): Promise<number> {
  const number = await published.publish()
  warehouses.set(number, published.warehouse())
  return number
}

beforeAll(async () => {
  published = await startPublished()
  clickhouse = startClickHouse()
  await publish()
})

afterAll(async () => {
  await clickhouse.close()
  await published.trial.close()
})

const source = (table: string): string => `icebergLocal(${literal(`${published.folder}/${table}`)})`

/** The snapshot of each table in a publication, as the table `publications` has it. */
async function snapshotsOf(publication: number): Promise<ReadonlyMap<string, number>> {
  const [row] = await clickhouse.query(
    `SELECT snapshots FROM ${source('publications')} WHERE publication = ${publication}`,
  )
  return new Map(Object.entries(JSON.parse(String(row?.[0]))))
}

/** Compares every value of every table with SQLite's at that publication. Returns the number of rows. */
async function compare(publication: number): Promise<number> {
  const snapshots = await snapshotsOf(publication)
  const warehouse = warehouses.get(publication) ?? new Map<string, ExpectedRows>()
  expect([...snapshots.keys()].sort()).toEqual([...warehouse.keys()].sort())
  let count = 0
  for (const [table, expected] of warehouse) {
    const settings = `SETTINGS iceberg_snapshot_id = ${snapshots.get(table)}`
    const found = await clickhouse.table(`${published.folder}/${table}`, settings)
    expect(found.columns, table).toEqual(expected.columns)
    if (table !== CLOCK_TABLE) expect(sortedRows(found.rows), table).toEqual(expected.rows)
    const [counted] = await clickhouse.query(`SELECT count() FROM ${source(table)} ${settings}`)
    expect(Number(counted?.[0]), table).toBe(expected.rows.length)
    count += expected.rows.length
  }
  return count
}

test('ClickHouse reads every row and every value of every table', async () => {
  const rows = await compare(1)
  process.stdout.write(
    `ClickHouse read ${rows} rows of ${warehouses.get(1)?.size} tables as SQLite has them\n`,
  )
  expect(rows).toBeGreaterThan(1000)
})

async function eventCount(name: string): Promise<number> {
  const [row] = await clickhouse.query(`SELECT value FROM system.events WHERE event = '${name}'`)
  return Number(row?.[0] ?? 0)
}

test('a query for the newest months leaves the files of the other months unread', async () => {
  const [last] = await clickhouse.query(`SELECT toStartOfMonth(max(received_at)) FROM ${source('messages')}`)
  const before = await eventCount('IcebergPartitionPrunedFiles')
  const files = await clickhouse.query(
    `SELECT DISTINCT _path FROM ${source('messages')} WHERE received_at >= '${last?.[0]}'`,
  )
  const all = fileCount(`${published.folder}/messages`)
  expect(all).toBeGreaterThan(2)
  expect(files).toHaveLength(1)
  expect((await eventCount('IcebergPartitionPrunedFiles')) - before).toBe(all - 1)
})

test('a later publication has the changed and the deleted rows, and the earlier one can still be read', async () => {
  const { trial } = published
  await trial.simulator.changeAtOnce([
    { kind: 'delete', resource: 'messages', count: 2 },
    { kind: 'delete', resource: 'meetings', count: 1 },
    { kind: 'publish', resource: 'messages', count: 3 },
    { kind: 'edit', resource: 'crm_records', count: 2 },
    { kind: 'addField', object: 'deal', field: 'added later', type: 'decimal' },
    { kind: 'retypeField', object: 'deal', field: 'Group By', type: 'decimal' },
  ])
  // A deletion needs a second complete pass.
  for (let pass = 0; pass < 2; pass++) expect((await trial.backfill()).status).toBe(0)
  const second = await publish()
  expect(second).toBe(2)
  expect(warehouses.get(2)?.get('messages')?.rows).not.toEqual(warehouses.get(1)?.get('messages')?.rows)
  await compare(2)
  await compare(1)
  const [deleted] = await clickhouse.query(
    `SELECT countIf(_deleted_at IS NOT NULL), countIf(_deleted_at IS NULL) FROM ${source('messages')}`,
  )
  expect(Number(deleted?.[0])).toBeGreaterThanOrEqual(1)
  expect(Number(deleted?.[1])).toBeGreaterThan(2)
})

test('a publication without changes adds one row to publications and no file to another table', async () => {
  const before = await snapshotsOf(2)
  const third = await publish()
  expect([...(await snapshotsOf(third))]).toEqual([...before])
  expect(await clickhouse.query(`SELECT publication FROM ${source('publications')} ORDER BY 1`)).toEqual([
    ['1'],
    ['2'],
    ['3'],
  ])
})
