import { closeSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { changeRisk, foreignAccess } from '../../src/config/file-access.ts'
import { newFolder } from '../store/temporary-store.ts'

const ME = { uid: 1000, gid: 1000 }
const ROOT = { uid: 0, gid: 0 }
const STAFF = { uid: 1000, gid: 50 }
const FILE = 0o100000
const FOLDER = 0o040000
const LINK = 0o120777
const PIPE = 0o010000
const DEVICE = 0o020000

test.each<[by: typeof ME, owner: number, group: number, mode: number, risk: string | undefined]>([
  [ME, 1000, 1000, FILE | 0o600, undefined],
  [ME, 1000, 1000, FILE | 0o644, undefined],
  [ME, 0, 0, FILE | 0o644, undefined],
  [ME, 1000, 1000, FOLDER | 0o755, undefined],
  [ME, 1001, 1000, FILE | 0o600, 'belongs to another user'],
  [ME, 1001, 1001, FOLDER | 0o755, 'belongs to another user'],
  [ME, 1001, 1001, FOLDER | 0o1777, 'belongs to another user'],
  [ME, 1001, 1001, LINK, 'belongs to another user'],
  [ROOT, 1000, 1000, FILE | 0o600, 'belongs to another user'],
  [ME, 1000, 1000, LINK, undefined],
  [ME, 1000, 1000, FILE | 0o602, 'can be changed by every user'],
  [ME, 0, 0, FOLDER | 0o777, 'can be changed by every user'],
  [ME, 0, 0, FOLDER | 0o1777, undefined],
  [ME, 1000, 1000, FILE | 0o1606, 'can be changed by every user'],
  [ME, 1000, 50, FILE | 0o660, 'can be changed by its group'],
  [ME, 1000, 1000, FILE | 0o664, undefined],
  [ME, 1000, 1000, FOLDER | 0o775, undefined],
  [STAFF, 1000, 50, FILE | 0o664, 'can be changed by its group'],
  [STAFF, 1000, 1000, FILE | 0o664, 'can be changed by its group'],
  [ME, 0, 0, DEVICE | 0o666, undefined],
  [ME, 1000, 5, DEVICE | 0o620, undefined],
  [ME, 1001, 5, DEVICE | 0o620, 'belongs to another user'],
  [ME, 1000, 1000, PIPE | 0o600, undefined],
  [ME, 1000, 1000, PIPE | 0o622, 'can be changed by every user'],
  [ROOT, 0, 0, FILE | 0o664, 'can be changed by its group'],
])('for user %o, a path of owner %i, group %i and mode %o: %s', (user, uid, gid, mode, risk) => {
  expect(changeRisk({ uid, gid, mode }, user)).toBe(risk)
})

test('a file that can be read only by its descriptor, as the pipe of `--config <(command)`, is judged by itself', () => {
  const path = join(newFolder(), 'parley.toml')
  writeFileSync(path, '', { mode: 0o600 })
  const descriptor = openSync(path, 'r')
  rmSync(path)
  expect(foreignAccess(`/dev/fd/${descriptor}`)).toBeUndefined()
  closeSync(descriptor)
  expect(() => foreignAccess(`/dev/fd/${descriptor}`)).toThrow('ENOENT')
})
