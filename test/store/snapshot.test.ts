import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { EXIT_STATUS, StopError } from '../../src/base/errors.ts'
import { removePartials } from '../../src/store/copies/copy-files.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import {
  makeSnapshot,
  modeFor,
  moveIntoPlace,
  type SnapshotOptions,
} from '../../src/store/snapshot/snapshot.ts'
import {
  readCompleteness,
  readReadSince,
  readStatus,
  type StatusRow,
  statusInstants,
} from '../../src/store/status/status.ts'
import { virtualClock } from '../api/virtual-clock.ts'
import { until } from '../support/until.ts'
import { asNobody, giveToNobody } from './other-user.ts'
import { newFolder, openAt, temporaryStore } from './temporary-store.ts'

/** The process can only run a compiled program. */
const PROGRAM = new URL('../../dist/store/snapshot/worker.js', import.meta.url)

const NEVER = new AbortController().signal

function snapshotOf(database: string, file: string, options: Partial<SnapshotOptions> = {}) {
  const clock = systemClock()
  return makeSnapshot({ database, file, mode: 0o600, clock, signal: NEVER, program: PROGRAM, ...options })
}

/** A program that replaces the one that makes the copy. */
function program(source: string): URL {
  const path = join(newFolder(), 'program.mjs')
  writeFileSync(path, `import { writeFileSync } from 'node:fs'\n${source}`)
  return new URL(`file://${path}`)
}

/** Writes something and then runs indefinitely. */
const ENDLESS = `process.on('message', ({ part }) => writeFileSync(part, 'half of a database'))`

async function refusalOf(snapshot: Promise<unknown>): Promise<StopError> {
  const error = await snapshot.then(
    () => undefined,
    reason => reason,
  )
  if (error instanceof StopError) return error
  throw error ?? new Error('it was made')
}

function column(file: string, sql: string): unknown[] {
  const db = openSqlite(file, { readonly: true })
  try {
    return db.prepare(sql).pluck().all()
  } finally {
    db.close()
  }
}

const teams = (file: string) => column(file, 'SELECT name FROM live_teams ORDER BY name')
const team = (name: string) => ({ id: name, name, member_ids: [] })

