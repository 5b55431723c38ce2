import { existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, type TestContext, test } from 'vitest'
import { closeDatabase } from '../../src/store/database/connections.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { openWarehouse } from '../../src/store/open-warehouse.ts'
import { parley, startParley } from '../cli/parley.ts'
import { type Place, placeFor, silentApi, workspace } from '../cli/workspace.ts'
import { column, loaded, startDaemon } from '../daemon/cli-daemon.ts'
import { migrationsOf, migrationsWith } from '../migrations/older-version.ts'
import { until } from '../support/until.ts'
import { requirePrograms } from '../systemd/tools.ts'
import { allFind, askAll, keepReading, openToReaders } from './other-user.ts'
import { newFolder, openAt } from './temporary-store.ts'

beforeAll(() => requirePrograms('sqlite3', 'setpriv', 'python3'))

const COUNT = 'SELECT count(*) FROM live_messages'

/** A warehouse that other users may read, in a folder that they may not write. */
async function openPlace(context: TestContext) {
  const simulator = await workspace(context)
  const place = placeFor(simulator)
  openToReaders(place.file)
  const env = { ...place.env, PARLEY_DATABASE_MODE: '0644' }
  return { simulator, place: { ...place, env } }
}

const companions = ({ file }: Place) => ['-wal', '-shm'].map(end => existsSync(`${file}${end}`))

describe('a user who may read the file but not write its folder', () => {
  test('the user can read while the daemon writes, and after it has stopped', async context => {
    const { simulator, place } = await openPlace(context)
    const daemon = startDaemon(context, place)
    await loaded(place.file)
    simulator.apply({ kind: 'publish', resource: 'messages', count: 20 })
    const [before = 0] = column(place.file, COUNT)
    const during = await askAll(place.file, COUNT)
    for (const found of Object.values(during)) expect(Number(found)).toBeGreaterThanOrEqual(Number(before))
    daemon.signal('SIGTERM')
    expect(await daemon.ended).toMatchObject({ status: 0 })
    expect(await askAll(place.file, COUNT)).toEqual(allFind(column(place.file, COUNT)[0]))
    expect(companions(place)).toEqual([true, true])
  })

  test('the user can read all commits after the daemon was killed, and while the next daemon runs', async context => {
    const { place } = await openPlace(context)
    const daemon = startDaemon(context, place)
    await loaded(place.file)
    daemon.signal('SIGKILL')
    await daemon.ended
    // Only the -wal has the last commits.
    expect(readFileSync(`${place.file}-wal`).length).toBeGreaterThan(0)
    const found = await askAll(place.file, COUNT)
    expect(found).toEqual(allFind(column(place.file, COUNT)[0]))
    startDaemon(context, place)
    await loaded(place.file)
    expect(Object.values(await askAll(place.file, COUNT)).map(Number)).not.toContain(Number.NaN)
  })

  test('the user can read after a backfill, and after one that two signals ended at once', async context => {
    const { place } = await openPlace(context)
    expect(await parley(['backfill'], place)).toMatchObject({ status: 0 })
    const found = allFind(column(place.file, COUNT)[0])
    expect(await askAll(place.file, COUNT)).toEqual(found)
    const silent = await silentApi(context)
    const env = { ...place.env, PARLEY_BASE_URL: silent.url }
    const { child, ended, says } = startParley(['backfill'], { ...place, env })
    await silent.asked
    child.kill('SIGTERM')
    await says('Stopping after ')
    child.kill('SIGTERM')
    expect(await ended).toMatchObject({ status: 75 })
    expect(companions(place)).toEqual([true, true])
    expect(await askAll(place.file, COUNT)).toEqual(found)
  })

  test('the user can read after each command that opens the file', async context => {
    const { place } = await openPlace(context)
    await parley(['backfill'], place)
    const found = allFind(column(place.file, COUNT)[0])
    for (const command of [['status'], ['resync', 'teams'], ['doctor'], ['snapshot', 'copy.db']]) {
      await parley(command, place)
      expect([command, companions(place)]).toEqual([command, [true, true]])
      expect([command, await askAll(place.file, COUNT)]).toEqual([command, found])
    }
    expect(await askAll(join(place.cwd, 'copy.db'), COUNT)).toEqual(found)
  })

  test('the user can read after a version that is too old was refused, and after a failed upgrade', async context => {
    const { place } = await openPlace(context)
    await parley(['backfill'], place)
    const found = allFind(column(place.file, COUNT)[0])
    const [older, broken] = [
      migrationsOf(newFolder(), 1),
      migrationsWith(newFolder(), '0099_broken', 'nonsense'),
    ]
    for (const migrations of [older, broken]) {
      const before = readFileSync(place.file)
      expect(() => openWarehouse({ path: place.file, migrations })).toThrow(
        /newer version|upgrade of .* failed/,
      )
      expect(readFileSync(place.file).equals(before)).toBe(true)
      expect(companions(place)).toEqual([true, true])
      expect(await askAll(place.file, COUNT)).toEqual(found)
    }
  })
})

