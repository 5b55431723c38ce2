import { describe, expect, test } from 'vitest'
import { holdersHint, pidsIn, programOf, stateOf } from '../../src/store/disk/lock-holders.ts'

const SHM = { inode: '77', first: 120, last: 120, byReaders: true }
const DATABASE = { inode: '77', first: 100, last: 611, byReaders: false }

describe('the processes in the list of locks', () => {
  test.each([
    ['a lock on the very byte', SHM, '1: POSIX  ADVISORY  WRITE 12 fe:00:77 120 120', [12]],
    ['a lock on a range that has the byte', SHM, '1: POSIX  ADVISORY  READ  12 fe:00:77 0 EOF', [12]],
    ['a lock that ends before the byte', SHM, '1: POSIX  ADVISORY  WRITE 12 fe:00:77 0 119', []],
    ['a lock that begins after the byte', SHM, '1: POSIX  ADVISORY  READ  12 fe:00:77 123 128', []],
    ['a lock of another file', SHM, '1: POSIX  ADVISORY  WRITE 12 fe:00:770 120 120', []],
    ['a process that waits for the lock', SHM, '1: -> POSIX  ADVISORY  WRITE 12 fe:00:77 120 120', []],
    ['a lock of an open file', SHM, '1: OFDLCK ADVISORY  WRITE -1 fe:00:77 120 120', []],
    [
      'a shared lock where readers stop no one',
      DATABASE,
      '1: POSIX  ADVISORY  READ  12 fe:00:77 102 611',
      [],
    ],
    [
      'an exclusive lock where readers stop no one',
      DATABASE,
      '1: POSIX  ADVISORY  WRITE 12 fe:00:77 102 611',
      [12],
    ],
    [
      'several lines',
      SHM,
      '1: POSIX  ADVISORY  WRITE 5 fe:00:1 120 120\n20: POSIX  ADVISORY  WRITE 12 fe:00:77 120 120\n',
      [12],
    ],
  ])('%s', (_, bytes, locks, pids) => {
    expect(pidsIn(locks, bytes)).toEqual(pids)
  })
})

test.each([
  [['/usr/bin/sqlite3', '/data/parley.db', '.dump'], 'sqlite3'],
  [['python3.11', '/home/ann/report.py', '--password', 'hush'], 'python3.11 report.py'],
  [['/usr/bin/python3', '-c', 'connect("hush")'], 'python3'],
  [['node', '--max-semi-space-size=8', '/usr/bin/parley', 'export'], 'node parley'],
  [['metabase', 'hush'], 'metabase'],
  [[''], undefined],
  [[], undefined],
])('of the command %j only the program is named: %s', (command, program) => {
  expect(programOf(command)).toBe(program)
})

test.each([
  ['T', 'stopped (SIGSTOP)', 'Continue process 12 with kill -CONT 12, or end it with kill -KILL 12.'],
  ['t', 'stopped by a debugger', 'Continue process 12 with kill -CONT 12, or end it with kill -KILL 12.'],
  ['D', 'waiting for a disk', 'Wait.'],
  ['S', 'running', 'Wait.'],
])(
  'a process in the state %s is %s, and only one that was stopped is to be continued',
  (letter, state, hint) => {
    const holder = { pid: 12, parent: 1, program: 'sqlite3', ...stateOf(letter) }
    expect([holder.state, holdersHint([holder], 'Wait.')]).toEqual([state, hint])
  },
)
