import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { EXIT_STATUS } from '../../src/errors.ts'
import type { DatabaseSummary } from '../../src/publish/clickhouse/summary.ts'
import { parley } from '../cli/parley.ts'
import { publishToDatabase } from '../publish/clickhouse/publishing.ts'
import { type TemporaryStore, temporaryStore } from '../store/temporary-store.ts'
import { expectedDatabase, expectedViews, filesWith, shownRows, viewRows } from './clickhouse-database.ts'
import {
  type ClickHouseServer,
  debianClickHouse,
  PASSWORD,
  type Servers,
  startDebian,
  startNewest,
  USER,
} from './clickhouse-servers.ts'
import { startProxy } from './cutting-proxy.ts'
import { startPublished } from './published.ts'

const debian = debianClickHouse()
const NOW = '2026-06-30T12:00:00.000Z'

const ENGINES = [
  {
    name: 'Debian’s server 18.16',
    isModern: false,
    start: typeof debian === 'string' ? undefined : () => startDebian(debian),
  },
  { name: 'the newest version', isModern: true, start: startNewest },
]

let databases = 0

/** A database that no other test has. */
async function newDatabase(server: ClickHouseServer): Promise<string> {
  databases += 1
  const database = `p${databases}`
  await server.run(`CREATE DATABASE ${database}`)
  return database
}

/** Ten messages in ten months, a team and a member, all with the same text. */
function write(store: TemporaryStore, text: string, count = 10): void {
  const messages = Array.from({ length: count }, (_, index) => ({
    id: `m${index}`,
    subject: text,
    received_at: `2026-${String((index % 10) + 1).padStart(2, '0')}-01T10:00:00.000Z`,
  }))
  store.put(
    'message_copies',
    messages.map(message => ({ ...message })),
    { now: NOW },
  )
  store.put('members', [{ id: 'm', name: text, email: 'm@x.example' }], { now: NOW })
  store.put('teams', [{ id: 't', name: text, member_ids: [] }], { now: NOW })
}

const writtenIn = ({ tables }: DatabaseSummary): string[] =>
  tables.filter(({ partsWritten }) => partsWritten > 0).map(({ table }) => table)

