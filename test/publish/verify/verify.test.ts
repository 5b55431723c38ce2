import { copyFileSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Storage } from '../../../src/publish/storage/storage.ts'
import type { VerifySummary } from '../../../src/publish/verify/verify.ts'
import { temporaryStore } from '../../store/temporary-store.ts'
import { type Lake, publishTo } from '../publishing.ts'
import {
  changeActivity,
  copyOf,
  dataFiles,
  emptyLake,
  eraseMember,
  faultsOf,
  manifestLists,
  NOW,
  newestFile,
  publishedWorld,
  verify,
  type World,
  withChanged,
} from './verifying.ts'

const named = ({ faults }: VerifySummary) =>
  faults.map(({ table, part, file, kind }) => ({ table, part, file, kind }))

const rowsOf = ({ tables }: VerifySummary, folder: string) =>
  tables.find(table => table.folder === folder)?.rows

/** Tables with files that no snapshot names. */
const unnamedIn = ({ tables }: VerifySummary) =>
  Object.fromEntries(
    tables
      .filter(({ unnamed_files }) => unnamed_files > 0)
      .map(({ folder, unnamed_files }) => [folder, unnamed_files]),
  )

let world: World
beforeAll(async () => {
  world = await publishedWorld(afterAll)
})

test('a target is clean after several publications with changes and an erasure, with and without the warehouse', async () => {
  const { store, lake } = world
  const summary = await verify(lake, store.path)
  expect(summary.faults).toEqual([])
  expect(summary).toMatchObject({ publication: 3, compared: true })
  const data = summary.tables.filter(({ folder }) => !folder.startsWith('sync_'))
  expect(data.filter(({ parts_changed }) => parts_changed > 0)).toEqual([])
  expect(rowsOf(summary, 'activities')).toBe(store.column('SELECT count(*) FROM activities')[0])
  for (const table of ['activities', 'transcript_entries', 'crm_records', 'message_copies'])
    expect(rowsOf(summary, table), table).toBeGreaterThan(0)
  expect(await verify(lake, undefined)).toMatchObject({ compared: false, faults: [] })
})

test('texts with characters that decoders like to drop or change are no fault', async () => {
  const store = temporaryStore()
  const lake = emptyLake()
  for (const [place, name] of [
    '\ufeffmark',
    '\ufeff',
    'a\ufeffb',
    'a\u0000b',
    '\u2028\r\n',
    'e\u0301',
  ].entries())
    store.put('members', [{ id: `m${place}`, name }])
  await publishTo(store.path, lake, { tables: ['members'] })
  expect(await verify(lake, store.path)).toMatchObject({ faults: [], compared: true })
})

