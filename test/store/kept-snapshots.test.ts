import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import { type KeepOptions, keepSnapshot, keptSnapshots } from '../../src/store/snapshot/kept-snapshots.ts'
import { META } from '../../src/store/sync/meta.ts'
import { virtualClock } from '../api/virtual-clock.ts'
import { owners, putCopies } from './snapshot-copies.ts'
import { newFolder, openAt, temporaryStore } from './temporary-store.ts'

const PROGRAM = new URL('../../dist/store/snapshot/worker.js', import.meta.url)
const NOW = Date.parse('2026-03-04T03:47:00.123Z')
const OF_TODAY = 'parley-2026-03-04T034700Z.db'

const nameOf = (days: number, start = 'parley') =>
  `${start}-2026-02-${String(days).padStart(2, '0')}T034700Z.db`

interface Wanted {
  folder?: string
  keep?: number
  mode?: number
  owners?: KeepOptions['owners']
}

function keepOne(database: string, { folder, keep = 7, mode = 0o600, owners: asked = owners }: Wanted = {}) {
  const signal = new AbortController().signal
  const options = { database, mode, clock: virtualClock(NOW), signal, program: PROGRAM }
  return keepSnapshot(options, { folder, keep, owners: asked })
}

function folderWith(names: readonly string[]): string {
  const folder = newFolder()
  for (const name of names) writeFileSync(join(folder, name), '')
  return folder
}

