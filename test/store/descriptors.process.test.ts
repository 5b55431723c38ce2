import { existsSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { emptyFolder, parley } from '../cli/parley.ts'
import { placeFor, workspace } from '../cli/workspace.ts'
import { loaded, startDaemon } from '../daemon/cli-daemon.ts'

const WATCH = fileURLToPath(new URL('descriptors.mjs', import.meta.url))

/** Files that belong to the database at this path. */
const isOfDatabase = (path: string, file: string): boolean =>
  ['', '-wal', '-shm', '-lock'].some(suffix => basename(path) === `${basename(file)}${suffix}`)

/** A place in which programs record every path that Node opens. */
async function watched(context: Parameters<typeof workspace>[0]) {
  const place = placeFor(await workspace(context))
  const opened = join(emptyFolder(), 'opened')
  const env = { ...place.env, NODE_OPTIONS: `--import=${WATCH}`, OPENED: opened }
  const paths = () => (existsSync(opened) ? readFileSync(opened, 'utf8').trim().split('\n') : [])
  return { ...place, env, paths }
}

test('no command opens a descriptor of the database, its -wal, -shm or -lock outside of SQLite', async context => {
  const place = await watched(context)
  for (const command of [
    ['backfill'],
    ['backfill', '--plan'],
    ['status'],
    ['doctor'],
    ['resync', 'teams'],
    ['search', 'price'],
    ['schema'],
    ['snapshot', 'copy.db'],
    ['restore', 'copy.db'],
    ['export', 'parquet', 'lake'],
    ['backfill'],
  ]) {
    const { status, stderr } = await parley(command, place)
    expect([command, status, status === 0 ? '' : stderr]).toEqual([command, 0, ''])
  }
  const paths = place.paths()
  // The recording works: it has the program's own package.json and the exported files.
  expect(paths.some(path => path.endsWith('package.json'))).toBe(true)
  expect(paths.some(path => path.includes('lake'))).toBe(true)
  expect(paths.filter(path => isOfDatabase(path, place.file))).toEqual([])
})

test('the daemon opens no such descriptor either, also after a reload', async context => {
  const place = await watched(context)
  const daemon = startDaemon(context, place)
  await loaded(place.file)
  daemon.signal('SIGHUP')
  await daemon.says(({ msg }) => msg.startsWith('The settings were reloaded'))
  expect((await daemon.ask('/status')).status).toBe(200)
  daemon.signal('SIGTERM')
  await daemon.ended
  expect(place.paths().filter(path => isOfDatabase(path, place.file))).toEqual([])
})