describe('a snapshot of a warehouse', () => {
  test('a snapshot is one file with parley’s id, not in WAL mode, with all committed rows while another process writes', async () => {
    const store = temporaryStore()
    store.put('teams', [team('committed')])
    store.db.exec('BEGIN IMMEDIATE')
    store.db.exec("UPDATE teams SET name = 'under way'")
    const file = join(newFolder(), 'copy.db')
    const made = await snapshotOf(store.path, file)
    store.db.exec('ROLLBACK')
    expect(teams(file)).toEqual(['committed'])
    const pragmas = ['journal_mode', 'application_id', 'integrity_check'].map(name =>
      column(file, `PRAGMA ${name}`),
    )
    expect(pragmas).toEqual([['delete'], [0x7061726c], ['ok']])
    expect(readdirSync(join(file, '..'))).toEqual(['copy.db'])
    expect(made).toMatchObject({ path: file, bytes: statSync(file).size, resources: readStatus(store.db) })
  })

  test('a snapshot has every row of every table', async () => {
    const store = temporaryStore()
    store.put('members', [{ id: 'a', email: 'a@example.com' }, { id: 'b' }])
    store.put('teams', [{ id: 't', name: '営業', member_ids: ['a', 'b'] }])
    const file = join(newFolder(), 'copy.db')
    await snapshotOf(store.path, file)
    const tables = store.column(
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'",
    )
    expect(tables.length).toBeGreaterThan(20)
    const copy = openSqlite(file, { readonly: true })
    for (const table of tables) {
      expect(copy.prepare(`SELECT * FROM "${table}"`).all()).toEqual(store.all(`SELECT * FROM "${table}"`))
    }
    copy.close()
  })

  test.each([0o600, 0o640, 0o644])(
    'a snapshot has the configured mode %o, whatever the umask',
    async mode => {
      const umask = process.umask(0o077)
      onTestFinished(() => {
        process.umask(umask)
      })
      const file = join(newFolder(), 'copy.db')
      await snapshotOf(temporaryStore().path, file, { mode })
      expect(statSync(file).mode & 0o777).toBe(mode)
    },
  )

  test('a snapshot gets the group of the database, unless its folder has the setgid bit', async () => {
    const { path } = temporaryStore()
    const [plain, giving] = [newFolder(), newFolder()]
    const [mine, other] =
      process.getuid?.() === 0 ? [4711, 4712] : [process.getgid?.() ?? 0, process.getgid?.() ?? 0]
    chownSync(path, -1, mine)
    chownSync(giving, -1, other)
    chmodSync(giving, 0o2755)
    for (const [folder, group] of [
      [plain, mine],
      [giving, other],
    ] as const) {
      await snapshotOf(path, join(folder, 'copy.db'), { mode: 0o640 })
      expect(statSync(join(folder, 'copy.db'))).toMatchObject({ gid: group })
    }
  })

  test('a snapshot has no remains of purged content', async () => {
    const store = temporaryStore()
    store.put('teams', [team('Whale and sons')])
    store.db.transaction(() => {
      store.tombstone('teams', [['Whale and sons']], '2026-01-02T00:00:00.000Z')
      store.purger.purge({ before: '2026-02-01T00:00:00.000Z', limit: 10, now: '2026-02-01T00:00:00.000Z' })
    })()
    const file = join(newFolder(), 'copy.db')
    await snapshotOf(store.path, file)
    expect(column(file, 'SELECT name FROM teams')).toEqual([null])
  })

  test('a snapshot replaces an earlier one, and an empty file', async () => {
    const store = temporaryStore()
    const file = join(newFolder(), 'copy.db')
    writeFileSync(file, '')
    await snapshotOf(store.path, file)
    store.put('teams', [team('later')])
    await snapshotOf(store.path, file)
    expect(teams(file)).toEqual(['later'])
  })

  test('a snapshot can be used as a warehouse', async () => {
    const store = temporaryStore()
    store.put('teams', [team('first')])
    const file = join(newFolder(), 'copy.db')
    await snapshotOf(store.path, file)
    const other = openAt(file)
    expect(other.db.pragma('journal_mode', { simple: true })).toBe('wal')
    other.close()
    expect(teams(file)).toEqual(['first'])
  })
})

/** Creates a file that a snapshot may not replace, and returns its path. */
const IN_THE_WAY: Record<string, (folder: string, database: string) => string> = {
  'the database': (_, database) => database,
  'its -wal': (_, database) => `${database}-wal`,
  'its -shm': (_, database) => `${database}-shm`,
  'its lock': (_, database) => `${database}-lock`,
  'the database by another name': (folder, database) => {
    symlinkSync(database, join(folder, 'link.db'))
    return join(folder, 'link.db')
  },
  'the database by a second name': (folder, database) => {
    linkSync(database, join(folder, 'twin.db'))
    return join(folder, 'twin.db')
  },
  'another warehouse': folder => {
    openAt(join(folder, 'other.db')).close()
    return join(folder, 'other.db')
  },
  'somebody’s database': folder => {
    const db = openSqlite(join(folder, 'theirs.db'))
    db.exec('CREATE TABLE theirs (a)')
    db.close()
    return join(folder, 'theirs.db')
  },
  'a letter': folder => {
    writeFileSync(join(folder, 'letter.txt'), 'Dear Sir or Madam, '.repeat(20))
    return join(folder, 'letter.txt')
  },
  'a path with the -wal of another program next to it': folder => {
    writeFileSync(join(folder, 'gone.db-wal'), 'left')
    return join(folder, 'gone.db')
  },
  'a folder': folder => folder,
  'what a slash says is a folder': folder => `${join(folder, 'nowhere')}/`,
  'a link to what is not there': folder => {
    symlinkSync(join(folder, 'unmounted', 'copy.db'), join(folder, 'link.db'))
    return join(folder, 'link.db')
  },
  'a device': () => '/dev/null',
}

/** Everything in a folder, byte by byte. */
const contents = (folder: string) =>
  readdirSync(folder)
    .sort()
    .map(name => [
      name,
      existsSync(join(folder, name)) ? readFileSync(join(folder, name), 'latin1') : 'nothing',
    ])

