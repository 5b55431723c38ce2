import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmdirSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createLog } from '../../src/base/log.ts'
import { removeOldCopies } from '../../src/retention/old-copies.ts'
import { readStatusReport } from '../../src/store/status/report.ts'
import { META } from '../../src/store/sync/meta.ts'
import { asNobody } from '../store/other-user.ts'
import { owners, putCopies } from '../store/snapshot-copies.ts'
import { newFolder, temporaryStore } from '../store/temporary-store.ts'

const NOW = Date.parse('2026-03-04T03:17:00.000Z')
const DAY = 86_400_000
const BEFORE = NOW - 30 * DAY

const nameOf = (day: string) => `parley-${day}T034700Z.db`
const OLD = nameOf('2026-01-01')
const OLDER = nameOf('2025-12-01')
const YOUNG = nameOf('2026-03-03')

interface Night {
  /** Days after now. */
  days?: number
  /** False turns purging off. */
  isPurged?: boolean
  folder?: string
  /** The path of the database in the settings. */
  path?: string
}

async function worldWith(folder?: string) {
  const store = temporaryStore()
  const lines: { level: string; msg: string; path?: string }[] = []
  const stream = { write: (text: string) => lines.push(JSON.parse(text)) }
  const log = await createLog({ level: 'info', stream })
  const remove = ({ days = 0, isPurged = true, folder: chosen = folder, path = store.path }: Night = {}) => {
    const now = NOW + days * DAY
    const settings = {
      database: { path, mode: 0o600 },
      snapshot: { every: undefined, folder: chosen, keep: 7 },
    }
    const deps = { store, log, settings, signal: new AbortController().signal, readOwners: owners }
    return removeOldCopies(deps, { now, before: isPurged ? now - 30 * DAY : undefined })
  }
  store.state.setMeta(META.purgedAt, new Date(NOW - DAY).toISOString())
  return { store, lines, remove, own: `${store.path}.snapshots` }
}