describe('the snapshots that parley keeps', () => {
  test('snapshots are next to the database, with names whose text order is their time order', async () => {
    const { path } = temporaryStore()
    const made = await keepOne(path)
    expect(made.path).toBe(join(`${path}.snapshots`, OF_TODAY))
    expect(await keptSnapshots(path, undefined, NOW)).toEqual([
      { path: made.path, at: Date.parse('2026-03-04T03:47:00Z') },
    ])
    expect(nameOf(28) < OF_TODAY).toBe(true)
  })

  test.each([
    [0o600, 0o700],
    [0o640, 0o750],
    [0o644, 0o755],
  ])('snapshots of mode %o are in a folder of mode %o', async (mode, expected) => {
    const { path } = temporaryStore()
    const made = await keepOne(path, { mode })
    expect(statSync(`${path}.snapshots`).mode & 0o777).toBe(expected)
    expect(statSync(made.path).mode & 0o777).toBe(mode)
  })

  test('snapshots in a configured folder leave the mode of the folder unchanged', async () => {
    const { path } = temporaryStore()
    const folder = join(newFolder(), 'a/b')
    mkdirSync(folder, { recursive: true, mode: 0o711 })
    const made = await keepOne(path, { folder, mode: 0o640 })
    expect(made.path).toBe(join(folder, OF_TODAY))
    expect(statSync(folder).mode & 0o777).toBe(0o711)
    expect(existsSync(`${path}.snapshots`)).toBe(false)
  })

  test('the folders of snapshots are accessible to their readers, however many were created', async () => {
    const folder = join(newFolder(), 'a/b/c')
    await keepOne(temporaryStore().path, { folder, mode: 0o640 })
    const modes = [folder, dirname(folder), dirname(dirname(folder))].map(path => statSync(path).mode & 0o777)
    expect(modes).toEqual([0o750, 0o750, 0o750])
  })

  test('the newest n snapshots stay, and so do all other files in the folder', async () => {
    const others = [
      'parley-2026-01-01.db',
      'notes.txt',
      nameOf(1, 'other'),
      nameOf(1, 'parley-old'),
      `${nameOf(1)}.gz`,
      'parley-2026-02-30T034700Z.db',
      'parley-2026-99-99T996199Z.db',
    ]
    const store = temporaryStore()
    const folder = folderWith(others)
    putCopies(store, folder, [nameOf(1), nameOf(2), nameOf(3), nameOf(4)])
    const made = await keepOne(store.path, { folder, keep: 3 })
    expect(made.removed.map(path => basename(path)).sort()).toEqual([nameOf(1), nameOf(2)])
    expect(readdirSync(folder).sort()).toEqual([...others, nameOf(3), nameOf(4), OF_TODAY].sort())
  })

  test('snapshots from before the last purge are removed however many may stay, once there is a newer one', async () => {
    const store = temporaryStore()
    const other = temporaryStore()
    const folder = newFolder()
    putCopies(store, folder, [nameOf(1)])
    putCopies(other, folder, [nameOf(2)])
    store.state.setMeta(META.purgedAt, '2026-01-03T00:00:00.000Z')
    putCopies(store, folder, [nameOf(3)])
    expect((await keepOne(store.path, { folder })).outdated.map(path => basename(path))).toEqual([nameOf(1)])
    expect(readdirSync(folder).sort()).toEqual([nameOf(2), nameOf(3), OF_TODAY])
    store.state.setMeta(META.purgedAt, '2026-01-04T00:00:00.000Z')
    rmSync(join(folder, OF_TODAY))
    await keepOne(store.path, { folder })
    expect(readdirSync(folder).sort()).toEqual([nameOf(2), OF_TODAY])
  })

  test('only snapshots of this warehouse, and unreadable ones in its own folder, are counted and removed', async () => {
    const [store, other] = [temporaryStore(), temporaryStore()]
    const folder = newFolder()
    putCopies(other, folder, [nameOf(1), nameOf(2)])
    putCopies(store, folder, [nameOf(3), nameOf(4), nameOf(5)])
    writeFileSync(join(folder, nameOf(6)), 'damaged')
    const made = await keepOne(store.path, { folder, keep: 2 })
    expect(made.removed.map(path => basename(path)).sort()).toEqual([nameOf(3), nameOf(4)])
    const own = `${store.path}.snapshots`
    mkdirSync(own)
    for (const day of [1, 2]) writeFileSync(join(own, nameOf(day)), 'damaged')
    await keepOne(store.path, { keep: 2 })
    expect(readdirSync(own).sort()).toEqual([nameOf(2), OF_TODAY])
  })

  test('all snapshots stay in a shared folder when their owners cannot be read, and the new one is written', async () => {
    const store = temporaryStore()
    const folder = newFolder()
    putCopies(store, folder, [nameOf(1), nameOf(2)])
    const made = await keepOne(store.path, {
      folder,
      keep: 1,
      owners: () => Promise.reject(new Error('cut off')),
    })
    expect(made.removed).toEqual([])
    expect(readdirSync(folder)).toEqual([nameOf(1), nameOf(2), OF_TODAY])
  })

  test('snapshots from before the clock was set back count as older than all later ones', async () => {
    const future = ['parley-2030-01-01T034700Z.db', 'parley-2031-01-01T034700Z.db']
    const store = temporaryStore()
    const { path } = store
    const folder = newFolder()
    putCopies(store, folder, [...future, nameOf(27), nameOf(28)])
    const made = await keepOne(path, { folder, keep: 4 })
    expect(made.removed.map(path => basename(path))).toEqual([future[0]])
    await keepOne(path, { folder, keep: 3 })
    expect(readdirSync(folder).sort()).toEqual([nameOf(27), nameOf(28), OF_TODAY])
  })

  test('a folder with snapshots of another warehouse of the same name is refused, and those stay', async () => {
    const folder = newFolder()
    const [first, second] = [temporaryStore().path, temporaryStore().path]
    await keepOne(first, { folder })
    const before = readFileSync(join(folder, OF_TODAY))
    await expect(keepOne(second, { folder, keep: 1 })).rejects.toMatchObject({
      code: 'snapshot-folder-shared',
      exitStatus: EXIT_STATUS.settings,
    })
    expect(readdirSync(folder)).toEqual([OF_TODAY])
    expect(readFileSync(join(folder, OF_TODAY)).equals(before)).toBe(true)
    await keepOne(first, { folder, keep: 1 })
  })

  test('a warehouse that was restored from a snapshot continues its snapshots', async () => {
    const { path } = temporaryStore()
    const folder = newFolder()
    const { path: kept } = await keepOne(path, { folder })
    const restored = join(newFolder(), 'parley.db')
    copyFileSync(kept, restored)
    openAt(restored).close()
    await keepOne(restored, { folder })
    expect(readdirSync(folder)).toEqual([OF_TODAY])
  })

  test('an interrupted snapshot leaves no file', async () => {
    const folder = folderWith([`${nameOf(1)}.0123abcd.part`, `${nameOf(1, 'other')}.0123abcd.part`])
    const earlier = (NOW - 2 * 3_600_000) / 1000
    for (const name of readdirSync(folder)) utimesSync(join(folder, name), earlier, earlier)
    await keepOne(temporaryStore().path, { folder })
    expect(readdirSync(folder).sort()).toEqual([`${nameOf(1, 'other')}.0123abcd.part`, OF_TODAY].sort())
  })

  test('all snapshots stay when the next one cannot be made', async () => {
    const folder = folderWith([nameOf(1), nameOf(2)])
    mkdirSync(join(folder, OF_TODAY))
    await expect(keepOne(temporaryStore().path, { folder, keep: 1 })).rejects.toThrow('is a folder')
    expect(readdirSync(folder).sort()).toEqual([nameOf(1), nameOf(2), OF_TODAY])
  })
})