test.each(Object.entries(IN_THE_WAY))('%s is refused and not changed', async (_, make) => {
  const { path, folder } = temporaryStore()
  const place = join(folder, 'beside')
  mkdirSync(place)
  const file = make(place, path)
  const before = contents(place)
  const error = await refusalOf(snapshotOf(path, file))
  expect([error.code, error.exitStatus]).toEqual(['snapshot-refused', EXIT_STATUS.usage])
  expect(error.hint).toMatch(/^(Choose another path|Use a path such as|Check that the disk)/)
  expect(contents(place)).toEqual(before)
})

/** Names that a user without root's permissions cannot use, and the error of the system. */
const UNREACHABLE: Record<string, [make: (folder: string) => string, code: string]> = {
  'is a link in a circle': [
    folder => {
      chmodSync(folder, 0o711)
      symlinkSync('loop.db', join(folder, 'loop.db'))
      return join(folder, 'loop.db')
    },
    'ELOOP',
  ],
  'is in a folder that may not be entered': [
    folder => {
      chmodSync(folder, 0o600)
      return join(folder, 'copy.db')
    },
    'EACCES',
  ],
  'is that of a file that may not be read': [
    folder => {
      chmodSync(folder, 0o711)
      writeFileSync(join(folder, 'copy.db'), 'theirs', { mode: 0o200 })
      return join(folder, 'copy.db')
    },
    'EACCES',
  ],
}

