import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { EXIT_STATUS } from '../../src/errors.ts'
import type { DatabaseVerifyFault } from '../../src/publish/clickhouse/verify/fault.ts'
import { parley } from '../cli/parley.ts'
import { type ClickHouseTarget, publishToDatabase } from '../publish/clickhouse/publishing.ts'
import { verify } from '../publish/clickhouse/verify/verifying.ts'
import { changeActivity, eraseMember, NOW } from '../publish/verify/verifying.ts'
import { type TemporaryStore, temporaryStore } from '../store/temporary-store.ts'
import { quoted } from './clickhouse-database.ts'
import {
  type ClickHouseServer,
  ENGINES,
  newDatabase,
  PASSWORD,
  READER,
  type Servers,
} from './clickhouse-servers.ts'
import { startProxy } from './cutting-proxy.ts'
import { startPublished } from './published.ts'

const WORD = 'Rumpelstilzchen'

/** Activities of three months and three members; the last member has the word as a name. */
function write(store: TemporaryStore, type = 'call'): void {
  for (const month of ['01', '02', '03']) changeActivity(store, `a${month}`, type, month)
  store.put(
    'members',
    ['m1', 'm2', WORD].map(name => ({ id: name, name })),
    { now: NOW },
  )
}

/** The table that has the rows of a published table. */
async function sourceOf(server: ClickHouseServer, database: string, folder: string): Promise<string> {
  const [row] = await server.query(
    `SELECT name FROM system.tables WHERE database = '${database}' AND name LIKE '\\_parley\\_${folder}\\_%'`,
  )
  return `${database}.${quoted(String(row?.[0]))}`
}

async function columnsOf(server: ClickHouseServer, source: string): Promise<string[]> {
  const [database, table] = source.replaceAll('`', '').split('.')
  const rows = await server.query(
    `SELECT name FROM system.columns WHERE database = '${database}' AND table = '${table}'`,
  )
  return rows.map(([name]) => String(name))
}

/** Replaces the rows of a table by other ones, as by a fault of the server. @param cells SQL by column */
async function rewrite(
  server: ClickHouseServer,
  source: string,
  { cells = {}, where = '1' }: { cells?: Readonly<Record<string, string>>; where?: string },
): Promise<void> {
  const names = await columnsOf(server, source)
  const copy = source.replace('`_parley', '`copy')
  await server.run(`CREATE TABLE ${copy} ENGINE = Memory AS SELECT * FROM ${source}`)
  for (const [part, number] of await server.query(`SELECT DISTINCT _parley_part, _publication FROM ${copy}`))
    await server.run(`ALTER TABLE ${source} DROP PARTITION ('${part}', ${number})`)
  const list = names.map(name =>
    cells[name] === undefined ? quoted(name) : `${cells[name]} AS ${quoted(name)}`,
  )
  await server.run(
    `INSERT INTO ${source} SELECT ${list.join(', ')} FROM (SELECT * FROM ${copy} WHERE ${where})`,
  )
  await server.run(`DROP TABLE ${copy}`)
}

const named = (faults: readonly DatabaseVerifyFault[]) =>
  faults.map(({ table, part, written_in, kind }) => ({ table, part, written_in, kind }))

