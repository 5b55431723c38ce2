import { mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createFolder, makeFolder, writeFaultOf } from '../../src/store/disk/new-files.ts'
import { newFolder } from './temporary-store.ts'

test('a folder that another process has created just before is taken as it is', () => {
  const path = join(newFolder(), 'target')
  mkdirSync(path, { mode: 0o700 })
  expect(createFolder(path)).toBe(false)
  makeFolder(path, 0o644)
  expect(statSync(path).mode & 0o777).toBe(0o700)
})

test.each<[what: string, put: (path: string) => void, code: string]>([
  ['a file', path => writeFileSync(path, ''), 'EEXIST'],
  ['a link to a folder', path => symlinkSync('.', path), 'ELOOP'],
])('%s in the place of a folder is an error with its path', (_, put, code) => {
  const path = join(newFolder(), 'target')
  put(path)
  for (const make of [createFolder, makeFolder])
    expect(() => make(path, 0o600)).toThrow(expect.objectContaining({ code, path }))
})

test.each([
  ['ENOSPC', 'the disk is full (ENOSPC)', 'Free some space'],
  ['EROFS', 'its file system is read-only (EROFS)', 'Mount it read-write'],
  ['EACCES', 'no permission to write there (EACCES)', 'Run parley as a user who can write there'],
  ['EMFILE', 'EMFILE', 'Check the path and its disk'],
])('a file that cannot be written for %s is explained', (code, why, mend) => {
  expect(writeFaultOf(Object.assign(new Error('text of the system'), { code }))).toEqual({ why, mend })
})
