import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { EXPORT_FOLDER, openTarget, type Target } from '../../src/export/target.ts'
import { targetError } from '../../src/export/target-folder.ts'
import { openWarehouse } from '../../src/store/open-warehouse.ts'
import { migrationsOf } from '../migrations/older-version.ts'
import { newFolder, type TemporaryStore, temporaryStore } from '../store/temporary-store.ts'
import { contents, emptyTarget, exportTo, filesIn, manifestOf, withLook } from './exporting.ts'

const NOW = '2026-06-30T12:00:00.000Z'

function addActivity(store: TemporaryStore, id: string, occurredAt: string): void {
  store.put(
    'activities',
    [{ id, type: 't', source_type: 'MEETING', source_id: 's', occurred_at: occurredAt, links: [] }],
    {
      now: NOW,
    },
  )
}

const monthsOf = (folder: string, table: string) =>
  [...filesIn(folder).keys()].filter(name => name.startsWith(`${table}/`)).map(name => name.split('/')[1])

const tableOf = (folder: string, name: string) =>
  manifestOf(folder).tables.find(({ table }) => table === name)

describe('the manifest of an export', () => {
  test('the manifest describes every table file by file, and how complete it is', async () => {
    const store = temporaryStore()
    const target = emptyTarget()
    addActivity(store, 'a', '2026-01-02T00:00:00.000Z')
    addActivity(store, 'b', '2026-02-02T00:00:00.000Z')
    store.state.fresh('activities', '2026-06-30T11:59:00.000Z')
    const { exported_at } = await exportTo(store.path, target)
    const manifest = manifestOf(target)
    expect(manifest).toMatchObject({ format: 'parley-parquet-1', parley: '1.2.3', exported_at })
    expect(manifest.schema_version).toBeGreaterThanOrEqual(4)
    const activities = tableOf(target, 'activities')
    expect(activities).toMatchObject({
      folder: 'activities',
      resource: 'activities',
      partitioned_by: 'occurred_at',
      exported_at,
      fresh_as_of: '2026-06-30T11:59:00.000Z',
      complete_as_of: null,
      rows: 2,
      files: [
        { path: 'activities/month=2026-01/part-00000.parquet', month: '2026-01', rows: 1, exported_at },
        { path: 'activities/month=2026-02/part-00000.parquet', month: '2026-02', rows: 1, exported_at },
      ],
    })
    expect(activities?.columns.find(({ name }) => name === 'occurred_at')).toEqual({
      name: 'occurred_at',
      type: 'TIMESTAMP(MILLIS, UTC)',
    })
    expect(activities?.columns.find(({ name }) => name === '_extra')).toEqual({
      name: '_extra',
      type: 'STRING',
      json: true,
    })
    const listed = manifest.tables.flatMap(({ files }) => files)
    expect(listed.map(({ path }) => path).toSorted()).toEqual([...filesIn(target).keys()])
    for (const { path, bytes } of listed) expect(statSync(join(target, path)).size).toBe(bytes)
  })

  test('an export before the first backfill is complete as of no instant', async () => {
    const { complete_as_of } = await exportTo(temporaryStore().path, emptyTarget())
    expect(complete_as_of).toBeNull()
  })

  test('the manifest names only files that exist at all times', async () => {
    const store = temporaryStore()
    const target = emptyTarget()
    addActivity(store, 'a', '2026-01-02T00:00:00.000Z')
    await exportTo(store.path, target)
    store.atomically(() => store.tombstone('activities', [['a']], NOW))
    store.db.exec("UPDATE activities SET occurred_at = '2026-03-02T00:00:00.000Z'")
    const looks: boolean[] = []
    const look = () => {
      looks.push(
        manifestOf(target).tables.every(({ files }) =>
          files.every(({ path }) => existsSync(join(target, path))),
        ),
      )
    }
    await exportTo(store.path, target, {
      through: inner => ({
        ...withLook(inner, look),
        writeText(name, text) {
          look()
          inner.writeText(name, text)
          look()
        },
        remove(file) {
          look()
          inner.remove(file)
        },
      }),
    })
    look()
    expect(looks.length).toBeGreaterThan(4)
    expect(looks).not.toContain(false)
  })
})

