import { expect, onTestFinished, test } from 'vitest'
import type { Clock } from '../../src/base/clock.ts'
import { EXIT_STATUS, StopError } from '../../src/base/errors.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { createTransaction, type Transaction, whileBusy } from '../../src/store/database/transaction.ts'
import { temporaryStore } from './temporary-store.ts'

/** The work takes this number of milliseconds of a virtual clock. */
function start(): {
  transaction: Transaction
  work(ms: number): () => void
  done: string[]
  keys(): unknown[]
  path: string
  /** The time of the virtual clock, which moves only with work and waits. */
  elapsed(): number
} {
  const store = temporaryStore()
  let elapsed = 0
  // One pause stands for a hundred, since SQLite waits a little by the real clock before each.
  const pass: Clock['sleep'] = async ms => {
    elapsed += 100 * ms
  }
  const clock: Clock = { now: () => 0, elapsed: () => elapsed, sleep: pass }
  const checkpoints = {
    isDue: () => false,
    run: async () => undefined,
    abandon: () => undefined,
    close: () => undefined,
  }
  const done: string[] = []
  const insert = store.db.prepare('INSERT INTO sync_meta VALUES (?, ?)')
  let number = 0
  return {
    transaction: createTransaction({ db: store.db, clock, path: store.path, checkpoints }),
    work: ms => () => {
      number += 1
      done.push(`${number}`)
      insert.run(`work ${number}`, 'x')
      elapsed += ms
    },
    done,
    path: store.path,
    elapsed: () => elapsed,
    keys: () => store.column("SELECT key FROM sync_meta WHERE key LIKE 'work %' ORDER BY key"),
  }
}

test('calls within one turn of the event loop share one commit', async () => {
  const { transaction, work, keys } = start()
  await Promise.all(Array.from({ length: 9 }, () => transaction(work(1))))
  expect(transaction.commits()).toBe(1)
  expect(keys()).toHaveLength(9)
})

test('a note aside is committed, and only other work counts and calls the listeners', async () => {
  const { transaction, work, keys } = start()
  let calls = 0
  transaction.onCommit(() => {
    calls += 1
  })
  await transaction.aside(work(1))
  expect([keys(), transaction.commits(), calls]).toEqual([['work 1'], 0, 0])
  await Promise.all([transaction.aside(work(1)), transaction(work(1))])
  expect([keys(), transaction.commits(), calls]).toEqual([['work 1', 'work 2', 'work 3'], 1, 1])
})

test('long batches are split into several commits in the order of the calls, and other work runs in between', async () => {
  const { transaction, work, done, keys } = start()
  const all = Promise.all(Array.from({ length: 9 }, () => transaction(work(5))))
  while (transaction.commits() === 0) await new Promise(setImmediate)
  done.push('another')
  await all
  expect(done).toEqual(['1', '2', '3', 'another', '4', '5', '6', '7', '8', '9'])
  expect(transaction.commits()).toBe(3)
  expect(keys()).toHaveLength(9)
})

test('a call that takes long is committed alone', async () => {
  const { transaction, work } = start()
  await Promise.all([transaction(work(1000)), transaction(work(1000))])
  expect(transaction.commits()).toBe(2)
})

test('a failing call is rolled back alone, wherever the batch is split', async () => {
  const { transaction, work, keys } = start()
  const failing = () => {
    work(5)()
    throw new Error('this one only')
  }
  const ends = await Promise.allSettled(
    Array.from({ length: 9 }, (_, index) => transaction(index % 3 === 1 ? failing : work(5))),
  )
  expect(ends.map(({ status }) => status === 'fulfilled')).toEqual(
    Array.from({ length: 9 }, (_, index) => index % 3 !== 1),
  )
  expect(keys()).toHaveLength(6)
})

test('a transaction waits 10 s for another program that writes, then fails with 75 and stores nothing', async () => {
  const { transaction, work, keys, path, elapsed } = start()
  const stranger = openSqlite(path)
  onTestFinished(() => {
    stranger.close()
  })
  stranger.exec('BEGIN IMMEDIATE')
  const error = await transaction(work(1)).catch(reason => reason)
  expect(error).toBeInstanceOf(StopError)
  expect(error).toMatchObject({ code: 'database-busy', exitStatus: EXIT_STATUS.unfinished })
  expect(elapsed()).toBeGreaterThan(10_000)
  stranger.exec('ROLLBACK')
  expect(keys()).toEqual([])
  await transaction(work(1))
  expect(keys()).toHaveLength(1)
})

test('the duration of a write that a checkpoint delays is known', async () => {
  const store = temporaryStore()
  let elapsed = 0
  const clock: Clock = { now: () => 0, elapsed: () => elapsed, sleep: async () => undefined }
  let end: () => void = () => undefined
  const hanging = new Promise<void>(resolve => {
    end = resolve
  })
  const checkpoints = { isDue: () => true, run: () => hanging, abandon: () => undefined }
  const transaction = createTransaction({ db: store.db, clock, path: store.path, checkpoints })
  expect(transaction.blockedMs()).toBe(0)
  await transaction(() => undefined)
  const next = transaction(() => undefined)
  elapsed += 90_000
  expect(transaction.blockedMs()).toBe(90_000)
  end()
  await next
  await new Promise(setImmediate)
  expect(transaction.blockedMs()).toBe(0)
})

test('work gets in between the transactions of a program that writes at a fixed pace', async () => {
  for (let phase = 0; phase < 50; phase += 1) {
    let elapsed = phase
    const clock = {
      elapsed: () => elapsed,
      sleep: async (ms: number) => {
        elapsed += ms
      },
    }
    // A writer that holds the lock for 40 ms of each 50 ms.
    const work = () => {
      if (elapsed % 50 < 40) throw Object.assign(new Error('database is locked'), { code: 'SQLITE_BUSY' })
      return elapsed
    }
    expect(await whileBusy(clock, work)).toBeLessThan(1000)
  }
})