describe('a snapshot that fails', () => {
  test('a missing folder or warehouse is reported', async () => {
    const { path } = temporaryStore()
    const nowhere = await refusalOf(snapshotOf(path, join(newFolder(), 'nowhere', 'copy.db')))
    expect([nowhere.code, nowhere.exitStatus]).toEqual([
      'snapshot-unwritable',
      EXIT_STATUS.databaseUnavailable,
    ])
    const below = await refusalOf(snapshotOf(path, join(path, 'copy.db')))
    expect([below.code, below.message]).toEqual([
      'snapshot-unwritable',
      expect.stringContaining('no such folder'),
    ])
    const nothing = await refusalOf(snapshotOf(join(newFolder(), 'none.db'), join(newFolder(), 'copy.db')))
    expect([nothing.code, nothing.exitStatus]).toEqual(['no-database', EXIT_STATUS.databaseUnavailable])
  })

  test('a warehouse without access permission is reported as that, not as a missing file', async () => {
    const { path, folder } = temporaryStore()
    chmodSync(folder, 0o600)
    const error = await asNobody(() => refusalOf(snapshotOf(path, join(newFolder(), 'copy.db'))))
    chmodSync(folder, 0o700)
    expect([error.code, error.exitStatus]).toEqual(['database-unavailable', EXIT_STATUS.databaseUnavailable])
    expect(error.message).toContain(`${path}: no permission`)
  })

  test('a user who may not create -wal and -shm gets the command that creates them', async () => {
    const { path } = temporaryStore()
    const [alone, target] = [join(newFolder(), 'alone.db'), newFolder()]
    const copied = openSqlite(path, { readonly: true })
    await copied.backup(alone)
    copied.close()
    for (const end of ['-wal', '-shm']) rmSync(`${alone}${end}`, { force: true })
    chmodSync(alone, 0o644)
    chmodSync(dirname(alone), 0o555)
    chmodSync(target, 0o711)
    const error = await asNobody(() => refusalOf(snapshotOf(alone, join(target, 'copy.db'))))
    chmodSync(dirname(alone), 0o755)
    expect(error.hint).toContain('parley status')
  })

  test.each(Object.entries(UNREACHABLE))(
    'a snapshot whose name %s is refused with the reason',
    async (_, [make, code]) => {
      const { path, folder: store } = temporaryStore()
      const folder = newFolder()
      chmodSync(store, 0o711)
      const file = make(folder)
      const error = await asNobody(() => refusalOf(snapshotOf(path, file)))
      expect([error.code, error.exitStatus]).toEqual(['snapshot-unwritable', EXIT_STATUS.databaseUnavailable])
      expect(error.message).toContain(code)
      chmodSync(folder, 0o700)
    },
  )

  test('a file name that is too long for its partial file is reported', async () => {
    const error = await refusalOf(snapshotOf(temporaryStore().path, join(newFolder(), 'x'.repeat(250))))
    expect([error.code, error.message]).toEqual([
      'snapshot-unwritable',
      expect.stringContaining('ENAMETOOLONG'),
    ])
  })

  test('a snapshot without enough space is refused before any write', async () => {
    const file = join(newFolder(), 'copy.db')
    const error = await refusalOf(snapshotOf(temporaryStore().path, file, { freeBytes: () => 1000 }))
    expect([error.code, error.exitStatus]).toEqual(['no-space-for-snapshot', EXIT_STATUS.databaseUnavailable])
    expect(readdirSync(join(file, '..'))).toEqual([])
  })

  test.each([
    ['ended by a signal', ENDLESS, 'SIGKILL'],
    ['ended with a status', 'process.exit(3)', 'status 3'],
  ])('a snapshot whose process was %s leaves the earlier one', async (_, source, how) => {
    const { path } = temporaryStore()
    const file = join(newFolder(), 'copy.db')
    await snapshotOf(path, file)
    const before = readFileSync(file)
    const dies = program(`${source}\nprocess.on('message', () => process.kill(process.pid, 'SIGKILL'))`)
    const error = await refusalOf(snapshotOf(path, file, { program: dies }))
    expect([error.code, error.exitStatus]).toEqual(['snapshot-cut-off', EXIT_STATUS.unfinished])
    expect(error.message).toContain(how)
    expect(readFileSync(file).equals(before)).toBe(true)
    expect(readdirSync(join(file, '..'))).toEqual(['copy.db'])
  })

  test('a stopped snapshot ends at once with the reason, and leaves the earlier one', async () => {
    const { path } = temporaryStore()
    const folder = newFolder()
    const file = join(folder, 'copy.db')
    await snapshotOf(path, file)
    const before = readFileSync(file)
    const stop = new AbortController()
    const snapshot = refusalOf(snapshotOf(path, file, { program: program(ENDLESS), signal: stop.signal }))
    await until(
      () => readdirSync(folder).length,
      count => count > 1,
    )
    const reason = new StopError('stopped', { code: 'stopped', exitStatus: EXIT_STATUS.unfinished })
    stop.abort(reason)
    expect(await snapshot).toBe(reason)
    expect(readFileSync(file).equals(before)).toBe(true)
    expect(readdirSync(folder)).toEqual(['copy.db'])
  })

  test('a snapshot leaves a warehouse that has appeared at its path meanwhile', async () => {
    const { path } = temporaryStore()
    const folder = newFolder()
    const file = join(folder, 'copy.db')
    const writes = `process.on('message', ({ part }) => {
      writeFileSync(part, 'a database')
      writeFileSync(${JSON.stringify(file)}, 'somebody’s')
      process.send({ bytes: 10, status: [] }, () => process.disconnect())
    })`
    const error = await refusalOf(snapshotOf(path, file, { program: program(writes) }))
    expect(error.code).toBe('snapshot-refused')
    expect(contents(folder)).toEqual([['copy.db', Buffer.from('somebody’s').toString('latin1')]])
  })

  test('a snapshot gives up before the WAL has grown without end', async () => {
    const path = join(newFolder(), 'parley.db')
    openAt(path).close()
    const folder = newFolder()
    const clock = virtualClock(0)
    const snapshot = refusalOf(
      snapshotOf(path, join(folder, 'copy.db'), { program: program(ENDLESS), clock }),
    )
    await until(
      () => readdirSync(folder).length,
      count => count > 0,
    )
    truncateSync(`${path}-wal`, 1024 ** 3)
    await clock.advance(1000)
    expect(readdirSync(folder)).toEqual([expect.stringMatching(/\.part$/)])
    truncateSync(`${path}-wal`, 1024 ** 3 + 1)
    await clock.advance(1000)
    expect(await snapshot).toMatchObject({ code: 'snapshot-outrun', exitStatus: EXIT_STATUS.unfinished })
    expect(readdirSync(folder)).toEqual([])
  })

  test('an index that differs from its table fails, and leaves the earlier snapshot', async () => {
    const store = temporaryStore()
    store.exec(
      "INSERT INTO meetings (id, _first_seen_at, _synced_at) VALUES ('aaa', '', ''), ('bbb', '', '')",
    )
    const file = join(newFolder(), 'copy.db')
    await snapshotOf(store.path, file)
    store.close()
    const db = openSqlite(store.path)
    const page = Number(
      db.prepare("SELECT rootpage FROM sqlite_master WHERE name = 'meetings_key'").pluck().get(),
    )
    const size = Number(db.pragma('page_size', { simple: true }))
    db.close()
    const bytes = readFileSync(store.path)
    const leaf = bytes.subarray((page - 1) * size, page * size)
    leaf[leaf.lastIndexOf('aaa')] = 'A'.charCodeAt(0)
    writeFileSync(store.path, bytes)
    const error = await refusalOf(snapshotOf(store.path, file))
    expect([error.code, error.exitStatus]).toEqual(['snapshot-unsound', EXIT_STATUS.databaseUnavailable])
    expect(column(file, 'SELECT id FROM meetings ORDER BY id')).toEqual(['aaa', 'bbb'])
  })

  test('a snapshot of a damaged database reports that the database is damaged', async () => {
    const path = join(newFolder(), 'parley.db')
    const store = openAt(path)
    store.close()
    const { size } = statSync(path)
    truncateSync(path, size - (size % 8192) - 4096 * 8)
    const folder = newFolder()
    const error = await refusalOf(snapshotOf(path, join(folder, 'copy.db')))
    expect(error.exitStatus).toBe(EXIT_STATUS.databaseUnavailable)
    expect(error.message).toContain(`${path}: it is damaged`)
    expect(readdirSync(folder)).toEqual([])
  })
})