describe('the partitions of a target', () => {
  test('an emptied month is removed with its folder, and a new one is added', async () => {
    const store = temporaryStore()
    const target = emptyTarget()
    await exportTo(store.path, target)
    expect(monthsOf(target, 'activities')).toEqual(['month=__HIVE_DEFAULT_PARTITION__'])
    addActivity(store, 'a', '2026-01-02T00:00:00.000Z')
    expect((await exportTo(store.path, target)).files_removed).toBeGreaterThan(0)
    expect(monthsOf(target, 'activities')).toEqual(['month=2026-01'])
    addActivity(store, 'a', '2026-03-02T00:00:00.000Z')
    await exportTo(store.path, target)
    expect(monthsOf(target, 'activities')).toEqual(['month=2026-03'])
    expect(readdirSync(join(target, 'activities'))).toEqual(['month=2026-03'])
    store.db.exec('DELETE FROM activities')
    await exportTo(store.path, target)
    expect(monthsOf(target, 'activities')).toEqual(['month=__HIVE_DEFAULT_PARTITION__'])
  })

  test('with --since earlier months are not changed, and the manifest has their older time', async () => {
    const store = temporaryStore()
    const target = emptyTarget()
    addActivity(store, 'a', '2026-01-02T00:00:00.000Z')
    addActivity(store, 'b', '2026-02-20T00:00:00.000Z')
    addActivity(store, 'c', '2026-03-02T00:00:00.000Z')
    const first = await exportTo(store.path, target)
    const before = filesIn(target)
    store.db.exec("UPDATE activities SET type = 'changed'; DELETE FROM activities WHERE id = 'c'")
    const second = await exportTo(store.path, target, { since: '2026-02-25T00:00:00.000Z' })
    expect(monthsOf(target, 'activities')).toEqual(['month=2026-01', 'month=2026-02'])
    const [january = '', february = ''] = ['01', '02'].map(
      month => `activities/month=2026-${month}/part-00000.parquet`,
    )
    expect(filesIn(target).get(january)).toEqual(before.get(january))
    expect(filesIn(target).get(february)).not.toEqual(before.get(february))
    expect(tableOf(target, 'activities')?.files).toMatchObject([
      { path: january, rows: 1, exported_at: first.exported_at },
      { path: february, rows: 1, exported_at: second.exported_at },
    ])
  })

  test('with --tables the other tables stay, in the manifest too', async () => {
    const store = temporaryStore()
    const target = emptyTarget()
    const first = await exportTo(store.path, target)
    const count = manifestOf(target).tables.length
    store.put('members', [{ id: 'm', name: 'M' }], { now: NOW })
    store.put('teams', [{ id: 't', name: 'T', member_ids: [] }], { now: NOW })
    const { tables } = await exportTo(store.path, target, { tables: ['teams'] })
    expect(tables.map(({ table }) => table)).toEqual(['teams'])
    expect(manifestOf(target).tables).toHaveLength(count)
    expect(tableOf(target, 'teams')).toMatchObject({ rows: 1 })
    expect(tableOf(target, 'members')).toMatchObject({ rows: 0, exported_at: first.exported_at })
  })
})

