import Database from 'better-sqlite3'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { DAY_MS, systemClock } from '../../src/clock.ts'
import { publishToDatabase } from '../publish/clickhouse/publishing.ts'
import { openAt, type TemporaryStore, temporaryStore, withShortcuts } from '../store/temporary-store.ts'
import { expectedDatabase, shownRows } from './clickhouse-database.ts'
import {
  type ClickHouseServer,
  debianClickHouse,
  type Servers,
  startDebian,
  startNewest,
} from './clickhouse-servers.ts'
import { startProxy } from './cutting-proxy.ts'

/** What a publication compares, and what becomes of tables that it leaves out. */

const debian = debianClickHouse()
let servers: Servers
let server: ClickHouseServer
let databases = 0

beforeAll(async () => {
  servers = await (typeof debian === 'string' ? startNewest() : startDebian(debian))
  const [first] = servers.servers
  if (first) server = first
})

afterAll(() => servers.close())

async function newTarget() {
  databases += 1
  const target = { host: server.host, database: `c${databases}` }
  await server.run(`CREATE DATABASE ${target.database}`)
  return target
}

type Target = Awaited<ReturnType<typeof newTarget>>

function withMember(): TemporaryStore {
  const store = temporaryStore()
  store.put('members', [{ id: 'm', name: 'first' }])
  store.put('teams', [{ id: 't', name: 'team', member_ids: ['m'] }])
  return store
}

/** As another program does, whose changes parley does not note. */
function renameByHand({ path }: TemporaryStore, name: string): void {
  const other = new Database(path)
  other.prepare('UPDATE members SET name = ?').run(name)
  other.close()
}

const memberIn = async ({ database }: Target): Promise<unknown> =>
  (await server.query(`SELECT name FROM ${database}.members`)).flat().join()

async function relationsOf({ database }: Target, pattern: string): Promise<unknown[]> {
  const rows = await server.query(
    `SELECT name FROM system.tables WHERE database = '${database}' AND match(name, '${pattern}') ORDER BY name`,
  )
  return rows.flat()
}

test.each<[what: string, options: Parameters<typeof publishToDatabase>[2], before?: string]>([
  ['with --full', { full: true }],
  ['a day later', { clock: { ...systemClock(), now: () => systemClock().now() + DAY_MS } }],
  ['by another version of this program', { version: '1.2.4' }],
  ['after a publication of an earlier version, which kept no note of it', {}, '_parley_compared'],
])('what another program changes is published when everything is compared: %s', async (_, options, lost) => {
  const store = withMember()
  const target = await newTarget()
  await publishToDatabase(store.path, target)
  renameByHand(store, 'by hand')
  await publishToDatabase(store.path, target)
  expect(await memberIn(target)).toBe('first')
  if (lost) await server.run(`DROP TABLE ${target.database}.${lost}`)
  await publishToDatabase(store.path, target, options)
  expect(await memberIn(target)).toBe('by hand')
  renameByHand(store, 'again by hand')
  await publishToDatabase(store.path, target, { ...options, full: false })
  expect(await memberIn(target)).toBe('by hand')
})

test('a table that an interrupted publication has written is compared with a copy from before that', async () => {
  const store = withMember()
  const target = await newTarget()
  await publishToDatabase(store.path, target)
  const copy = `${store.folder}/copy.db`
  store.db.prepare('VACUUM INTO ?').run(copy)
  store.put('members', [{ id: 'm', name: 'later' }])
  const proxy = await startProxy(server.host)
  onTestFinished(() => proxy.close())
  const isRecorded = async () => {
    const [row] = await server.query(`SELECT max(publication) FROM ${target.database}._parley_parts`)
    return Number(row?.[0]) > 1
  }
  for (let step = 10; !(await isRecorded()); step += 1) {
    proxy.arm(step, { reaches: true })
    await expect(publishToDatabase(store.path, { ...target, host: proxy.host })).rejects.toMatchObject({
      code: 'publish-unreachable',
    })
  }
  expect(await memberIn(target)).toBe('first')
  withShortcuts(openAt(copy), store.folder, copy).close()
  await publishToDatabase(copy, target)
  expect(await memberIn(target)).toBe('first')
})

test('the views of a table that is left out go at once, its rows with the publications that show them', async () => {
  const store = withMember()
  const target = await newTarget()
  await publishToDatabase(store.path, target)
  expect(await relationsOf(target, '(^|live_)members$')).toEqual(['live_members', 'members'])
  const left = await publishToDatabase(store.path, target, { tables: ['teams'] })
  expect(left.tables.map(({ table }) => table)).toEqual(['teams', 'publications'])
  expect(await relationsOf(target, 'members$')).toEqual([])
  expect(await relationsOf(target, '^_parley_members_')).toHaveLength(1)
  await publishToDatabase(store.path, target, { tables: ['teams'] })
  expect(await relationsOf(target, 'members|meetings')).toEqual([])
  store.put('members', [{ id: 'm', name: 'changed meanwhile' }])
  await publishToDatabase(store.path, target, { tables: ['teams'] })
  await publishToDatabase(store.path, target)
  const { tables, rows } = expectedDatabase(store.path, typeof debian === 'string')
  const shown = await shownRows(server, target.database, tables)
  for (const [table, expected] of rows) expect(shown.get(table), table).toEqual(expected)
  expect(await relationsOf(target, '^live_members$')).toHaveLength(1)
})

test('a table that comes back while its earlier rows are kept shows what has changed meanwhile', async () => {
  const store = withMember()
  const target = await newTarget()
  await publishToDatabase(store.path, target, { keep: 9 })
  store.put('members', [{ id: 'm', name: 'changed meanwhile' }])
  await publishToDatabase(store.path, target, { keep: 9, tables: ['teams'] })
  await publishToDatabase(store.path, target, { keep: 9 })
  expect(await memberIn(target)).toBe('changed meanwhile')
})

test('rows whose owners are left out have no live view, which would need the owners', async () => {
  const store = temporaryStore()
  const target = await newTarget()
  await publishToDatabase(store.path, target, { tables: ['transcript_entries'] })
  expect(await relationsOf(target, '^[^_]')).toEqual(['publications', 'transcript_entries'])
  await publishToDatabase(store.path, target, { tables: ['transcript_entries', 'meetings'] })
  expect(await relationsOf(target, '^live_')).toEqual(['live_meetings', 'live_transcript_entries'])
  await publishToDatabase(store.path, target, { tables: ['transcript_entries'] })
  expect(await relationsOf(target, '^live_')).toEqual([])
})

test('the publication of an unchanged warehouse writes nothing but its own state', async () => {
  const store = withMember()
  const target = await newTarget()
  await publishToDatabase(store.path, target)
  const { tables } = await publishToDatabase(store.path, target)
  const written = tables.filter(({ partsWritten, table }) => partsWritten > 0 && !table.startsWith('sync_'))
  expect(written).toMatchObject([{ table: 'publications', rows: 2, parts: 2, rowsWritten: 1 }])
})