test('a folder that may not be listed or fsynced does not fail a snapshot', async () => {
  const { path, folder: store } = temporaryStore()
  const folder = newFolder()
  const [part, file] = [join(folder, 'copy.db.0123abcd.part'), join(folder, 'copy.db')]
  writeFileSync(part, 'whole')
  chmodSync(store, 0o711)
  for (const own of [part, folder]) giveToNobody(own)
  chmodSync(folder, 0o300)
  await asNobody(async () => {
    await removePartials({ of: file, isAlike: () => true, now: Date.now() + 7_200_000 })
    await moveIntoPlace(part, file, { database: path, mode: 0o600 })
  })
  chmodSync(folder, 0o700)
  expect(contents(folder)).toEqual([['copy.db', 'whole']])
})

test('a file whose group could not be set gives its group no permissions', async () => {
  const { path, folder: store } = temporaryStore()
  const folder = newFolder()
  const own = join(folder, 'copy.db')
  writeFileSync(own, '')
  chmodSync(store, 0o711)
  const isRoot = process.getuid?.() === 0
  if (isRoot) chownSync(path, -1, 4711)
  for (const one of [own, folder]) giveToNobody(one)
  const mine = await asNobody(() => modeFor(own, path, 0o644))
  expect(mine).toBe(isRoot ? 0o604 : 0o644)
  chmodSync(folder, 0o2700)
  expect(await asNobody(() => modeFor(own, path, 0o644))).toBe(0o644)
})

describe('the partial file of a dead process', () => {
  const LEFT = ['copy.db.0123abcd.part', 'copy.db.0123abcd.part-journal']
  const OTHERS = ['copy.db.part', 'other.db.0123abcd.part', 'copy.db.notes']

  /** A folder with these files, last changed this number of minutes ago. */
  function folderWith(names: readonly string[], minutes: number): string {
    const folder = newFolder()
    const at = Date.now() / 1000 - minutes * 60
    for (const name of names) {
      writeFileSync(join(folder, name), 'half')
      utimesSync(join(folder, name), at, at)
    }
    return folder
  }

  test('the next snapshot of that name removes the partial file, and nothing else', async () => {
    const folder = folderWith([...LEFT, ...OTHERS], 61)
    await snapshotOf(temporaryStore().path, join(folder, 'copy.db'))
    expect(readdirSync(folder).sort()).toEqual(['copy.db', ...OTHERS].sort())
  })

  test('the partial file stays for an hour: another process may be working on it', async () => {
    const folder = folderWith(LEFT, 59)
    await snapshotOf(temporaryStore().path, join(folder, 'copy.db'))
    expect(readdirSync(folder).sort()).toEqual(['copy.db', ...LEFT].sort())
  })

  test('the partial file is removed before the free space is checked, since it may use that space', async () => {
    const folder = folderWith(LEFT, 61)
    const freeBytes = () => (readdirSync(folder).length === 0 ? 1e9 : 0)
    await snapshotOf(temporaryStore().path, join(folder, 'copy.db'), { freeBytes })
    expect(readdirSync(folder)).toEqual(['copy.db'])
  })

  test('the partial file of another user stays and does no harm', async () => {
    const folder = newFolder()
    mkdirSync(join(folder, 'copy.db.0123abcd.part'))
    const clock = virtualClock(Date.now() + 7_200_000)
    await snapshotOf(temporaryStore().path, join(folder, 'copy.db'), { clock })
    expect(readdirSync(folder).sort()).toEqual(['copy.db', 'copy.db.0123abcd.part'])
  })
})

