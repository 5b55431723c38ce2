import { describe, expect, it } from 'vitest'
import type { RetryCause } from '../../src/api/classify.ts'
import { retryDecision } from '../../src/api/retry.ts'

const longest = () => 1

describe('a failed request', () => {
  it.each<[RetryCause, number[]]>([
    ['server', [500, 1000, 2000, 4000, 8000]],
    ['timeout', [500, 1000, 2000, 4000, 8000]],
    ['transport', [500, 1000, 2000, 4000, 8000]],
    ['garbled', [500, 1000, 2000, 4000, 8000]],
    ['unreachable', [500, 1000, 2000, 4000, 8000, 10_000, 10_000]],
    ['throttled', [0, 0, 0, 0, 0, 0, 0]],
  ])('a request that failed with cause %s waits at most %j ms', (cause, delays) => {
    const decided = delays.map((_, index) => retryDecision({ cause, attempt: index + 1 }, longest))
    expect(decided).toEqual(delays.map(delayMs => ({ retry: true, delayMs })))
  })

  it.each<RetryCause>(['server', 'timeout', 'transport', 'garbled'])(
    'a request that failed with cause %s is tried 6 times',
    cause => {
      expect(retryDecision({ cause, attempt: 5 }, longest)).toMatchObject({ retry: true })
      expect(retryDecision({ cause, attempt: 6 }, longest)).toEqual({ retry: false })
    },
  )

  it.each<RetryCause>(['throttled', 'unreachable'])(
    'a request that failed with cause %s is retried indefinitely',
    cause => {
      expect(retryDecision({ cause, attempt: 100_000 }, longest)).toMatchObject({ retry: true })
    },
  )

  it('the wait is between nothing and the longest delay', () => {
    expect(retryDecision({ cause: 'server', attempt: 3 }, () => 0)).toEqual({ retry: true, delayMs: 0 })
    expect(retryDecision({ cause: 'server', attempt: 3 }, () => 0.5)).toEqual({ retry: true, delayMs: 1000 })
  })

  it.each([
    ['a short wait that the API asked for is kept', 1, 20_000, 20_000],
    ['after a long one, a first trial follows after 5 s', 1, 3_600_000, 5000],
    ['after a long one, further trials follow after 20 s', 2, 3_600_000, 20_000],
  ])('%s', (_, attempt, waitMs, delayMs) => {
    expect(retryDecision({ cause: 'server', attempt, waitMs }, () => 0)).toEqual({ retry: true, delayMs })
  })

  it('the governor decides the wait after a 429', () => {
    expect(retryDecision({ cause: 'throttled', attempt: 1, waitMs: 60_000 }, longest)).toEqual({
      retry: true,
      delayMs: 0,
    })
  })
})
