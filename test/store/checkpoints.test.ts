import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { closeDatabase } from '../../src/store/database/connections.ts'
import type { Sqlite } from '../../src/store/database/sqlite-types.ts'
import { createTransaction } from '../../src/store/database/transaction.ts'
import {
  type CheckpointOptions,
  type Checkpoints,
  createCheckpoints,
} from '../../src/store/database/wal-checkpoints.ts'
import { LARGE_WAL_BYTES, walReaders } from '../../src/store/disk/lock-holders.ts'
import { openDatabase } from '../../src/store/file/open.ts'
import { openWarehouse } from '../../src/store/open-warehouse.ts'
import { readStatusReport } from '../../src/store/status/report.ts'
import { until } from '../support/until.ts'
import { newFolder, temporaryStore } from './temporary-store.ts'

const PAGES = 200
/** Threads can only run compiled programs. */
const PROGRAM = new URL('../../dist/store/database/wal-checkpoint-worker.js', import.meta.url)
const PAGE_BYTES = 4096 + 24
/** The largest `-wal` file that is kept for reuse. */
const MOST_WAL_BYTES = 64 * 1024 * 1024

interface Writer {
  path: string
  db: Sqlite
  checkpoints: Checkpoints
  /** The number of checkpoints that transactions have requested. */
  runs(): number
  /** Adds rows in one transaction, each of about a tenth of a page. */
  add(rows: number): Promise<void>
  /** The rows that another connection reads. */
  rowsFound(): number
  walPages(): number
}

function writerAt(options: CheckpointOptions = {}, path = join(newFolder(), 'parley.db')): Writer {
  const db = openWarehouse({ path })
  const checkpoints = createCheckpoints(db, { pages: PAGES, program: PROGRAM, ...options })
  onTestFinished(() => {
    checkpoints.close()
    db.close()
  })
  let runs = 0
  const run = () => {
    runs += 1
    return checkpoints.run()
  }
  const transaction = createTransaction({
    db,
    clock: systemClock(),
    path,
    checkpoints: { ...checkpoints, run },
  })
  db.exec('CREATE TABLE filled (id INTEGER PRIMARY KEY, value BLOB)')
  const insert = db.prepare('INSERT INTO filled (value) VALUES (randomblob(400))')
  return {
    path,
    db,
    checkpoints,
    runs: () => runs,
    add: rows =>
      transaction(() => {
        for (let row = 0; row < rows; row += 1) insert.run()
      }),
    rowsFound() {
      const reader = openDatabase({ path, readonly: true })
      const found = reader.prepare('SELECT count(*) FROM filled').pluck().get() as number
      reader.close()
      return found
    },
    walPages: () => Math.ceil(statSync(`${path}-wal`).size / PAGE_BYTES),
  }
}

interface WalState {
  log: number
  checkpointed: number
}

const stateOf = (db: Sqlite): WalState => (db.pragma('wal_checkpoint(NOOP)') as [WalState])[0]

const program = (source: string) => new URL(`data:text/javascript,${encodeURIComponent(source)}`)

const PARENT = "import { parentPort, workerData } from 'node:worker_threads';"

/** Threads that fail in several ways. */
const BROKEN: Readonly<Record<string, URL>> = {
  'is not there': new URL('file:///nowhere/wal-checkpoint-worker.js'),
  'fails at its start': program('throw new Error("no memory")'),
  'ends when it is asked': program(`${PARENT} parentPort.on('message', () => process.exit(1))`),
  'cannot open the file': program(`${PARENT} parentPort.on('message', () => parentPort.postMessage(false))`),
}