describe('a damaged target', () => {
  /** Verifies a damaged copy. */
  const damaged = (damage: (lake: Lake) => void) => {
    const lake = copyOf(world.lake)
    damage(lake)
    return verify(lake, world.store.path)
  }

  test('one changed byte of a file is found, and the file is named', async () => {
    const [file = ''] = dataFiles(world.lake, 'members').slice(-1)
    const summary = await damaged(({ folder }) => {
      const bytes = readFileSync(join(folder, file))
      writeFileSync(join(folder, file), withChanged(bytes, bytes.length / 2))
    })
    expect(named(summary)).toEqual([
      { table: 'members', part: '[]', file, kind: expect.stringMatching(/^(values|bytes|unreadable)$/) },
    ])
  })

  test('each single changed byte of a file is found, also where it changes no value', async () => {
    const { named: member, bytes } = await newestFile(world.lake, 'members')
    expect(await faultsOf(member, bytes)).toEqual([])
    for (let at = 0; at < bytes.length; at += 7)
      expect(await faultsOf(member, withChanged(bytes, at)), `byte ${at}`).toHaveLength(1)
  })

  test('a file that is missing or cut is named, with its part and what to do', async () => {
    const [file = ''] = dataFiles(world.lake, 'activities').slice(-1)
    const gone = await damaged(({ folder }) => rmSync(join(folder, file)))
    expect(named(gone)).toEqual([{ table: 'activities', part: '2026-01', file, kind: 'missing' }])
    expect(gone.faults[0]?.hint).toMatch(/^Restore the file, or run parley publish .* --keep 1: /)
    const cut = await damaged(({ folder }) =>
      writeFileSync(join(folder, file), readFileSync(join(folder, file)).subarray(1)),
    )
    expect(named(cut)).toEqual([{ table: 'activities', part: '2026-01', file, kind: 'size' }])
  })

  test('two files that changed places are both named', async () => {
    const [one = '', other = ''] = dataFiles(world.lake, 'activities').slice(0, 2)
    const summary = await damaged(({ folder }) => {
      renameSync(join(folder, one), join(folder, 'kept'))
      renameSync(join(folder, other), join(folder, one))
      renameSync(join(folder, 'kept'), join(folder, other))
    })
    expect(new Set(summary.faults.map(({ file }) => file))).toEqual(new Set([one, other]))
  })

  test('a well-formed file with one changed row is found by its values', async () => {
    const { folder } = emptyLake()
    const store = temporaryStore()
    store.put('teams', [{ id: 't', name: 'one', member_ids: [] }], { now: NOW })
    const lake = { folder, url: `file://${folder}` }
    await publishTo(store.path, lake, { keep: 1 })
    const [one = ''] = dataFiles(lake, 'teams')
    const kept = copyOf(lake)
    store.exec("UPDATE teams SET name = 'two'")
    await publishTo(store.path, lake, { keep: 1 })
    const [two = ''] = dataFiles(lake, 'teams')
    copyFileSync(join(lake.folder, two), join(kept.folder, one))
    expect(named(await verify(kept, undefined))).toEqual([
      { table: 'teams', part: '[]', file: one, kind: 'values' },
    ])
  })

  test('a lost manifest of an earlier snapshot is named', async () => {
    const [list = ''] = await manifestLists(world.lake, 'activities')
    const summary = await damaged(({ folder }) => rmSync(join(folder, list)))
    expect(named(summary)).toEqual([{ table: 'activities', part: null, file: list, kind: 'snapshot' }])
  })

  test.each<[hint: string, text: string | undefined, says: RegExp]>([
    ['that is missing', undefined, /^The file is missing, so readers do not find version \d+$/],
    ['without a version', 'v3', /^The file names no version, /],
    ['of a version that is not there', '99', /^The file names version 99, which cannot be read, /],
    ['of rows before the last publication', '1', /^The file names the earlier version 1, /],
  ])('a version hint %s is a fault until the next publication', async (_, text, says) => {
    const store = temporaryStore()
    const lake = emptyLake()
    for (const name of ['one', 'two']) {
      store.put('teams', [{ id: 't', name, member_ids: [] }], { now: NOW })
      await publishTo(store.path, lake)
    }
    const file = 'teams/metadata/version-hint.text'
    rmSync(join(lake.folder, file))
    if (text !== undefined) writeFileSync(join(lake.folder, file), text)
    const summary = await verify(lake, store.path)
    expect(named(summary)).toEqual([{ table: 'teams', part: null, file, kind: 'hint' }])
    expect(summary.faults[0]?.message).toMatch(says)
    expect(summary.faults[0]?.hint).toBe(`Run parley publish ${lake.folder}: it writes the file again.`)
    await publishTo(store.path, lake)
    expect((await verify(lake, store.path)).faults).toEqual([])
  })

  test('a version hint that a publication left when it was interrupted is no fault', async () => {
    const { store } = world
    const lake = copyOf(world.lake)
    store.put('teams', [{ id: 'interrupted', name: 'I', member_ids: [] }], { now: NOW })
    const through = (storage: Storage) => ({
      ...storage,
      replace: () => Promise.reject(new Error('interrupted')),
    })
    await expect(publishTo(store.path, lake, { through })).rejects.toThrow('interrupted')
    expect((await verify(lake, undefined)).faults).toEqual([])
  })

  test('the next publication writes a missing part again, and the target is clean', async () => {
    const lake = copyOf(world.lake)
    for (const file of dataFiles(lake, 'activities')) rmSync(join(lake.folder, file))
    await publishTo(world.store.path, lake, { keep: 1 })
    expect(await verify(lake, world.store.path)).toMatchObject({ faults: [] })
  })
})

test('a change in the warehouse since the publication is no fault, and counts by part', async () => {
  const { store, lake } = world
  changeActivity(store, 'a03', 'meeting', '03')
  changeActivity(store, 'a04', 'call', '04')
  const summary = await verify(lake, store.path)
  expect(summary.faults).toEqual([])
  expect(summary.tables.find(({ folder }) => folder === 'activities')).toMatchObject({ parts_changed: 2 })
})

