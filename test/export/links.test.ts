import {
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { EXIT_STATUS, StopError } from '../../src/base/errors.ts'
import { publishTo } from '../publish/publishing.ts'
import { newFolder, type TemporaryStore, temporaryStore } from '../store/temporary-store.ts'
import { exportTo } from './exporting.ts'

/** Links that another user of the machine has put into the folder of an export or a publication. */

/** What the links lead to: files of this user, which others must not get at. */
interface Home {
  file: string
  folder: string
  missing: string
}

function newHome(): Home {
  const home = newFolder()
  const [file, folder, missing] = [join(home, 'private.key'), join(home, 'docs'), join(home, 'missing')]
  writeFileSync(file, 'secret\n', { mode: 0o600 })
  mkdirSync(folder, { mode: 0o700 })
  writeFileSync(join(folder, 'letter'), 'dear\n', { mode: 0o600 })
  return { file, folder, missing }
}

/** Every file and folder there with its mode and content. */
function contentOf(home: Home): Record<string, unknown> {
  const root = dirname(home.file)
  const names = readdirSync(root, { recursive: true, encoding: 'utf8' }).toSorted()
  return Object.fromEntries(
    names.map(name => {
      const stats = statSync(join(root, name))
      const bytes = stats.isFile() ? readFileSync(join(root, name), 'utf8') : undefined
      return [name, { mode: stats.mode & 0o777, bytes }]
    }),
  )
}

const COMMANDS: Readonly<
  Record<string, (store: TemporaryStore, folder: string, mode: number) => Promise<unknown>>
> = {
  export: (store, folder, mode) =>
    exportTo(store.path, folder, { mode, full: true, tables: ['members', 'activities'] }),
  publish: (store, folder, mode) =>
    publishTo(store.path, { folder, url: `file://${folder}` }, { mode, tables: ['members'] }),
}

const LINKS: Readonly<Record<string, (place: string, home: Home) => void>> = {
  'a link to a file': (place, { file }) => symlinkSync(file, place),
  'a link to a folder': (place, { folder }) => symlinkSync(folder, place),
  'a link to nothing': (place, { missing }) => symlinkSync(missing, place),
  'a second name of a file': (place, { file }) => linkSync(file, place),
}

test.each<[command: string, link: string, path: string, result: 'done' | 'refused']>([
  ['export', 'a link to a file', '.parley-export-lock', 'refused'],
  ['export', 'a link to nothing', '.parley-export-lock', 'refused'],
  ['export', 'a second name of a file', '.parley-export-lock', 'refused'],
  ['export', 'a link to a file', '.manifest.json.tmp', 'done'],
  ['export', 'a link to a file', 'manifest.json', 'done'],
  ['export', 'a link to a file', 'views.sql', 'done'],
  ['export', 'a link to a folder', 'members', 'refused'],
  ['export', 'a link to a folder', 'activities/month=2026-01', 'refused'],
  ['export', 'a link to a file', 'members/.part-00000.parquet.tmp', 'done'],
  ['export', 'a link to nothing', 'members/.part-00000.parquet.tmp', 'done'],
  ['export', 'a link to a file', 'members/part-00000.parquet', 'done'],
  ['publish', 'a link to a file', '.parley-publish-lock', 'refused'],
  ['publish', 'a link to nothing', '.parley-publish-lock', 'refused'],
  ['publish', 'a second name of a file', '.parley-publish-lock', 'refused'],
  ['publish', 'a link to a folder', 'members', 'refused'],
  ['publish', 'a link to a folder', 'members/data', 'refused'],
  ['publish', 'a link to a folder', 'members/metadata', 'refused'],
])('parley %s reaches nothing through %s at %s, and is %s', async (command, link, path, result) => {
  const store = temporaryStore()
  const folder = newFolder()
  const home = newHome()
  const run = COMMANDS[command] ?? expect.fail(`no command ${command}`)
  store.put('members', [{ id: 'm', name: 'M' }])
  store.put('activities', [
    {
      id: 'a',
      type: 't',
      source_type: 'MEETING',
      source_id: 's',
      occurred_at: '2026-01-02T00:00:00Z',
      links: [],
    },
  ])
  await run(store, folder, 0o600)
  const place = join(folder, path)
  rmSync(place, { recursive: true, force: true })
  LINKS[link]?.(place, home)
  const before = contentOf(home)
  store.exec("UPDATE members SET name = 'changed'")
  const error = await run(store, folder, 0o644).then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(contentOf(home)).toEqual(before)
  if (result === 'done') return expect(error).toBeUndefined()
  expect(error).toBeInstanceOf(StopError)
  expect((error as StopError).exitStatus).toBe(EXIT_STATUS.databaseUnavailable)
  expect(String(error)).toContain(place)
})
