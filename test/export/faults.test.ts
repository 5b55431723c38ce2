import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import { emptyFolder, parley } from '../cli/parley.ts'
import { temporaryStore } from '../store/temporary-store.ts'
import { emptyTarget } from './exporting.ts'

const MEMBERS = 'members/part-00000.parquet'

test.each<[what: string, path: string, replace: (place: string) => void]>([
  [
    'a folder in place of a Parquet file',
    MEMBERS,
    place => mkdirSync(join(place, 'inside'), { recursive: true }),
  ],
  ['a folder in place of a temporary file', 'members/.part-00000.parquet.tmp', place => mkdirSync(place)],
  ['a file in place of the folder of a table', 'members', place => writeFileSync(place, '')],
  ['a loop of links in place of the folder of a table', 'members', place => symlinkSync('members', place)],
  ['a folder in place of the manifest', 'manifest.json', place => mkdirSync(place)],
  ['a folder in place of the lock', '.parley-export-lock', place => mkdirSync(place)],
  ['another file in place of the lock', '.parley-export-lock', place => writeFileSync(place, 'not a lock\n')],
])('%s ends the export with 73, and the message names it and not the database', async (_, path, replace) => {
  const store = temporaryStore()
  store.put('members', [{ id: 'm', name: 'M' }], { now: '2026-01-01T00:00:00.000Z' })
  const target = emptyTarget()
  const again = () => parley(['export', 'parquet', target, '--full', '--database', store.path])
  expect(await again()).toMatchObject({ status: EXIT_STATUS.done })
  const place = join(target, path)
  rmSync(place, { recursive: true, force: true })
  replace(place)
  const { status, stderr } = await again()
  expect(status).toBe(EXIT_STATUS.databaseUnavailable)
  expect(stderr).toMatch(/^parley: Cannot export to .*\nhint: .*or choose another folder\.\n$/)
  expect(stderr).toContain(`parley: Cannot export to ${target}: `)
  expect(stderr).toContain(` at ${place}`)
  expect(stderr).not.toContain(store.path)
})

test('an export below a loop of symbolic links names the folder and not the database', async () => {
  const store = temporaryStore()
  const folder = emptyFolder()
  symlinkSync('loop', join(folder, 'loop'))
  const target = join(folder, 'loop', 'out')
  const { status, stderr } = await parley(['export', 'parquet', target, '--database', store.path])
  expect(status).toBe(EXIT_STATUS.databaseUnavailable)
  expect(stderr).toContain(`parley: Cannot export to ${target}: `)
  expect(stderr).not.toContain(store.path)
})

test('an export into a system folder that takes no folders ends with 73', async () => {
  const store = temporaryStore()
  const { status, stderr } = await parley(['export', 'parquet', '/proc/out', '--database', store.path])
  expect(status).toBe(EXIT_STATUS.databaseUnavailable)
  expect(stderr).toContain('parley: Cannot export to /proc/out: ')
})