describe('the WAL while rows are written', () => {
  test('the WAL stays short, although commits run no checkpoint', async () => {
    const writer = writerAt()
    expect(writer.db.pragma('wal_autocheckpoint', { simple: true })).toBe(0)
    for (let turn = 0; turn < 500; turn += 1) await writer.add(100)
    // One transaction more than the number that makes a checkpoint due, and the pages of the table's tree.
    expect(writer.walPages()).toBeLessThan(PAGES + 30)
    expect(writer.rowsFound()).toBe(50_000)
  })

  test.each(Object.entries(BROKEN))(
    'the WAL stays short when the checkpoint thread %s',
    async (_, broken) => {
      const writer = writerAt({ program: broken })
      for (let turn = 0; turn < 200; turn += 1) await writer.add(100)
      expect(writer.walPages()).toBeLessThan(PAGES + 30)
      expect(writer.rowsFound()).toBe(20_000)
    },
  )

  test('a reader that keeps its snapshot blocks no one, and the WAL is emptied once it has ended', async () => {
    const writer = writerAt()
    await writer.add(10)
    const reader = openDatabase({ path: writer.path, readonly: true })
    reader.exec('BEGIN')
    const count = () => reader.prepare('SELECT count(*) FROM filled').pluck().get()
    expect(count()).toBe(10)
    for (let turn = 0; turn < 200; turn += 1) await writer.add(100)
    expect(count()).toBe(10)
    const held = stateOf(writer.db)
    expect(held.log - held.checkpointed).toBeGreaterThan(5 * PAGES)
    reader.close()
    for (let turn = 0; turn < 40; turn += 1) await writer.add(100)
    const after = stateOf(writer.db)
    expect(after.log).toBeLessThan(2 * PAGES)
    expect(writer.rowsFound()).toBe(24_010)
  })

  test('a WAL that grew beyond 64 MiB while a reader held it is cut to that size once it is reused', async () => {
    const writer = writerAt()
    await writer.add(10)
    const reader = openDatabase({ path: writer.path, readonly: true })
    reader.exec('BEGIN')
    reader.prepare('SELECT count(*) FROM filled').get()
    writer.db.exec('CREATE TABLE large (content BLOB)')
    writer.db.exec('INSERT INTO large VALUES (zeroblob(70000000))')
    const size = () => statSync(`${writer.path}-wal`).size
    expect(size()).toBeGreaterThan(MOST_WAL_BYTES)
    reader.close()
    for (let turn = 0; turn < 20; turn += 1) await writer.add(100)
    expect(size()).toBeLessThanOrEqual(MOST_WAL_BYTES)
  })

  test('a checkpoint that moved nothing is retried after as many pages again, not at every commit', async () => {
    const writer = writerAt()
    const reader = openDatabase({ path: writer.path, readonly: true })
    reader.exec('BEGIN')
    reader.prepare('SELECT count(*) FROM filled').get()
    for (let turn = 0; turn < 100; turn += 1) await writer.add(100)
    expect(writer.runs()).toBeGreaterThan(1)
    expect(writer.runs()).toBeLessThanOrEqual(stateOf(writer.db).log / PAGES)
    reader.close()
  })
})

describe('a checkpoint in its thread', () => {
  test('a checkpoint moves pages while the main thread is inside a transaction', async () => {
    const writer = writerAt({ pages: 1_000_000 })
    await writer.add(1000)
    const { log } = stateOf(writer.db)
    writer.db.exec('BEGIN IMMEDIATE')
    await writer.checkpoints.run()
    writer.db.exec('ROLLBACK')
    expect(stateOf(writer.db)).toMatchObject({ log, checkpointed: log })
  })

  test('a checkpoint delays the next transaction, which then writes the WAL from its start', async () => {
    const writer = writerAt()
    await writer.add(2000)
    expect(stateOf(writer.db).log).toBeGreaterThan(PAGES)
    await writer.add(1)
    expect(stateOf(writer.db).log).toBeLessThan(10)
    expect(writer.rowsFound()).toBe(2001)
  })

  test('a checkpoint does not keep a process alive that has nothing else to do', async () => {
    const path = join(newFolder(), 'parley.db')
    const source = (name: string) => new URL(`../../src/store/${name}.ts`, import.meta.url).href
    const script = `
      import { openWarehouse } from '${source('open-warehouse')}'
      import { createCheckpoints } from '${source('database/wal-checkpoints')}'
      await createCheckpoints(openWarehouse({ path: '${path}' }), { program: new URL('${PROGRAM}') }).run()
      console.log('done')`
    const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script])
    let said = ''
    child.stdout.on('data', chunk => {
      said += chunk
    })
    child.stderr.on('data', chunk => {
      said += chunk
    })
    const [status] = await once(child, 'close')
    expect([status, said]).toEqual([0, 'done\n'])
  })
})

describe('a checkpoint that was asked for', () => {
  /** A database of which nothing would be moved without being asked for. */
  async function asking(options: CheckpointOptions = {}): Promise<Writer> {
    const writer = writerAt({ pages: 1_000_000, ...options })
    await writer.add(1000)
    return writer
  }

  test.each([['works', PROGRAM] as const, ...Object.entries(BROKEN)])(
    'it runs after the next commit when the thread %s',
    async (_, used) => {
      const { db, checkpoints, add } = await asking({ program: used })
      const done = checkpoints.ask()
      await add(1)
      await done
      const { log, checkpointed } = stateOf(db)
      expect(checkpointed).toBe(log)
    },
  )

  test('it settles when the database is closed first', async () => {
    const { checkpoints } = await asking()
    const done = checkpoints.ask()
    checkpoints.close()
    await done
  })
})

