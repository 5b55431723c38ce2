import { describe, expect, test } from 'vitest'
import { createReportSources } from '../../src/app/report-sources.ts'
import { createCachedReading } from '../../src/base/cached-reading.ts'
import type { Clock } from '../../src/base/clock.ts'
import { runningState } from '../../src/daemon/state.ts'
import { RESOURCE_NAMES } from '../../src/declare/resource-names.ts'
import { createThreadReader } from '../../src/store/status/thread.ts'
import { virtualClock } from '../api/virtual-clock.ts'
import { temporaryStore } from '../store/temporary-store.ts'

function counted() {
  let elapsed = 0
  let reads = 0
  let fails = false
  const ask = createCachedReading(
    async of => {
      reads += 1
      if (fails) throw new Error('unreadable')
      return `${of} ${reads}`
    },
    { elapsed: () => elapsed },
  )
  return {
    ask,
    pass: (ms: number) => {
      elapsed += ms
    },
    fail: (now: boolean) => {
      fails = now
    },
  }
}

describe('a cached reading', () => {
  test('one reading serves all calls within a second, also while it is being made', async () => {
    const { ask, pass } = counted()
    expect(await Promise.all([ask('a'), ask('a')])).toEqual(['a 1', 'a 1'])
    pass(999)
    expect(await ask('a')).toBe('a 1')
    pass(1)
    expect(await ask('a')).toBe('a 2')
  })

  test('a reading that takes longer than a second serves all calls until it ends', async () => {
    const ends: ((value: string) => void)[] = []
    let elapsed = 0
    const ask = createCachedReading(() => new Promise<string>(resolve => ends.push(resolve)), {
      elapsed: () => elapsed,
    })
    const first = ask('a')
    elapsed = 5000
    const second = ask('a')
    expect(ends).toHaveLength(1)
    ends[0]?.('slow')
    expect(await Promise.all([first, second])).toEqual(['slow', 'slow'])
    ask('a')
    expect(ends).toHaveLength(2)
  })

  test('a reading serves a single file', async () => {
    const { ask } = counted()
    expect([await ask('a'), await ask('b')]).toEqual(['a 1', 'b 2'])
  })

  test('a failed reading is repeated at the next call', async () => {
    const { ask, fail } = counted()
    fail(true)
    await expect(ask('a')).rejects.toThrow('unreadable')
    fail(false)
    expect(await ask('a')).toBe('a 2')
  })
})

test('the status server reads a small file at most once a second', async () => {
  const store = temporaryStore()
  const clock = virtualClock(Date.parse('2026-03-04T12:00:00.000Z'))
  const { status } = createReportSources({
    version: '1',
    clock,
    workspaceId: () => 'acme',
    databasePath: () => store.path,
    hasReport: false,
    db: () => undefined,
    blockedMs: () => 0,
    daemon: () => runningState(clock),
  })
  const nextRun = async () => (await status()).resources.map(row => row.next_run_at)[0]
  expect(await nextRun()).toBeNull()
  const at = '2026-03-04T13:00:00.000Z'
  await store.transaction(() => {
    for (const name of RESOURCE_NAMES) store.state.nextRun(name, at)
  })
  await clock.advance(999)
  expect(await nextRun()).toBeNull()
  await clock.advance(1)
  expect(await nextRun()).toBe(at)
})

describe('the report of the status server', () => {
  const sourcesAt = (path: string, clock: Clock) =>
    createReportSources({
      ...{ version: '1', clock, workspaceId: () => 'acme', databasePath: () => path },
      ...{ hasReport: true, db: () => undefined, blockedMs: () => 0, daemon: () => undefined },
    })

  test('it is made once for all who ask at the same time', async () => {
    const store = temporaryStore()
    const clock = virtualClock(Date.parse('2026-03-04T12:00:00.000Z'))
    const { report } = sourcesAt(store.path, clock)
    const [first, second] = await Promise.all([report(), report()])
    expect(first).toContain('2026-03-04 12:00:00')
    expect(second).toBe(first)
    await clock.advance(10_000)
    expect(await report()).toContain('2026-03-04 12:00:10')
  })

  test('without a warehouse it says so', async () => {
    const { report } = sourcesAt('/nowhere/parley.db', virtualClock(0))
    await expect(report()).rejects.toThrow('There is no warehouse')
  })

  test('its thread makes the page that this thread would make', async () => {
    const { path } = temporaryStore()
    const clock = virtualClock(Date.parse('2026-03-04T12:00:00.000Z'))
    const program = new URL('../../dist/report/worker.js', import.meta.url)
    const { read } = createThreadReader<string>({ clock, largeBytes: 0, program })
    expect(await read(path)).toBe(await sourcesAt(path, clock).report())
  })
})
