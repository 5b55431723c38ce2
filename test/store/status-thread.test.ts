import { describe, expect, test } from 'vitest'
import { readStatus } from '../../src/store/status/status.ts'
import { createStatusRows, type StatusRowsOptions } from '../../src/store/status/thread.ts'
import { temporaryStore } from './temporary-store.ts'

/** Threads can only run compiled programs. */
const PROGRAM = new URL('../../dist/store/status/worker.js', import.meta.url)

const program = (source: string) =>
  new URL(
    `data:text/javascript,${encodeURIComponent(`import { parentPort, threadId } from 'node:worker_threads'; ${source}`)}`,
  )

/** Answers with a row that identifies the thread. */
const NUMBERED = program('parentPort.postMessage([threadId])')

function statusRows(options: Partial<StatusRowsOptions> = {}) {
  let elapsed = 0
  const clock = { now: () => elapsed, elapsed: () => elapsed, sleep: async () => undefined }
  return {
    rows: createStatusRows({ clock, largeBytes: 0, program: PROGRAM, ...options }),
    pass(ms: number) {
      elapsed += ms
    },
  }
}

describe('the status of a large warehouse', () => {
  test('the status equals the rows of the view', async () => {
    const store = temporaryStore()
    store.put('members', [{ id: 'a' }, { id: 'b' }])
    const rows = await statusRows().rows.read(store.path)
    expect(rows).toEqual(readStatus(store.db))
    expect(rows?.find(({ resource }) => resource === 'members')?.rows_live).toBe(2)
  })

  test('the status is read while this thread is in the middle of a transaction', async () => {
    const store = temporaryStore()
    store.db.exec('BEGIN IMMEDIATE')
    expect(await statusRows().rows.read(store.path)).toHaveLength(readStatus(store.db).length)
    store.db.exec('ROLLBACK')
  })

  test('the status is read once for all calls within some seconds, and again after them', async () => {
    const { path } = temporaryStore()
    const { rows, pass } = statusRows({ program: NUMBERED })
    const [first, second] = await Promise.all([rows.read(path), rows.read(path)])
    pass(4000)
    const third = await rows.read(path)
    pass(2000)
    const fourth = await rows.read(path)
    expect([second, third]).toEqual([first, first])
    expect(fourth).not.toEqual(first)
  })

  test('the status of another file is read separately', async () => {
    const { rows } = statusRows({ program: NUMBERED })
    const first = await rows.read(temporaryStore().path)
    expect(await rows.read(temporaryStore().path)).not.toEqual(first)
  })
})

describe('the status that the caller reads itself', () => {
  test('the caller reads the status of a small warehouse', async () => {
    const { path } = temporaryStore()
    expect(await statusRows({ largeBytes: 100_000_000 }).rows.read(path)).toBeUndefined()
  })

  test.each([
    ['is not there', new URL('file:///nowhere/status-worker.js')],
    ['fails', program('throw new Error("no memory")')],
    ['ends without an answer', program('')],
  ])('the caller reads the status when the thread %s', async (_, broken) => {
    const { path } = temporaryStore()
    expect(await statusRows({ program: broken }).rows.read(path)).toBeUndefined()
  })

  test('the caller reads a missing file, and the error says why', async () => {
    expect(await statusRows().rows.read('/nowhere/parley.db')).toBeUndefined()
  })
})
