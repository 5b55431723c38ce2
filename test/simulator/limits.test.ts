import { expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { createLimiter, type LimitModel } from '../../src/simulator/faults/limits.ts'
import type { SimulatorOptions } from '../../src/simulator/server.ts'
import { askOf, SMALL, withSimulator } from './ask.ts'

/** Which of the requests at these milliseconds are allowed. */
function admitted(model: LimitModel, times: readonly number[]): boolean[] {
  const limiter = createLimiter(model)
  return times.map(time => limiter.admit(time).isAllowed)
}

test('a token bucket allows a burst and then its rate', () => {
  const rule = { kind: 'token-bucket', rate: 10, burst: 2 } as const
  expect(admitted(rule, [0, 0, 0, 99, 100, 150, 200])).toEqual([true, true, false, false, true, false, true])
})

test('a fixed window starts counting again at every boundary', () => {
  const rule = { kind: 'fixed-window', count: 2, windowMs: 100 } as const
  expect(admitted(rule, [90, 95, 99, 100, 101, 102])).toEqual([true, true, false, true, true, false])
})

test('a sliding window counts the requests of the time before', () => {
  const rule = { kind: 'sliding-window', count: 2, windowMs: 100 } as const
  expect(admitted(rule, [90, 95, 100, 189, 190, 194, 195])).toEqual([
    true,
    true,
    false,
    false,
    true,
    false,
    true,
  ])
})

test('another client takes its share of a limit for a while, and is served first', () => {
  const other = { perSecond: 50, fromMs: 100, untilMs: 200 }
  const limit = { kind: 'fixed-window', count: 3, windowMs: 50, other } as const
  expect(admitted(limit, [0, 0, 0, 100, 101, 102, 150, 150, 199, 199, 200, 200, 200])).toEqual([
    ...[true, true, true],
    ...[true, true, false],
    ...[true, false, false, false],
    ...[true, false, false],
  ])
})

test('a concurrency limit allows a number of requests at a time', () => {
  const limiter = createLimiter({ kind: 'concurrency', max: 2 })
  expect([0, 0, 0].map(time => limiter.admit(time).isAllowed)).toEqual([true, true, false])
  limiter.release()
  expect(limiter.admit(0).isAllowed).toBe(true)
})

const timed = (options: SimulatorOptions): { options: SimulatorOptions; pass: (ms: number) => void } => {
  let now = 0
  const clock = { now: () => now, elapsed: () => now, sleep: async () => undefined }
  return {
    options: { ...SMALL, ...options, clock },
    pass: ms => {
      now += ms
    },
  }
}

test('a refused request is a 429 with the general body, whatever its key, and does not count as served', () => {
  const { options, pass } = timed({ limit: { kind: 'fixed-window', count: 1, windowMs: 10_000 } })
  return withSimulator(options, async (simulator, ask) => {
    expect((await ask('/v2/messages')).status).toBe(200)
    const refused = await ask('/v2/messages', {}, { 'x-api-key': 'wrong' })
    expect(refused).toMatchObject({ status: 429, body: { statusCode: 429, message: 'Too Many Requests' } })
    expect(refused.headers.get('retry-after')).toBe('10')
    expect(refused.headers.has('ratelimit-limit')).toBe(false)
    pass(10_000)
    expect((await ask('/v2/messages')).status).toBe(200)
    expect(simulator.requests.count('/v2/messages', 429)).toBe(1)
  })
})

test('the hint can be a date by the service’s clock, or absent', () => {
  const limit = { kind: 'token-bucket', rate: 0.5, burst: 1, hint: 'retry-after-date' } as const
  const { options } = timed({ limit, now: '2026-01-01T00:00:00Z' })
  return withSimulator(options, async (simulator, ask) => {
    await ask('/v1/members')
    const dated = await ask('/v1/members')
    expect(dated.headers.get('retry-after')).toBe('Thu, 01 Jan 2026 00:00:02 GMT')
    simulator.setLimit({ ...limit, hint: 'none' })
    await ask('/v1/members')
    expect((await ask('/v1/members')).headers.has('retry-after')).toBe(false)
  })
})

test('rate headers are sent with every answer when the model has them', () => {
  const { options } = timed({
    limit: { kind: 'sliding-window', count: 2, windowMs: 60_000, rateHeaders: true },
  })
  return withSimulator(options, async (_, ask) => {
    const remaining = async () => (await ask('/v1/members')).headers.get('ratelimit-remaining')
    expect([await remaining(), await remaining(), await remaining()]).toEqual(['1', '0', '0'])
  })
})

test('a stalled answer keeps its place in a concurrency limit until the client disconnects', () =>
  withSimulator(
    { ...SMALL, limit: { kind: 'concurrency', max: 1 }, faults: [{ kind: 'stall', atMost: 1 }] },
    async simulator => {
      const ask = askOf(simulator)
      const given = new AbortController()
      const headers = { 'x-api-key': simulator.apiKey, 'x-workspace-id': simulator.workspaceId }
      const stalled = fetch(`${simulator.url}/v1/members`, { headers, signal: given.signal }).catch(
        () => 'gone',
      )
      while (simulator.requests.total() === 0) await new Promise(resolve => setImmediate(resolve))
      expect((await ask('/v1/members')).status).toBe(429)
      given.abort()
      expect(await stalled).toBe('gone')
      let status = 429
      while (status === 429) ({ status } = await ask('/v1/members'))
      expect(status).toBe(200)
    },
  ))

test('a request that the client ends during the latency keeps no place in a concurrency limit', async () => {
  const { sleep, ...clock } = systemClock()
  const client = new AbortController()
  const endDuringSleep = (ms: number) => {
    client.abort()
    return sleep(ms)
  }
  const options = { latencyMs: 100, limit: { kind: 'concurrency', max: 1 } } as const
  await withSimulator(
    { ...SMALL, ...options, clock: { ...clock, sleep: endDuringSleep } },
    async (simulator, ask) => {
      await expect(fetch(`${simulator.url}/v1/members`, { signal: client.signal })).rejects.toThrow()
      while (simulator.requests.total() === 0) await new Promise(resolve => setImmediate(resolve))
      let status = 429
      for (let tries = 0; tries < 20 && status === 429; tries++) ({ status } = await ask('/v1/members'))
      expect(status).toBe(200)
    },
  )
})
