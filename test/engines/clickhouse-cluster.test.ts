import { expect, onTestFinished, test } from 'vitest'
import { publishToDatabase } from '../publish/clickhouse/publishing.ts'
import { type TemporaryStore, temporaryStore } from '../store/temporary-store.ts'
import { expectedDatabase, filesWith, shownRows } from './clickhouse-database.ts'
import {
  CLUSTER,
  type ClickHouseServer,
  debianClickHouse,
  debianZooKeeper,
  startCluster,
} from './clickhouse-servers.ts'
import { startProxy } from './cutting-proxy.ts'

const clickhouse = debianClickHouse()
const zookeeper = debianZooKeeper()
const programs =
  typeof clickhouse === 'string' || typeof zookeeper === 'string' ? undefined : { clickhouse, zookeeper }
const NOW = '2026-06-30T12:00:00.000Z'
const WORD = 'Rumpelstilzchen'

function write(store: TemporaryStore, text: string): void {
  store.put(
    'members',
    Array.from({ length: 200 }, (_, index) => ({ id: `m${index}`, name: text })),
    { now: NOW },
  )
  store.put('teams', [{ id: 't', name: text, member_ids: [] }], { now: NOW })
}

/** A deal whose owner is a member. */
async function writeDeal(store: TemporaryStore): Promise<void> {
  const relation = { type: 'MANY_TO_ONE', target_resource: 'members' }
  const fields = [{ name: 'owner', label: 'Owner of it', type: 'TEXT', relation }]
  store.put('crm_objects', [{ name: 'deal', label: 'Deal', fields }], { requested: 'deal' })
  store.put('crm_records', [{ id: 'd', object: 'deal', fields: { owner: 'm7' } }], { requested: 'deal' })
  await store.crmTables.finish()
}

async function compare(warehouse: string, server: ClickHouseServer): Promise<void> {
  const { tables, rows } = expectedDatabase(warehouse, false)
  const shown = await shownRows(server, 'lake', tables)
  for (const [table, expected] of rows) expect(shown.get(table), table).toEqual(expected)
}

async function startPair(as: 'shards' | 'replicas'): Promise<[ClickHouseServer, ClickHouseServer]> {
  if (!programs) throw new Error('Debian’s packages are missing')
  const { servers, close } = await startCluster(programs, as)
  onTestFinished(close)
  const [first, second] = servers
  if (!first || !second) throw new Error('A server is missing')
  // Debian's server may end at its first statement of the cluster, when it is not ready for it.
  await expect
    .poll(
      async () => {
        await Promise.all([first.start(), second.start()])
        return first
          .run(`CREATE DATABASE IF NOT EXISTS lake ON CLUSTER ${CLUSTER}`)
          .then(() => 'done', String)
      },
      { timeout: 120_000 },
    )
    .toBe('done')
  return [first, second]
}

const namesOf = async (server: ClickHouseServer): Promise<unknown[]> =>
  (await server.query('SELECT name, count() FROM lake.members GROUP BY name')).flat()

test.skipIf(programs === undefined)(
  'two shards share the rows, show the same publication on both, and are exact after one of them was killed',
  async () => {
    const [first, second] = await startPair('shards')
    const store = temporaryStore()
    const parameters = `?cluster=${CLUSTER}`
    const target = { host: first.host, database: 'lake', parameters }
    write(store, WORD)
    await writeDeal(store)
    await publishToDatabase(store.path, target)
    for (const server of [first, second]) {
      await compare(store.path, server)
      expect(await server.query('SELECT `Owner of it` FROM lake.labelled_crm_deal')).toEqual([[WORD]])
      const [source] = await server.query(
        `SELECT name FROM system.tables WHERE database = 'lake' AND name LIKE '_parley_members_%_local'`,
      )
      const [rows] = await server.query(`SELECT count() FROM lake.${source?.[0]}`)
      expect(Number(rows?.[0])).toBeGreaterThan(50)
      expect(Number(rows?.[0])).toBeLessThan(150)
      expect((await server.query('SELECT count() FROM lake.live_members'))[0]).toEqual(['200'])
    }
    const proxy = await startProxy(first.host)
    onTestFinished(() => proxy.close())
    for (const [step, killed] of [
      [14, second],
      [22, first],
    ] as const) {
      const [shownBefore] = await namesOf(first)
      write(store, `version ${step}`)
      proxy.arm(step, { reaches: true, cut: () => killed.kill() })
      await expect(publishToDatabase(store.path, { ...target, host: proxy.host })).rejects.toMatchObject({
        code: 'publish-unreachable',
      })
      await killed.start()
      // The row that completes the publication may have been the last to arrive.
      const [shown, count] = await namesOf(second)
      expect([shownBefore, `version ${step}`]).toContain(shown)
      expect(count).toBe('200')
      await publishToDatabase(store.path, target)
      for (const server of [first, second]) await compare(store.path, server)
    }
    store.atomically(() => {
      store.tombstone('members', [['m1']], NOW)
      store.purger.purge({ before: '9999', limit: 1000, now: NOW })
    })
    await publishToDatabase(store.path, target, { keep: 9 })
    for (const server of [first, second]) {
      await compare(store.path, server)
      await expect.poll(() => filesWith(server.folder, WORD), { timeout: 90_000, interval: 500 }).toEqual([])
    }
    await expect(publishToDatabase(store.path, { ...target, parameters: '' })).rejects.toMatchObject({
      code: 'publish-other-place',
    })
  },
)

test.skipIf(programs === undefined)(
  'two replicas show a publication as soon as it is complete, and none completes while one is away',
  async () => {
    const [first, second] = await startPair('replicas')
    const store = temporaryStore()
    const target = {
      host: first.host,
      database: 'lake',
      parameters: `?cluster=${CLUSTER}&replicated`,
    }
    for (const text of ['one', 'two']) {
      write(store, text)
      await publishToDatabase(store.path, target)
      expect(await namesOf(second)).toEqual([text, '200'])
    }
    await compare(store.path, second)
    await second.kill()
    write(store, 'three')
    await expect(publishToDatabase(store.path, target)).rejects.toMatchObject({ code: 'publish-failing' })
    expect(await namesOf(first)).toEqual(['two', '200'])
    await second.start()
    await publishToDatabase(store.path, target)
    for (const server of [first, second]) await compare(store.path, server)
  },
)