describe('content that was purged', () => {
  test('a purge that is not published yet is a fault of every file with the content, also of earlier snapshots', async () => {
    const store = temporaryStore()
    const lake = emptyLake()
    for (const name of ['one', 'two']) {
      store.put('members', [{ id: 'm', name }], { now: NOW })
      await publishTo(store.path, lake)
    }
    store.atomically(() => store.tombstone('members', [['m']], NOW))
    expect((await verify(lake, store.path)).faults).toEqual([])
    eraseMember(store, 'm')
    const files = ['members', 'member_versions'].flatMap(table =>
      dataFiles(lake, table).map(file => ({ table, part: '[]', file, kind: 'erased' })),
    )
    const summary = await verify(lake, store.path)
    expect(files).toHaveLength(4)
    expect(named(summary)).toHaveLength(4)
    expect(named(summary)).toEqual(expect.arrayContaining(files))
    expect(summary.faults[0]?.hint).toMatch(/^Run parley publish /)
    expect(JSON.stringify(summary)).not.toContain('two')
    await publishTo(store.path, lake)
    expect((await verify(lake, store.path)).faults).toEqual([])
  })
})

describe('files that no snapshot names', () => {
  const MEMBER = { id: 'new', name: 'Rumpelstilzchen' }
  const LOST = 'lost here'

  /** No table is committed, once this number of data files is complete. The publication begins before. */
  const withoutCommits = (files: number) => (storage: Storage) => {
    let complete = 0
    return {
      ...storage,
      beginFile(path: string) {
        const file = storage.beginFile(path)
        const end = (content: Parameters<typeof file.end>[0]) => {
          file.end(content)
          complete += 1
        }
        return { ...file, end }
      },
      async writeIfAbsent(path: string, bytes: Buffer) {
        if (path.startsWith('publications/')) return storage.writeIfAbsent(path, bytes)
        while (complete < files) await setImmediate()
        throw new Error(LOST)
      },
    }
  }

  /** A publication of a new member, and of a table that the target does not have yet, ends before its commits. */
  async function interrupted() {
    const store = temporaryStore()
    const lake = emptyLake()
    store.put('members', [{ id: 'old', name: 'O' }], { now: NOW })
    store.put('teams', [{ id: 't', name: 'T', member_ids: [] }], { now: NOW })
    await publishTo(store.path, lake, { tables: ['members'] })
    store.put('members', [MEMBER], { now: NOW })
    const both = { tables: ['members', 'teams'] }
    await expect(publishTo(store.path, lake, { ...both, through: withoutCommits(2) })).rejects.toThrow(LOST)
    return { store, lake, publish: () => publishTo(store.path, lake, both) }
  }

  test('they are counted by table, also of a table that no publication has completed, and are no fault', async () => {
    const { store, lake, publish } = await interrupted()
    writeFileSync(join(lake.folder, dataFiles(lake, 'members')[1] ?? ''), 'a half-written file')
    for (const database of [store.path, undefined]) {
      const summary = await verify(lake, database)
      expect(summary.faults).toEqual([])
      expect(unnamedIn(summary)).toMatchObject({ members: expect.any(Number), teams: expect.any(Number) })
    }
    await publish()
    const summary = await verify(lake, store.path)
    expect(unnamedIn(summary)).toEqual({})
    expect(summary.faults).toEqual([])
  })

  test('purged content in them is a fault with its own words, which publishing again mends', async () => {
    const { store, lake, publish } = await interrupted()
    eraseMember(store, 'new')
    const [, file = ''] = dataFiles(lake, 'members')
    const summary = await verify(lake, store.path)
    expect(named(summary)).toEqual([{ table: 'members', part: null, file, kind: 'leftover' }])
    expect(summary.faults[0]).toMatchObject({
      message: '1 row with content that was purged, in a file that no snapshot names',
      hint: `Run parley publish ${lake.folder}: it removes the file.`,
    })
    expect(JSON.stringify(summary)).not.toContain(MEMBER.name)
    await publish()
    expect(await verify(lake, store.path)).toMatchObject({ faults: [] })
  })
})