describe('old copies of the warehouse', () => {
  test('old snapshots are removed, each with a log line, also when snapshots are turned off', async () => {
    const { store, own, remove, lines } = await worldWith()
    putCopies(store, own, [OLD, OLDER, YOUNG])
    expect(await remove()).toBe(2)
    expect(readdirSync(own)).toEqual([YOUNG])
    expect(lines.map(({ level, path }) => [level, path])).toEqual([
      ['info', join(own, OLD)],
      ['info', join(own, OLDER)],
    ])
  })

  test('old databases that a restore kept are removed with their -wal, and so are its unfinished files', async () => {
    const { store, remove } = await worldWith()
    const [folder, name] = [dirname(store.path), basename(store.path)]
    const keptNames = [
      `${name}-before-restore-2026-01-01T034700Z`,
      `${name}-before-restore-2026-03-03T034700Z`,
    ]
    putCopies(store, folder, keptNames)
    writeFileSync(`${store.path}-before-restore-2026-01-01T034700Z-wal`, 'of a damaged one')
    writeFileSync(`${store.path}.0123abcd.part`, 'unfinished')
    for (const end of ['', '-wal']) {
      utimesSync(
        `${store.path}-before-restore-2026-01-01T034700Z${end}`,
        BEFORE / 1000 - 60,
        BEFORE / 1000 - 60,
      )
    }
    utimesSync(join(folder, keptNames[1] ?? ''), NOW / 1000, NOW / 1000)
    await remove()
    const left = readdirSync(folder).filter(one => /-before-.*Z(-wal)?$|\.part$/.test(one))
    expect(left).toEqual([keptNames[1]])
  })

  test('no copy is removed while purging is turned off', async () => {
    const { store, own, remove } = await worldWith()
    putCopies(store, own, [OLD, YOUNG])
    await remove({ isPurged: false })
    expect(readdirSync(own).sort()).toEqual([OLD, YOUNG])
  })

  test('the copies of another warehouse with the same name stay in a shared folder', async () => {
    const folder = newFolder()
    const { store, remove, lines } = await worldWith(folder)
    putCopies(temporaryStore(), folder, [OLDER])
    putCopies(store, folder, [OLD, YOUNG])
    writeFileSync(join(folder, nameOf('2025-11-01')), 'damaged')
    await remove()
    expect(readdirSync(folder).sort()).toEqual([nameOf('2025-11-01'), OLDER, YOUNG])
    expect(lines.map(({ level, path }) => [level, path])).toEqual([
      ['info', join(folder, OLD)],
      ['warn', join(folder, nameOf('2025-11-01'))],
    ])
  })

  test('copies in folders of earlier settings are removed too', async () => {
    const folder = newFolder()
    const { store, own, remove } = await worldWith()
    await remove({ folder })
    putCopies(store, folder, [OLD])
    putCopies(store, own, [OLD, YOUNG])
    await remove()
    expect([readdirSync(folder), readdirSync(own)]).toEqual([[], [YOUNG]])
  })

  test('copies that are named after a link to the database are removed too', async () => {
    const path = join(newFolder(), 'linked.db')
    const { store, remove } = await worldWith()
    symlinkSync(store.path, path)
    const names = ['2026-01-01', '2026-03-03'].map(day => nameOf(day).replace('parley', 'linked'))
    putCopies(store, `${path}.snapshots`, names)
    await remove({ path })
    expect(readdirSync(`${path}.snapshots`)).toEqual(names.slice(1))
  })

  test('copies of a database that was at this path before belong to another warehouse', async () => {
    const folder = newFolder()
    const { store, own, remove } = await worldWith()
    const folders = { database: '/elsewhere/parley.db', folders: [folder] }
    store.state.setMeta(META.snapshotFolders, JSON.stringify(folders))
    putCopies(store, folder, [OLD])
    putCopies(store, own, [YOUNG])
    await remove()
    expect(readdirSync(folder)).toEqual([OLD])
  })

  test('the age of the copy before an upgrade is that of its file, and files of people stay', async () => {
    const { store, remove } = await worldWith()
    const folder = dirname(store.path)
    const others = ['parley.db-before-the-move', 'other.db-before-0002_next']
    for (const name of ['parley.db-before-0002_next', 'parley.db-before-0003_last', ...others]) {
      writeFileSync(join(folder, name), '')
      const at = name.endsWith('last') ? NOW : BEFORE - 1
      utimesSync(join(folder, name), at / 1000, at / 1000)
    }
    await remove()
    const left = readdirSync(folder).filter(name => name.includes('-before-'))
    expect(left.sort()).toEqual(['parley.db-before-0003_last', ...others].sort())
  })

  test('a copy of unknown age is counted from now', async () => {
    const { store, own, remove } = await worldWith()
    const future = nameOf('2036-01-01')
    putCopies(store, own, [future])
    utimesSync(join(own, future), NOW / 1000 + 1e8, NOW / 1000 + 1e8)
    await remove()
    expect(existsSync(join(own, future))).toBe(true)
    store.state.setMeta(META.purgedAt, new Date(NOW + DAY).toISOString())
    expect(await remove({ days: 29 })).toBe(0)
    expect(await remove({ days: 31 })).toBe(1)
    expect(readdirSync(own)).toEqual([])
  })

  test('an unfinished copy is removed after an hour, but a complete copy of another warehouse with such a name stays', async () => {
    const { own, remove } = await worldWith()
    const parts = {
      old: `${YOUNG}.0123abcd.part`,
      new: `${YOUNG}.4567abcd.part`,
      other: `other-${OLD}.0123abcd.part`,
    }
    mkdirSync(own)
    for (const name of Object.values(parts)) {
      writeFileSync(join(own, name), '')
      const at = (name === parts.new ? NOW : NOW - 2 * 3_600_000) / 1000
      utimesSync(join(own, name), at, at)
    }
    await remove()
    expect(readdirSync(own).sort()).toEqual([parts.new, parts.other].sort())
  })

  test('a copy that the system refuses to remove is a warning', async () => {
    const { store, own, remove, lines } = await worldWith()
    putCopies(store, own, [OLD, YOUNG])
    await remove({ isPurged: false })
    chmodSync(own, 0o555)
    chmodSync(dirname(own), 0o755)
    await asNobody(() => remove())
    chmodSync(own, 0o755)
    expect(lines).toMatchObject([
      {
        level: 'warn',
        msg: 'A copy of the warehouse could not be removed',
        path: join(own, OLD),
        reason: 'EACCES',
      },
    ])
  })

  test.each([
    ['a folder that the system does not list', 0o700, 'A folder of snapshots cannot be read', ''],
    [
      'a copy that the system does not examine',
      0o744,
      'An old copy of the warehouse cannot be examined',
      OLD,
    ],
  ])('%s is a warning with the path and the reason', async (_, mode, msg, name) => {
    const { store, own, remove, lines } = await worldWith()
    putCopies(store, own, [OLD])
    await remove({ isPurged: false })
    chmodSync(own, mode)
    chmodSync(dirname(own), 0o755)
    // A user who is not root owns the folder.
    if (process.getuid?.() !== 0) chmodSync(own, mode & 0o044)
    await asNobody(() => remove())
    chmodSync(own, 0o755)
    expect(lines).toMatchObject([
      { level: 'warn', msg: expect.stringContaining(msg), path: join(own, name), reason: 'EACCES' },
    ])
  })

  test('unfinished copies that the system refuses to remove are warnings, and the other old copies are removed', async () => {
    const { store, own, remove, lines } = await worldWith()
    putCopies(store, own, [OLD, YOUNG])
    await remove({ isPurged: false })
    // A file system refuses to remove a folder as a file.
    const parts = [
      `${store.path}-before-0003_last.part`,
      `${store.path}.0123abcd.part`,
      join(own, `${YOUNG}.0123abcd.part`),
    ]
    for (const part of parts) {
      mkdirSync(part)
      utimesSync(part, BEFORE / 1000, BEFORE / 1000)
    }
    await remove()
    expect(lines.map(({ level, path }) => [level, path])).toEqual([
      ...parts.map(part => ['warn', part]),
      ['info', join(own, OLD)],
    ])
    expect(lines[0]).toMatchObject({ reason: 'ERR_FS_EISDIR' })
    const inStatus = () => readStatusReport({ path: store.path, now: NOW }).purge_remains
    expect(inStatus()).toEqual(parts.map(path => ({ place: 'copies', path, reason: 'ERR_FS_EISDIR' })))
    for (const part of parts) rmdirSync(part)
    await remove()
    expect(inStatus()).toEqual([])
  })
})