describe('closing with a checkpoint', () => {
  const isWhole = (path: string) => {
    expect([`${path}-wal`, `${path}-shm`].map(existsSync)).toEqual([true, true])
    const reader = openDatabase({ path, readonly: true })
    expect(reader.pragma('integrity_check', { simple: true })).toBe('ok')
    reader.close()
  }

  test('closing waits for the running checkpoint, so that a read-only connection is the last to close', async () => {
    const folder = newFolder()
    const said = (name: string) => join(folder, name)
    const slow = program(`${PARENT} import { writeFileSync } from 'node:fs'
      const state = new Int32Array(workerData.state)
      parentPort.on('message', () => {
        Atomics.compareExchange(state, 0, 1, 2)
        writeFileSync('${said('taken')}', '')
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300)
        writeFileSync('${said('done')}', '')
        Atomics.store(state, 0, 0)
        Atomics.notify(state, 0)
      })`)
    const writer = writerAt({ pages: 1_000_000, program: slow })
    await writer.add(1000)
    const running = writer.checkpoints.run()
    while (!existsSync(said('taken'))) await new Promise(setImmediate)
    writer.checkpoints.close()
    expect(existsSync(said('done'))).toBe(true)
    await running
  })

  test('closing in the middle of a checkpoint leaves an intact file', async () => {
    for (let turn = 0; turn < 5; turn += 1) {
      const writer = writerAt({ pages: 1_000_000 })
      // The first checkpoint starts the thread, so that the second finds it ready.
      await writer.checkpoints.run()
      await writer.add(turn * 2000)
      const running = writer.checkpoints.run()
      writer.checkpoints.close()
      closeDatabase(writer.db)
      await running
      expect(writer.rowsFound()).toBe(turn * 2000)
      isWhole(writer.path)
    }
  })

  test.each(
    Object.entries({ ...BROKEN, 'never answers': program(`${PARENT} parentPort.on('message', () => {})`) }),
  )('closing does not wait for a thread that %s', async (_, broken) => {
    const writer = writerAt({ pages: 1_000_000, program: broken })
    await writer.add(1000)
    const running = writer.checkpoints.run()
    writer.checkpoints.close()
    closeDatabase(writer.db)
    await running
    expect(writer.rowsFound()).toBe(1000)
    isWhole(writer.path)
  })

  test('a store with a checkpoint due loses nothing and can be opened at once', async () => {
    const store = temporaryStore()
    await store.transaction(() => {
      store.db.exec("INSERT INTO sync_meta VALUES ('large', hex(zeroblob(40000000)))")
    })
    store.close()
    const reader = openDatabase({ path: store.path, readonly: true })
    expect(reader.prepare("SELECT length(value) FROM sync_meta WHERE key = 'large'").pluck().get()).toBe(
      80_000_000,
    )
    reader.close()
    isWhole(store.path)
  })
})

test('checkpoints report once that a reader keeps a large WAL, and again after it has gone and another came', async () => {
  const held: number[] = []
  const writer = writerAt({ pages: 5, onHeld: bytes => held.push(bytes) })
  for (let round = 1; round <= 2; round += 1) {
    const reader = openDatabase({ path: writer.path, readonly: true })
    reader.exec('BEGIN; SELECT count(*) FROM filled')
    for (let commit = 0; commit < 12; commit += 1) await writer.add(100)
    expect(held).toHaveLength(round)
    reader.close()
    for (let commit = 0; commit < 3; commit += 1) await writer.add(100)
  }
  expect(held.every(bytes => bytes >= 8 * 5 * 4096)).toBe(true)
})

test('a program that reads while the WAL is large is in the status report', async () => {
  const store = temporaryStore()
  // Not a child of this process, whose children read for it.
  const shell = spawn('sh', ['-c', 'sqlite3 "$0"; exit', store.path], {
    stdio: ['pipe', 'ignore', 'inherit'],
  })
  onTestFinished(() => {
    shell.stdin.end()
  })
  shell.stdin.write('BEGIN; SELECT count(*) FROM sync_meta;\n')
  await until(
    () => walReaders(store.path).map(({ pid }) => pid),
    pids => pids.length === 1,
  )
  const readers = () => readStatusReport({ path: store.path, db: store.db, now: Date.now() }).wal_readers
  expect(readers()).toEqual([])
  truncateSync(`${store.path}-wal`, LARGE_WAL_BYTES)
  expect(readers()).toEqual([{ pid: expect.any(Number), program: 'sqlite3', state: 'running' }])
})
