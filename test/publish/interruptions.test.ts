import { cpSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Storage } from '../../src/publish/storage/storage.ts'
import { newFolder, type TemporaryStore, temporaryStore } from '../store/temporary-store.ts'
import { markedWorld, putTranscript } from '../store/unique-texts.ts'
import { runs } from '../support/effort.ts'
import { dyingAfter, KILLED } from './dying-storage.ts'
import { auditLake } from './lake-audit.ts'
import { type LakeRow, metadataOf, publicationsIn, rowsOf } from './lake-reader.ts'
import { filesIn, type Lake, newLake, publishTo, writtenBy } from './publishing.ts'

type Rows = Readonly<Record<string, LakeRow[]>>

/** The rows of some tables in the newest complete publication, as `publications` names their snapshots. */
async function newestRows(lake: Lake, tables: readonly string[]): Promise<Rows> {
  const newest = (await publicationsIn(lake)).at(-1)
  const rows = tables.map(
    async table => [table, await rowsOf(lake, table, newest?.snapshots[table])] as const,
  )
  return Object.fromEntries(await Promise.all(rows))
}

interface Prepared {
  store: TemporaryStore
  lake: Lake
  /** Puts the target back to its first publication. */
  reset(): void
  /** The tables that the second publication writes, and their rows in both. */
  tables: readonly string[]
  before: Rows
  after: Rows
}

/** A target with one publication, and a warehouse that has changed since. */
async function prepared(keep: number): Promise<Prepared> {
  const store = temporaryStore()
  const world = markedWorld(store, value => value)
  world.write('2026-03-04T05:06:07.123Z')
  await store.crmTables.finish()
  const lake = await newLake()
  await publishTo(store.path, lake, { keep })
  const first = newFolder()
  cpSync(lake.folder, first, { recursive: true })
  store.exec("UPDATE meetings SET title = 'changed'")
  putTranscript(store, world.meeting, [{ text: 'changed', words: [] }])
  store.exec("UPDATE members SET name = 'changed'")
  const tables = Object.keys(writtenBy(await publishTo(store.path, lake, { keep }))).filter(
    table => table !== 'publications',
  )
  const after = await newestRows(lake, tables)
  const reset = () => {
    for (const name of readdirSync(lake.folder)) rmSync(join(lake.folder, name), { recursive: true })
    cpSync(first, lake.folder, { recursive: true })
  }
  reset()
  return { store, lake, reset, tables, before: await newestRows(lake, tables), after }
}

/** The publication whose rows are the current ones of a table. */
const currentOf = async (lake: Lake, table: string): Promise<number> =>
  (await metadataOf(lake, table))['current-snapshot-id']

/** Steps between two trials: three in CI. Each table has steps of every kind, so the trials meet all of them. */
const STRIDE = Math.max(3, 13 - runs(10))

test('a publication that is killed at any step leaves the last complete one readable, and the next one completes', async () => {
  const { store, lake, reset, tables, before, after } = await prepared(1)
  expect(tables).toEqual(expect.arrayContaining(['members', 'meetings', 'transcript_entries']))
  expect(after).not.toEqual(before)
  const untouched = filesIn(lake.folder)
  let step = 0
  for (let isDone = false; !isDone; step += STRIDE) {
    reset()
    const dying = dyingAfter(step)
    const publishing = publishTo(store.path, lake, { keep: 1, through: dying.through })
    isDone = await publishing.then(
      () => true,
      error => {
        expect(error).toMatchObject({ message: KILLED })
        return false
      },
    )
    expect(dying.isDead()).toBe(!isDone)
    const isComplete = (await publicationsIn(lake)).at(-1)?.publication === 2
    expect(await newestRows(lake, tables), `killed at step ${step}`).toEqual(isComplete ? after : before)
    if ((await currentOf(lake, 'meetings')) === 2)
      for (const child of tables.filter(
        table => table.startsWith('meeting_') || table === 'transcript_entries',
      ))
        expect(await currentOf(lake, child), `${child} at step ${step}`).toBe(2)
    const committed = Math.max(
      ...(await Promise.all(tables.map(table => currentOf(lake, table).catch(() => 0)))),
    )
    const { publication } = await publishTo(store.path, lake, { keep: 1 })
    expect(publication).toBeGreaterThan(committed)
    expect(await newestRows(lake, tables), `repeated after step ${step}`).toEqual(after)
    await auditLake(lake, [...tables, 'publications'])
    const others = untouched.filter(file => ![...tables, 'publications'].includes(file.split('/')[0] ?? ''))
    expect(filesIn(lake.folder)).toEqual(expect.arrayContaining(others))
  }
  expect(step).toBeGreaterThan(30)
})