describe('the tables of deleted CRM objects', () => {
  /** An exported warehouse with such a table, and the change that deletes it. */
  async function exportedObject() {
    const store = temporaryStore()
    const target = emptyTarget()
    store.put('crm_objects', [{ name: 'a,b' }], { requested: 'a,b', now: NOW })
    await store.crmTables.finish()
    await exportTo(store.path, target)
    const folder = tableOf(target, 'crm_a,b')?.folder ?? ''
    return { store, target, folder, go: () => store.db.exec('DROP TABLE "crm_a,b"') }
  }

  test('a table of a deleted object is removed with its folder in an export of all tables', async () => {
    const { store, target, folder, go } = await exportedObject()
    expect(folder).toMatch(/^crm_a_b-[0-9a-f]{8}$/)
    expect(existsSync(join(target, folder))).toBe(true)
    go()
    await exportTo(store.path, target, { tables: ['members'] })
    expect(existsSync(join(target, folder))).toBe(true)
    await exportTo(store.path, target)
    expect(existsSync(join(target, folder))).toBe(false)
    expect(tableOf(target, 'crm_a,b')).toBeUndefined()
  })

  test('no table remains after the export that dropped it was killed before the removal', async () => {
    const { store, target, folder, go } = await exportedObject()
    go()
    const dying = (inner: Target): Target => ({
      ...inner,
      remove() {
        throw new Error('killed here')
      },
    })
    await expect(exportTo(store.path, target, { through: dying })).rejects.toThrow('killed here')
    expect(tableOf(target, 'crm_a,b')).toBeUndefined()
    expect(existsSync(join(target, folder))).toBe(true)
    await exportTo(store.path, target)
    expect(existsSync(join(target, folder))).toBe(false)
  })

  test('no table remains when the manifest is lost', async () => {
    const { store, target, folder, go } = await exportedObject()
    go()
    rmSync(join(target, 'manifest.json'))
    await exportTo(store.path, target)
    expect(existsSync(join(target, folder))).toBe(false)
  })

  test('the tables are found by their folder and by a name with a comma', async () => {
    const { store, target, folder } = await exportedObject()
    for (const name of ['crm_a,b', 'CRM_A,B', folder]) {
      const { tables } = await exportTo(store.path, target, { tables: [name, 'Members'] })
      expect(tables.map(({ table }) => table)).toEqual(['members', 'crm_a,b'])
    }
  })
})