/** Does what the hints say. The last statement of a publication is done twice. */
async function followHint(
  server: ClickHouseServer,
  warehouse: string,
  target: ClickHouseTarget,
  { hint }: DatabaseVerifyFault,
): Promise<void> {
  const [, statements] = /[Rr]un ((?:ALTER|DROP) .*) on the server, then/.exec(hint) ?? []
  for (const statement of statements?.split('; ') ?? []) await server.run(statement)
  expect(hint).toContain(`parley publish 'clickhouse://${target.host}/${target.database}'`)
  const times = hint.includes('--full --keep 2 twice') ? 2 : 1
  const full = hint.includes('--full')
  for (let time = 0; time < times; time += 1) await publishToDatabase(warehouse, target, { full })
}

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

    /** A database with three publications. */
    const published = async () => {
      const store = temporaryStore()
      const target = { host: server.host, database: await newDatabase(server) }
      for (const type of ['call', 'meeting', 'email']) {
        write(store, type)
        await publishToDatabase(store.path, target)
      }
      return { store, target, source: await sourceOf(server, target.database, 'members') }
    }

    test('every value of a hostile world is read back as it was sent', async () => {
      const { trial } = await startPublished()
      onTestFinished(() => trial.close())
      const target = { host: server.host, database: await newDatabase(server) }
      await publishToDatabase(trial.database, target)
      const summary = await verify(trial.database, target)
      expect(summary).toMatchObject({ publication: 1, compared: true, faults: [] })
      const rows = summary.tables.reduce((total, table) => total + table.rows, 0)
      expect(rows).toBeGreaterThan(1000)
      expect(summary.tables.filter(({ counted_parts: parts }) => parts > 0)).toEqual([])
      expect(
        summary.tables.filter(({ table, parts_changed: parts }) => parts > 0 && table !== 'sync_status'),
      ).toEqual([])
      expect(await verify(undefined, target)).toMatchObject({ compared: false, faults: [] })
    })

    test('a changed value, a lost row, an additional row and a lost part are each found and named, and the hint mends them', async () => {
      const { store, target, source } = await published()
      const clean = await verify(store.path, target)
      expect(clean.faults).toEqual([])
      expect(clean.tables.find(({ table }) => table === 'activities')).toMatchObject({
        rows: 3,
        parts: 3,
        earlier_parts: 3,
        unshown_parts: 0,
        parts_changed: 0,
      })
      const damages: [kind: string, says: RegExp, damage: () => Promise<void>][] = [
        [
          'values',
          /are not those that were published/,
          () => rewrite(server, source, { cells: { name: "if(id = 'm1', 'other', name)" } }),
        ],
        ['rows', /has 2 rows instead of 3/, () => rewrite(server, source, { where: "id != 'm2'" })],
        [
          'rows',
          /has 4 rows instead of 3/,
          () => server.run(`INSERT INTO ${source} SELECT * FROM ${source} WHERE id = 'm2'`),
        ],
        ['missing', /The part is missing: 3 rows expected/, () => rewrite(server, source, { where: '0' })],
        ['missing', /The part is missing: 3 rows expected/, () => server.run(`DROP TABLE ${source}`)],
        [
          'unreadable',
          /columns that parley did not create/,
          () => server.run(`ALTER TABLE ${source} ADD COLUMN added Array(String)`),
        ],
      ]
      for (const [kind, says, damage] of damages) {
        await damage()
        const { faults } = await verify(store.path, target)
        expect(faults, kind).toHaveLength(1)
        const [fault] = faults
        if (!fault) continue
        expect(fault).toMatchObject({ table: 'members', kind, message: expect.stringMatching(says) })
        expect(fault.part).toBe(kind === 'unreadable' ? null : '[]')
        await followHint(server, store.path, target, fault)
        expect((await verify(store.path, target)).faults, `after ${fault.hint}`).toEqual([])
      }
    })

    test('a damaged file of the server, and views that are gone or other ones, are named', async () => {
      const { store, target, source } = await published()
      await server.run(`DROP TABLE ${target.database}.members`)
      await server.run(`DROP TABLE ${target.database}.activities`)
      await server.run(`CREATE VIEW ${target.database}.activities AS SELECT 1 AS id`)
      const { faults } = await verify(store.path, target)
      expect(faults.map(fault => [fault.source, fault.kind, fault.message]).toSorted()).toEqual([
        ['activities', 'view', 'The view is not the one that parley created'],
        ['members', 'view', 'The view is missing'],
      ])
      await publishToDatabase(store.path, target)
      expect((await verify(store.path, target)).faults).toEqual([])
      damageFiles(server.folder, WORD)
      const damaged = await verify(store.path, target)
      expect(named(damaged.faults)).toEqual([
        { table: 'members', part: null, written_in: null, kind: 'unreadable' },
      ])
      expect(`${target.database}.${quoted(damaged.faults[0]?.source ?? '')}`).toBe(source)
    })

    test('purged content is found in parts that a publication shows, and in rows that none shows', async () => {
      const { store, target, source } = await published()
      const kept = `${target.database}.kept`
      await server.run(`CREATE TABLE ${kept} ENGINE = Memory AS SELECT * FROM ${source}`)
      eraseMember(store, WORD)
      const before = await verify(store.path, target)
      expect(named(before.faults)).toEqual([{ table: 'members', part: '[]', written_in: 1, kind: 'erased' }])
      expect(JSON.stringify(before.faults.map(({ message, hint }) => [message, hint]))).not.toContain(WORD)
      await publishToDatabase(store.path, target)
      expect((await verify(store.path, target)).faults).toEqual([])
      await server.run(`INSERT INTO ${source} SELECT * FROM ${kept}`)
      const { faults } = await verify(store.path, target)
      expect(named(faults)).toEqual([{ table: 'members', part: '[]', written_in: 1, kind: 'erased' }])
      expect(faults[0]?.message).toMatch(/^1 row with content that was purged, which no publication shows$/)
      await publishToDatabase(store.path, target)
      expect((await verify(store.path, target)).faults).toEqual([])
    })

    test('publications that complete while the rows are read are no fault, whenever they begin', async () => {
      const { store, target } = await published()
      const proxy = await startProxy(server.host)
      onTestFinished(() => proxy.close())
      let publications = 0
      const publish = async () => {
        for (let time = 0; time < 2; time += 1) {
          publications += 1
          write(store, `type ${publications}`)
          await publishToDatabase(store.path, target)
        }
      }
      proxy.arm(Number.POSITIVE_INFINITY)
      await verify(store.path, { ...target, host: proxy.host })
      const requests = proxy.count()
      expect(requests).toBeGreaterThan(50)
      for (const request of [3, 5, 8, 11, Math.round(requests / 2)]) {
        proxy.before(request, publish)
        expect((await verify(store.path, { ...target, host: proxy.host })).faults, `${request}`).toEqual([])
      }
      expect(publications).toBe(10)
    })

    test('parts that an earlier version of parley wrote without a checksum are counted', async () => {
      const { store, target, source } = await published()
      await server.run(`DROP TABLE ${target.database}._parley_checksums`)
      expect((await verify(store.path, target)).faults).toEqual([])
      write(store, 'text')
      await publishToDatabase(store.path, target)
      const summary = await verify(store.path, target)
      expect(summary.faults).toEqual([])
      expect(summary.tables.find(({ table }) => table === 'members')).toMatchObject({ counted_parts: 1 })
      expect(summary.tables.find(({ table }) => table === 'activities')).toMatchObject({ counted_parts: 3 })
      await rewrite(server, source, { where: "id != 'm2'" })
      expect(named((await verify(store.path, target)).faults)).toEqual([
        { table: 'members', part: '[]', written_in: 1, kind: 'rows' },
      ])
    })

    test.runIf(!isModern)('a user that may only read verifies, and cannot publish', async () => {
      const { store, target, source } = await published()
      const address = `clickhouse://${target.host}/${target.database}`
      const run = (...command: string[]) =>
        parley([...command, address, '--database', store.path], {
          env: { PARLEY_PUBLISH_CLICKHOUSE_USER: READER, PARLEY_PUBLISH_CLICKHOUSE_PASSWORD: PASSWORD },
        })
      const clean = await run('publish', 'verify')
      expect(clean).toMatchObject({ status: EXIT_STATUS.done, stderr: '' })
      expect(clean.stdout).toMatch(/^activities +3 +\S+ \S+ +3 +3 +0 +0$/m)
      expect(clean.stdout).toMatch(
        /Checked publication 3 of .*, and all other rows of the server: \d+ parts in .*, no fault\./,
      )
      await server.run(`INSERT INTO ${source} SELECT * FROM ${source}`)
      const damaged = await run('publish', 'verify')
      expect(damaged).toMatchObject({ status: EXIT_STATUS.databaseUnavailable, stderr: '' })
      expect(damaged.stdout).toMatch(
        /^members, part \[\], _parley_members_\w+ of publication 1: The part has 6 rows instead of 3\.\n {2}hint: Run ALTER TABLE /m,
      )
      const written = await run('publish')
      expect(written).toMatchObject({ status: EXIT_STATUS.databaseUnavailable, stdout: '' })
      expect(written.stderr).toMatch(/may not write the database/)
    })
  })

/** Changes bytes in the files of the server that have a text. */
function damageFiles(folder: string, text: string): void {
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!/\.bin$/.test(name)) continue
    const path = join(folder, name)
    const bytes = readFileSync(path)
    const at = bytes.indexOf(text)
    if (at < 0) continue
    bytes[at] = 0
    writeFileSync(path, bytes)
  }
}