test('publications that are killed one after the other add up to a complete one, and leave no file behind', async () => {
  const { store, lake, tables, before, after } = await prepared(1)
  for (let step = 0; ; step += 2 * STRIDE) {
    const dying = dyingAfter(step)
    try {
      await publishTo(store.path, lake, { keep: 1, through: dying.through })
      break
    } catch (error) {
      expect(error).toMatchObject({ message: KILLED })
    }
    const isComplete = ((await publicationsIn(lake)).at(-1)?.publication ?? 0) > 1
    expect(await newestRows(lake, tables), `killed at step ${step}`).toEqual(isComplete ? after : before)
  }
  expect(await newestRows(lake, tables)).toEqual(after)
  await auditLake(lake)
})

test('a publication is complete without its removals, and the next one makes up for them', async () => {
  const { store, lake, tables, after } = await prepared(1)
  const remove = async () => {
    throw Object.assign(new Error('not allowed'), { code: 'EACCES' })
  }
  const uncleaned = await publishTo(store.path, lake, { keep: 1, through: opened => ({ ...opened, remove }) })
  expect(uncleaned).toMatchObject({
    publication: 2,
    files_removed: 0,
    removal_error: {
      code: 'publish-unwritable',
      message: `Cannot publish to ${lake.folder}: no permission to write there (EACCES)`,
      hint: expect.stringContaining('Check the owner and mode of the folder'),
    },
  })
  expect(await newestRows(lake, tables)).toEqual(after)
  expect(await publishTo(store.path, lake, { keep: 1 })).toMatchObject({ removal_error: null })
  await auditLake(lake)
})

test('the files of a publication that committed nothing are removed before the next one writes', async () => {
  const { store, lake } = await prepared(1)
  const before = filesIn(lake.folder)
  await expect(publishTo(store.path, lake, { through: dyingAfter(2).through })).rejects.toThrow(KILLED)
  expect(filesIn(lake.folder).length).toBeGreaterThan(before.length)
  let seen: string[] = []
  await publishTo(store.path, lake, {
    through: storage => ({
      ...storage,
      beginFile(path) {
        if (seen.length === 0) seen = filesIn(lake.folder)
        return storage.beginFile(path)
      },
    }),
  })
  expect(seen).toEqual(before)
})

test('a reader that goes by the hint can read a publication after one died before its last hint and the next in its middle', async () => {
  const store = temporaryStore()
  const lake = await newLake()
  const publish = (name: string, through?: (storage: Storage) => Storage) => {
    store.put('members', [{ id: 'm', name }])
    return publishTo(store.path, lake, { keep: 2, tables: ['members'], ...(through && { through }) })
  }
  const dieAt = (verb: 'replace' | 'writeIfAbsent', file: RegExp) => (storage: Storage) => ({
    ...storage,
    [verb]: (path: string, bytes: Buffer) => {
      if (file.test(path)) throw new Error(KILLED)
      return storage[verb](path, bytes)
    },
  })
  await publish('one')
  await publish('two')
  await expect(publish('three', dieAt('replace', /^publications\//))).rejects.toThrow(KILLED)
  await expect(publish('four', dieAt('writeIfAbsent', /^publications\//))).rejects.toThrow(KILLED)
  expect(await newestRows(lake, ['members'])).toMatchObject({ members: [{ name: 'three' }] })
})