describe('the folder of an export', () => {
  test('a folder with a foreign manifest.json is refused and not changed', async () => {
    const store = temporaryStore()
    const target = emptyTarget()
    for (const theirs of ['{"name":"my app"}', '{"format":"parley-parquet-1"}', 'no JSON']) {
      writeFileSync(join(target, 'manifest.json'), theirs)
      await expect(exportTo(store.path, target)).rejects.toMatchObject({ code: 'export-foreign' })
      expect(readdirSync(target)).toEqual(['manifest.json'])
      expect(readFileSync(join(target, 'manifest.json'), 'utf8')).toBe(theirs)
    }
  })

  test('a copy of an export, as object storage makes it, is accepted', async () => {
    const store = temporaryStore()
    const target = emptyTarget()
    const copy = join(emptyTarget(), 'copy')
    await exportTo(store.path, target)
    cpSync(target, copy, { recursive: true, filter: name => !name.includes('.parley') })
    const { tables } = await exportTo(store.path, copy)
    expect(tables.filter(({ files_written }) => files_written > 0)).toEqual([])
  })

  test('the export of another warehouse is replaced completely', async () => {
    const [store, other] = [temporaryStore(), temporaryStore()]
    const target = emptyTarget()
    addActivity(other, 'a', '2026-01-02T00:00:00.000Z')
    other.put('members', [{ id: 'm', name: 'M' }], { now: NOW })
    addActivity(store, 'b', '2026-02-02T00:00:00.000Z')
    await exportTo(other.path, target)
    await exportTo(store.path, target)
    const own = emptyTarget()
    await exportTo(store.path, own)
    expect(contents(target)).toEqual(contents(own))
  })

  test('a part of another warehouse is refused, also where an earlier version wrote the manifest', async () => {
    const [store, other] = [temporaryStore(), temporaryStore()]
    const target = emptyTarget()
    const holds = ({ state }: TemporaryStore, id: string) =>
      state.setMeta('workspace', JSON.stringify({ id, base_url: 'https://api.example.com' }))
    holds(store, 'w')
    await exportTo(store.path, target)
    const before = contents(target)
    const parts = [{ tables: ['members'] }, { since: '2026-01-01T00:00:00.000Z' }]
    const refused = async () => {
      for (const part of parts)
        await expect(exportTo(other.path, target, part)).rejects.toMatchObject({
          code: 'export-other-warehouse',
          exitStatus: 64,
        })
      expect(contents(target)).toEqual(before)
    }
    holds(other, 'w')
    await refused()
    const { warehouse: _, ...earlier } = manifestOf(target)
    const asEarlier = () => writeFileSync(join(target, 'manifest.json'), JSON.stringify(earlier))
    asEarlier()
    holds(other, 'v')
    await refused()
    for (const part of parts) {
      asEarlier()
      await exportTo(store.path, target, part)
      await exportTo(store.path, target, part)
    }
  })

  test('a folder with foreign files is refused and not changed', async () => {
    const store = temporaryStore()
    const target = emptyTarget()
    writeFileSync(join(target, 'thesis.txt'), 'mine')
    await expect(exportTo(store.path, target)).rejects.toMatchObject({
      code: 'export-foreign',
      exitStatus: 64,
    })
    expect(readdirSync(target)).toEqual(['thesis.txt'])
  })

  test('a copy of an exported file under another name stays', async () => {
    const store = temporaryStore()
    const target = emptyTarget()
    await exportTo(store.path, target)
    cpSync(join(target, 'members'), join(target, 'members of May'), { recursive: true })
    await exportTo(store.path, target)
    expect(existsSync(join(target, 'members of May', 'part-00000.parquet'))).toBe(true)
  })

  test('a file in place of the folder is refused', async () => {
    const store = temporaryStore()
    const file = join(emptyTarget(), 'file')
    writeFileSync(file, 'mine')
    await expect(exportTo(store.path, file)).rejects.toMatchObject({
      code: 'export-no-folder',
      exitStatus: 64,
    })
    expect(readFileSync(file, 'utf8')).toBe('mine')
  })

  test('foreign files next to exported ones stay, also when the exported ones are removed', async () => {
    const store = temporaryStore()
    const target = emptyTarget()
    addActivity(store, 'a', '2026-01-02T00:00:00.000Z')
    await exportTo(store.path, target)
    const theirs = [
      'note.txt',
      'activities/note.txt',
      'activities/month=2026-01/note.txt',
      'other/part-00000.parquet',
    ]
    mkdirSync(join(target, 'other'))
    for (const name of theirs) writeFileSync(join(target, name), 'mine')
    addActivity(store, 'a', '2026-03-02T00:00:00.000Z')
    await exportTo(store.path, target)
    for (const name of theirs) expect(readFileSync(join(target, name), 'utf8')).toBe('mine')
    expect(monthsOf(target, 'activities').toSorted()).toEqual(['month=2026-01', 'month=2026-03', 'note.txt'])
  })

  test('a damaged file is written again, and remains of a crash are removed', async () => {
    const store = temporaryStore()
    const target = emptyTarget()
    addActivity(store, 'a', '2026-01-02T00:00:00.000Z')
    await exportTo(store.path, target)
    const whole = filesIn(target)
    const member = join(target, 'members/part-00000.parquet')
    writeFileSync(member, readFileSync(member).subarray(0, 40))
    writeFileSync(join(target, 'teams/part-00000.parquet'), 'PAR1')
    for (const folder of ['activities/month=2026-01', 'activities/month=1999-01', 'crm_gone']) {
      mkdirSync(join(target, folder), { recursive: true })
      writeFileSync(join(target, folder, '.part-00000.parquet.tmp'), 'half')
    }
    writeFileSync(join(target, 'manifest.json'), '{"half')
    await exportTo(store.path, target)
    const again = filesIn(target)
    expect([...again.keys()]).toEqual([...whole.keys()])
    expect(existsSync(join(target, 'activities/month=1999-01'))).toBe(false)
    expect(existsSync(join(target, 'crm_gone'))).toBe(false)
    for (const [name, { content }] of again)
      if (!name.startsWith('sync_')) expect(content).toBe(whole.get(name)?.content)
    expect(manifestOf(target).tables.length).toBeGreaterThan(30)
  })

  test('files have the mode of the database, and its readers may list the folders', async () => {
    const store = temporaryStore()
    const target = join(emptyTarget(), 'new', 'folder')
    await exportTo(store.path, target, { mode: 0o640 })
    const modeOf = (name: string) => (statSync(join(target, name)).mode & 0o777).toString(8)
    expect(['members/part-00000.parquet', 'manifest.json', 'members', '.'].map(modeOf)).toEqual([
      '640',
      '640',
      '750',
      '750',
    ])
  })

  test('a second export to the same folder at the same time is refused', async () => {
    const store = temporaryStore()
    const target = emptyTarget()
    const held = openTarget(target, 0o600, systemClock())
    await expect(exportTo(store.path, target)).rejects.toMatchObject({
      code: 'export-locked',
      exitStatus: 75,
    })
    held.close()
    await exportTo(store.path, target)
  })
})