test('a snapshot is complete as of the earliest instant of the available resources, once all were read', () => {
  const store = temporaryStore()
  const [first, second, ...rest] = readStatus(store.db)
  if (!first || !second) throw new Error('no resources')
  const at = (row: typeof first, complete_as_of: string | null) => ({
    ...row,
    state: 'ok' as const,
    complete_as_of,
  })
  const completeAsOf = (resources: readonly StatusRow[]) => statusInstants(resources).complete_as_of
  const [early, late] = ['2026-01-01T00:00:00.000Z', '2026-01-02T00:00:00.000Z']
  const unavailable = rest.map(row => ({ ...row, state: 'unavailable' as const }))
  expect(completeAsOf([at(first, late), at(second, early), ...unavailable])).toBe(early)
  expect(completeAsOf([at(first, late), at(second, null)])).toBe(null)
  expect(completeAsOf(unavailable)).toBe(null)
})

const [since, early, late] = [
  '2026-06-01T00:00:00.000Z',
  '2026-07-01T00:00:00.000Z',
  '2026-07-02T00:00:00.000Z',
]

test('what sync.since leaves out does not make a warehouse incomplete, and spans that fall behind later do', () => {
  const store = temporaryStore()
  store.exec(`INSERT INTO sync_meta VALUES ('chosen_resources', '["members","messages"]');
    INSERT INTO sync_segments (feed, from_at, to_at, listed_at) VALUES ('members.list', NULL, NULL, '${late}'),
      ('messages.list', NULL, '${since}', NULL), ('messages.list', '${since}', NULL, '${early}')`)
  const read = () => {
    const { complete_as_of, unread, since: from } = readCompleteness(store.db)
    return { complete_as_of, unread, from }
  }
  expect(read()).toEqual({ complete_as_of: null, unread: ['messages'], from: null })
  store.exec(`UPDATE sync_resources SET first_complete_at = '${late}'`)
  expect(read()).toEqual({ complete_as_of: early, unread: [], from: since })
  store.exec(`UPDATE sync_segments SET to_at = '${late}' WHERE listed_at = '${early}';
    INSERT INTO sync_segments (feed, from_at) VALUES ('messages.list', '${late}')`)
  expect(read()).toMatchObject({ complete_as_of: null, unread: ['messages'] })
})

test('after sync.since was narrowed, newer items have a later instant, and the whole keeps the earlier one', () => {
  const store = temporaryStore()
  store.exec(`INSERT INTO sync_meta VALUES ('chosen_resources', '["messages"]');
    UPDATE sync_resources SET first_complete_at = '${early}';
    INSERT INTO sync_segments (feed, from_at, to_at, listed_at) VALUES
      ('messages.list', NULL, '${since}', '${early}'), ('messages.list', '${since}', NULL, '${late}')`)
  const bounded = () => readReadSince(store.db).get('messages')
  expect(bounded()).toBeUndefined()
  store.exec(`INSERT INTO sync_meta VALUES ('since', '${since}')`)
  expect(bounded()).toEqual({ since, complete_as_of: late })
  expect(readCompleteness(store.db)).toMatchObject({ complete_as_of: early, since: null })
})