for (const { name, isModern, start } of ENGINES)
  describe.skipIf(start === undefined)(name, () => {
    let servers: Servers
    let server: ClickHouseServer

    beforeAll(async () => {
      if (!start) return
      servers = await start()
      const [first] = servers.servers
      if (first) server = first
    })

    afterAll(() => servers?.close())

    const compare = async (warehouse: string, database: string): Promise<number> => {
      const { tables, rows } = expectedDatabase(warehouse, isModern)
      const shown = await shownRows(server, database, tables)
      for (const [table, expected] of rows) expect(shown.get(table), table).toEqual(expected)
      return [...rows.values()].reduce((sum, all) => sum + all.length, 0)
    }

    test('every value of every table is shown after publications with changes, deletions and other columns', async () => {
      const published = await startPublished()
      const { trial } = published
      onTestFinished(() => trial.close())
      const target = { host: server.host, database: await newDatabase(server) }
      await publishToDatabase(trial.database, target)
      expect(await compare(trial.database, target.database)).toBeGreaterThan(1000)
      await trial.simulator.changeAtOnce([
        { kind: 'delete', resource: 'messages', count: 2 },
        { kind: 'delete', resource: 'meetings', count: 1 },
        { kind: 'publish', resource: 'messages', count: 3 },
        { kind: 'edit', resource: 'crm_records', count: 2 },
        { kind: 'addField', object: 'deal', field: 'added later', type: 'decimal' },
        { kind: 'retypeField', object: 'deal', field: 'Group By', type: 'decimal' },
      ])
      for (let pass = 0; pass < 2; pass++) expect((await trial.backfill()).status).toBe(0)
      const second = await publishToDatabase(trial.database, target)
      expect(second.parts_removed).toBe(0)
      expect(writtenIn(second)).toContain('crm_deal')
      await compare(trial.database, target.database)
      const views = expectedViews(trial.database)
      for (const view of views)
        expect(await viewRows(server, target.database, view), view.name).toEqual(view.rows)
      expect(views.map(({ name }) => name)).toContain('labelled_crm_deal')
      const [all] = await server.query(
        `SELECT count(), countIf(_deleted_at IS NULL) FROM ${target.database}.messages`,
      )
      expect(Number(all?.[0])).toBeGreaterThan(Number(all?.[1]))
      const third = await publishToDatabase(trial.database, target)
      expect(writtenIn(third).filter(table => !table.startsWith('sync_'))).toEqual(['publications'])
      expect(third.parts_removed).toBeGreaterThan(0)
      await compare(trial.database, target.database)
      const left = await server.query(
        `SELECT name FROM system.tables WHERE database = '${target.database}' AND name LIKE '_parley_crm_deal_%'`,
      )
      expect(left).toHaveLength(1)
    })

    test('readers see only complete publications, whatever step a publication dies at', async () => {
      const store = temporaryStore()
      const target = { host: server.host, database: await newDatabase(server) }
      const proxy = await startProxy(server.host)
      onTestFinished(() => proxy.close())
      write(store, 'version 0')
      await publishToDatabase(store.path, target)
      const shown = async () => {
        const [row] = await server.query(
          `SELECT min(subject), max(subject), count(), (SELECT max(publication) FROM ${target.database}.publications) FROM ${target.database}.messages`,
        )
        const [member] = await server.query(`SELECT name FROM ${target.database}.members`)
        return { low: row?.[0], high: row?.[1], count: Number(row?.[2]), member: member?.[0] }
      }
      let last = 'version 0'
      let isOver = false
      let deaths = 0
      for (let step = 0; !isOver; step += 1) {
        const text = `version ${step}`
        write(store, text)
        // Every other statement reaches the server, and only its answer is lost.
        proxy.arm(step, { reaches: step % 2 === 1 })
        const ended: unknown = await publishToDatabase(store.path, { ...target, host: proxy.host }).catch(
          error => error,
        )
        isOver = !(ended instanceof Error)
        if (ended instanceof Error) {
          deaths += 1
          expect(ended).toMatchObject({ code: 'publish-unreachable' })
        }
        const seen = await shown()
        // The row that completes the publication may have arrived.
        expect([last, text]).toContain(seen.member)
        expect(seen).toEqual({ low: seen.member, high: seen.member, count: 10, member: seen.member })
        last = String(seen.member)
      }
      expect(deaths).toBeGreaterThan(15)
      await publishToDatabase(store.path, target)
      await compare(store.path, target.database)
      // Nothing of the interrupted publications is left.
      await publishToDatabase(store.path, target)
      await publishToDatabase(store.path, target)
      const lists = await server.query(
        `SELECT DISTINCT publication FROM ${target.database}._parley_parts ORDER BY publication`,
      )
      expect(lists).toHaveLength(2)
      const [source] = await server.query(
        `SELECT name FROM system.tables WHERE database = '${target.database}' AND name LIKE '_parley_messages_%'`,
      )
      const [rows] = await server.query(`SELECT count() FROM ${target.database}.${source?.[0]}`)
      expect(Number(rows?.[0])).toBe(10)
    })

    test('a server that is killed in the middle shows the last publication, and the next one is exact', async () => {
      const store = temporaryStore()
      const target = { host: server.host, database: await newDatabase(server) }
      const proxy = await startProxy(server.host)
      onTestFinished(() => proxy.close())
      write(store, 'before')
      await publishToDatabase(store.path, target)
      for (const step of [6, 14, 22]) {
        write(store, `version ${step}`)
        proxy.arm(step, { reaches: true, cut: () => server.kill() })
        await expect(publishToDatabase(store.path, { ...target, host: proxy.host })).rejects.toMatchObject({
          code: 'publish-unreachable',
        })
        await server.start()
        const subjects = await server.query(`SELECT DISTINCT subject FROM ${target.database}.messages`)
        expect(subjects).toHaveLength(1)
        await publishToDatabase(store.path, target)
        await compare(store.path, target.database)
      }
    })

    test('while a publication is being written, readers see one publication or the next, never a mixture', async () => {
      const store = temporaryStore()
      const target = { host: server.host, database: await newDatabase(server) }
      write(store, 'version 0', 200)
      await publishToDatabase(store.path, target)
      let isPublishing = true
      const publications = (async () => {
        for (let version = 1; version <= 5; version += 1) {
          write(store, `version ${version}`, 200)
          await publishToDatabase(store.path, target)
        }
        isPublishing = false
      })()
      const seen: unknown[][] = []
      while (isPublishing)
        seen.push(
          ...(await server.query(
            `SELECT min(subject), max(subject), count() FROM ${target.database}.messages`,
          )),
        )
      await publications
      expect(seen.length).toBeGreaterThan(10)
      expect(seen.filter(([low, high, count]) => low !== high || Number(count) !== 200)).toEqual([])
      expect(new Set(seen.map(([low]) => low)).size).toBeGreaterThan(1)
    })

    test('purged text is in no file of the server after the next publication, whatever --keep says', async () => {
      const store = temporaryStore()
      const target = { host: server.host, database: await newDatabase(server) }
      const word = `Rumpelstilzchen${databases}`
      for (const text of [word, 'other']) {
        write(store, text)
        await publishToDatabase(store.path, target, { keep: 9 })
      }
      expect(filesWith(server.folder, word)).not.toEqual([])
      store.atomically(() => {
        store.tombstone('members', [['m']], NOW)
        store.purger.purge({ before: '9999', limit: 1000, now: NOW })
      })
      await publishToDatabase(store.path, target, { keep: 9 })
      await compare(store.path, target.database)
      await expect.poll(() => filesWith(server.folder, word), { timeout: 90_000, interval: 500 }).toEqual([])
    })

    test('a part of which the server has lost or doubled rows is written again', async () => {
      const store = temporaryStore()
      const target = { host: server.host, database: await newDatabase(server) }
      write(store, 'text')
      await publishToDatabase(store.path, target)
      const [source] = await server.query(
        `SELECT name FROM system.tables WHERE database = '${target.database}' AND name LIKE '_parley_members_%'`,
      )
      const table = `${target.database}.${source?.[0]}`
      await server.run(`INSERT INTO ${table} SELECT * FROM ${table}`)
      expect(await server.query(`SELECT count() FROM ${target.database}.members`)).toEqual([['2']])
      expect(writtenIn(await publishToDatabase(store.path, target))).toContain('members')
      await compare(store.path, target.database)
    })

    test('the database of another warehouse, and one with other tables, are refused and not changed', async () => {
      const store = temporaryStore()
      const target = { host: server.host, database: await newDatabase(server) }
      await publishToDatabase(store.path, target)
      await expect(publishToDatabase(temporaryStore().path, target)).rejects.toMatchObject({
        code: 'publish-other-warehouse',
      })
      await compare(store.path, target.database)
      const other = { ...target, database: await newDatabase(server) }
      await server.run(`CREATE TABLE ${other.database}.meetings (a String) ENGINE = TinyLog`)
      await expect(publishToDatabase(store.path, other)).rejects.toMatchObject({ code: 'publish-not-ours' })
      expect(
        await server.query(`SELECT name FROM system.tables WHERE database = '${other.database}'`),
      ).toEqual([['meetings']])
    })

    test('of two publications at the same time, the one that began last completes', async () => {
      const store = temporaryStore()
      const target = { host: server.host, database: await newDatabase(server) }
      write(store, 'first')
      let second: Promise<DatabaseSummary> | undefined
      const first = publishToDatabase(store.path, target, {
        onProgress: () => {
          second ??= publishToDatabase(store.path, target)
        },
      })
      await expect(first).rejects.toMatchObject({ code: 'publish-overtaken' })
      expect(await second).toMatchObject({ publication: 2 })
      await compare(store.path, target.database)
    })
  })