describe('a file without its -wal and -shm', () => {
  test('a user who may not write the folder cannot read it until a parley command has run on it', async context => {
    const { place } = await openPlace(context)
    await parley(['backfill'], place)
    const count = column(place.file, COUNT)[0]
    // As after the owner has used sqlite3 without -readonly.
    const owner = openSqlite(place.file)
    owner.exec("UPDATE sync_meta SET value = value WHERE key = 'writer'")
    owner.close()
    expect(companions(place)).toEqual([false, false])
    if (process.getuid?.() === 0) {
      for (const said of Object.values(await askAll(place.file, COUNT)))
        expect(said).toMatch(/readonly database|unable to open/)
    }
    expect(await parley(['status'], place)).toMatchObject({ status: 0 })
    expect(await askAll(place.file, COUNT)).toEqual(allFind(count))
  })

  test('a snapshot needs no -wal and -shm, wherever it is', async context => {
    const { place } = await openPlace(context)
    await parley(['backfill'], place)
    expect(await parley(['snapshot', 'copy.db'], place)).toMatchObject({ status: 0 })
    const elsewhere = join(place.cwd, 'elsewhere')
    mkdirSync(elsewhere, { mode: 0o755 })
    renameSync(join(place.cwd, 'copy.db'), join(elsewhere, 'taken.db'))
    expect(await askAll(join(elsewhere, 'taken.db'), COUNT)).toEqual(allFind(column(place.file, COUNT)[0]))
  })
})

const TEAMS = 3000

/** A closed warehouse of the first version with teams, which other users may read. */
function olderWarehouse(): string {
  const path = join(newFolder(), 'parley.db')
  openToReaders(path)
  const db = openWarehouse({ path, mode: 0o644, migrations: migrationsOf(newFolder(), 1) })
  const insert = db.prepare('INSERT INTO teams (id, name, _first_seen_at, _synced_at) VALUES (?, ?, ?, ?)')
  const at = '2026-01-01T00:00:00.000Z'
  db.transaction(() => {
    for (let number = 0; number < TEAMS; number += 1) insert.run(`t${number}`, 'x'.repeat(2000), at, at)
  })()
  closeDatabase(db)
  return path
}

/** While a starting writer is about to fill the `-shm`, SQLite refuses users who may not write it at once. */
const NO_WAIT_HELPS = 'SQLITE_READONLY_RECOVERY'

describe('reads that are repeated', () => {
  test.each([
    ['wait for a busy file', 5000, [String(TEAMS), NO_WAIT_HELPS]],
    [
      'do not wait',
      0,
      [String(TEAMS), NO_WAIT_HELPS, 'SQLITE_BUSY', 'SQLITE_BUSY_RECOVERY', 'SQLITE_BUSY_SNAPSHOT'],
    ],
  ])(
    'reads that %s find the same rows while the file is upgraded, written, purged, rebuilt and closed six times',
    async (_, patience, allowed) => {
      const path = olderWarehouse()
      const reading = await keepReading(path, 'SELECT count(*) FROM teams', patience)
      for (let round = 0; round < 6; round += 1) {
        const before = reading.count()
        const store = openAt(path, 0o644)
        await store.transaction(() => store.tombstone('teams', [[`t${round}`]], '2026-01-10T00:00:00.000Z'))
        await store.transaction(() =>
          store.purger.purge({
            before: '2026-02-10T00:00:00.000Z',
            limit: 1000,
            now: '2026-02-10T00:00:00.000Z',
          }),
        )
        expect(await store.purger.clean({ rebuild: true, signal: new AbortController().signal })).toBe(true)
        store.maintenance.optimize()
        store.close()
        await until(reading.count, count => count > before + 5)
      }
      const answers = await reading.end()
      expect(answers).toContain(String(TEAMS))
      expect(answers.filter(answer => !allowed.includes(answer))).toEqual([])
    },
  )
})
