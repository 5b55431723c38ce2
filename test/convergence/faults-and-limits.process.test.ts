import { afterEach, describe, expect, test } from 'vitest'
import type { LimitModel } from '../../src/simulator/faults/limits.ts'
import { startTrial, TINY, type Trial } from '../support/trial.ts'

let trial: Trial

afterEach(() => trial.close())

test('a backfill in which 5 % of the requests fail in many ways equals the truth', async () => {
  trial = await startTrial({
    ...TINY,
    faults: [
      { kind: 'status', status: 500, probability: 0.015 },
      { kind: 'status', status: 502, probability: 0.01 },
      { kind: 'reset', probability: 0.01 },
      { kind: 'reset-in-body', probability: 0.005 },
      { kind: 'truncate', probability: 0.005 },
      { kind: 'html', probability: 0.005 },
    ],
  })
  expect(await trial.backfill()).toMatchObject({ status: 0 })
  const { counts } = await trial.simulator.requests()
  expect(counts.filter(({ status }) => status >= 500 || status === 0)).not.toEqual([])
  expect(await trial.differences()).toEqual([])
})

test('a backfill whose answers overtake each other equals the truth', async () => {
  trial = await startTrial({ faults: [{ kind: 'late', probability: 0.3, delayMs: 30 }] })
  expect(await trial.backfill()).toMatchObject({ status: 0 })
  expect(await trial.differences()).toEqual([])
})

const LIMITS: [string, LimitModel][] = [
  ['a bucket of tokens', { kind: 'token-bucket', rate: 60, burst: 10 }],
  ['a fixed window', { kind: 'fixed-window', count: 30, windowMs: 500, hint: 'none' }],
  ['a sliding window', { kind: 'sliding-window', count: 30, windowMs: 500, rateHeaders: true }],
  ['requests at once', { kind: 'concurrency', max: 2 }],
]

describe('a backfill against a limited API', () => {
  test.each(LIMITS)('a backfill under a limit by %s equals the truth', async (_, limit) => {
    trial = await startTrial({ ...TINY, limit })
    expect(await trial.backfill('--only', 'message_bodies')).toMatchObject({ status: 0 })
    expect(
      await trial.differences({ tables: ['messages', 'message_copies', 'message_participants'] }),
    ).toEqual([])
  })
})