test.skipIf(typeof debian === 'string')(
  'a wrong password, a missing database and a missing server are reported with hints, and no secret',
  async () => {
    if (typeof debian === 'string') return
    const servers = await startDebian(debian)
    onTestFinished(() => servers.close())
    const [server] = servers.servers
    if (!server) throw new Error('There is no server')
    const store = temporaryStore()
    await server.run('CREATE DATABASE lake')
    const run = (database: string, password: string) =>
      parley(['publish', `clickhouse://${server.host}/${database}`, '--database', store.path], {
        env: { PARLEY_PUBLISH_CLICKHOUSE_USER: USER, PARLEY_PUBLISH_CLICKHOUSE_PASSWORD: password },
      })
    const cases: [Awaited<ReturnType<typeof run>>, RegExp][] = [
      [
        await run('lake', 'wrong one'),
        /refuses the user or the password .*\nhint: Check publish.clickhouse_user/,
      ],
      [
        await run('sea', PASSWORD),
        /There is no database sea at .*\nhint: Create it with CREATE DATABASE sea/,
      ],
    ]
    const done = await run('lake', PASSWORD)
    expect(done).toMatchObject({ status: EXIT_STATUS.done, stderr: '' })
    await server.kill()
    cases.push([await run('lake', PASSWORD), /cannot be reached: ECONNREFUSED\nhint: Check the address/])
    for (const [{ status, stderr }, says] of cases) {
      expect(status).toBe(EXIT_STATUS.databaseUnavailable)
      expect(stderr).toMatch(says)
      expect(stderr).not.toContain('wrong one')
      expect(stderr).not.toContain(PASSWORD)
    }
  },
)
