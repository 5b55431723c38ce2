import { describe, expect, test } from 'vitest'
import { type CountedStatus, readOverview } from '../../src/store/status/overview.ts'
import { readStatus } from '../../src/store/status/status.ts'
import { createThreadReader, type ThreadReaderOptions } from '../../src/store/status/thread.ts'
import { temporaryStore } from './temporary-store.ts'

/** Threads can only run compiled programs. */
const PROGRAM = new URL('../../dist/store/status/worker.js', import.meta.url)

const program = (source: string) =>
  new URL(
    `data:text/javascript,${encodeURIComponent(`import { parentPort, threadId } from 'node:worker_threads'; ${source}`)}`,
  )

/** Answers with a row that identifies the thread. */
const NUMBERED = program('parentPort.postMessage([threadId])')

function countedStatus(options: Partial<ThreadReaderOptions> = {}) {
  let elapsed = 0
  const clock = { now: () => elapsed, elapsed: () => elapsed, sleep: async () => undefined }
  return {
    reader: createThreadReader<CountedStatus>({ clock, largeBytes: 0, program: PROGRAM, ...options }),
    pass(ms: number) {
      elapsed += ms
    },
  }
}

describe('the status of a large warehouse', () => {
  test('the status equals what the caller would read itself', async () => {
    const store = temporaryStore()
    store.put('members', [{ id: 'a' }, { id: 'b' }])
    const counted = await countedStatus().reader.read(store.path)
    expect(counted?.rows).toEqual(readStatus(store.db))
    expect(counted?.overview).toEqual(readOverview(store.db, 0))
    expect(counted?.rows.find(({ resource }) => resource === 'members')?.rows_live).toBe(2)
  })

  test('the status is read while this thread is in the middle of a transaction', async () => {
    const store = temporaryStore()
    store.db.exec('BEGIN IMMEDIATE')
    const counted = await countedStatus().reader.read(store.path)
    expect(counted?.rows).toHaveLength(readStatus(store.db).length)
    store.db.exec('ROLLBACK')
  })

  test('the status is read once for all calls within some seconds, and again after them', async () => {
    const { path } = temporaryStore()
    const { reader, pass } = countedStatus({ program: NUMBERED })
    const [first, second] = await Promise.all([reader.read(path), reader.read(path)])
    pass(4000)
    const third = await reader.read(path)
    pass(2000)
    const fourth = await reader.read(path)
    expect([second, third]).toEqual([first, first])
    expect(fourth).not.toEqual(first)
  })

  test('the status is reused for twenty times the time that its reading took', async () => {
    const { path } = temporaryStore()
    const { reader, pass } = countedStatus({ program: NUMBERED })
    const reading = reader.read(path)
    pass(1000)
    const first = await reading
    pass(19_000)
    expect(await reader.read(path)).toEqual(first)
    pass(1000)
    expect(await reader.read(path)).not.toEqual(first)
  })

  test('the status of another file is read separately', async () => {
    const { reader } = countedStatus({ program: NUMBERED })
    const first = await reader.read(temporaryStore().path)
    expect(await reader.read(temporaryStore().path)).not.toEqual(first)
  })
})

describe('the status that the caller reads itself', () => {
  test('the caller reads the status of a small warehouse', async () => {
    const { path } = temporaryStore()
    expect(await countedStatus({ largeBytes: 100_000_000 }).reader.read(path)).toBeUndefined()
  })

  test.each([
    ['is not there', new URL('file:///nowhere/status-worker.js')],
    ['fails', program('throw new Error("no memory")')],
    ['ends without an answer', program('')],
  ])('the caller reads the status when the thread %s', async (_, broken) => {
    const { path } = temporaryStore()
    expect(await countedStatus({ program: broken }).reader.read(path)).toBeUndefined()
  })

  test('the caller reads a missing file, and the error says why', async () => {
    expect(await countedStatus().reader.read('/nowhere/parley.db')).toBeUndefined()
  })
})