test('the whole export is of one instant, whatever is written meanwhile', async () => {
  const store = temporaryStore()
  const target = emptyTarget()
  store.put('members', [{ id: 'm', name: 'M' }], { now: NOW })
  await exportTo(store.path, target, {
    through: inner =>
      withLook(inner, file => {
        store.put('members', [{ id: `after ${file}`, name: 'N' }], { now: NOW })
        store.put('teams', [{ id: `after ${file}`, name: 'N', member_ids: ['m'] }], { now: NOW })
      }),
  })
  expect(['members', 'teams', 'team_members'].map(table => tableOf(target, table)?.rows)).toEqual([1, 0, 0])
  expect(store.column('SELECT count(*) FROM teams')).not.toEqual([0])
})

test('a warehouse of an older version and an empty file are not exported', async () => {
  const older = join(newFolder(), 'older.db')
  openWarehouse({ path: older, migrations: migrationsOf(newFolder(), 1) }).close()
  const empty = join(newFolder(), 'empty.db')
  writeFileSync(empty, '')
  await expect(exportTo(older, emptyTarget())).rejects.toMatchObject({
    code: 'database-older',
    exitStatus: 73,
  })
  await expect(exportTo(empty, emptyTarget())).rejects.toMatchObject({ code: 'no-database', exitStatus: 73 })
})

test('a warehouse whose views an older version created, with the same migrations, is not exported', async () => {
  const store = temporaryStore()
  store.exec(`DROP VIEW periods; CREATE VIEW "periods" /* One period. */ AS SELECT 'last week' AS period`)
  await expect(exportTo(store.path, emptyTarget())).rejects.toMatchObject({
    code: 'database-older',
    exitStatus: 73,
  })
})

test('an unknown table is refused with the nearest name', async () => {
  const store = temporaryStore()
  await expect(exportTo(store.path, emptyTarget(), { tables: ['members', 'mesages'] })).rejects.toMatchObject(
    {
      code: 'unknown-table',
      exitStatus: 64,
      hint: expect.stringMatching(/^Did you mean messages\? The tables are members, /),
    },
  )
})

test('a stopped export ends between rows and leaves no partial file', async () => {
  const store = temporaryStore()
  const target = emptyTarget()
  store.db.exec(
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
     INSERT INTO activities (id, occurred_at, type, _first_seen_at, _synced_at)
     SELECT 'a' || i, '2026-01-01T00:00:00.000Z', 't', '${NOW}', '${NOW}' FROM n`,
  )
  const stopped = new Error('stopped')
  const controller = new AbortController()
  const begun: string[] = []
  const stopping = exportTo(store.path, target, {
    signal: controller.signal,
    through: inner => ({
      ...inner,
      beginFile(file) {
        begun.push(file)
        if (file.startsWith('activities/')) controller.abort(stopped)
        return inner.beginFile(file)
      },
    }),
  })
  await expect(stopping).rejects.toBe(stopped)
  expect(begun.at(-1)).toBe('activities/month=2026-01/part-00000.parquet')
  expect([...filesIn(target).keys()]).toEqual(begun.slice(0, -1).toSorted())
  expect(existsSync(join(target, 'manifest.json'))).toBe(false)
  expect(existsSync(join(target, 'activities'))).toBe(false)
  await exportTo(store.path, target)
  expect(tableOf(target, 'activities')?.rows).toBe(60_000)
  expect([...filesIn(target).keys()].filter(name => name.endsWith('.tmp'))).toEqual([])
})

test('a read-only file system is reported differently from a missing permission', () => {
  const said = (code: string) =>
    String(targetError(Object.assign(new Error(), { code }), emptyTarget(), EXPORT_FOLDER))
  expect(said('EROFS')).toContain('its file system is read-only (EROFS)')
  expect(said('EACCES')).toContain('no permission to write there (EACCES)')
})
