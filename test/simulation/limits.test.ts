import { expect, test } from 'vitest'
import type { LimitModel } from '../../src/simulator/faults/limits.ts'
import { type LimitCase, limitCaseOf } from './limit-cases.ts'
import { figuresOf, requestsLearning } from './limited.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND

const limited = (limit: LimitModel, more: Partial<LimitCase> = {}): LimitCase => ({
  seed: 1,
  limit,
  changes: [],
  faults: [],
  answerMs: 100,
  goneMs: 0,
  startMs: 10 * SECOND,
  forMs: 3 * MINUTE,
  ...more,
})

const BUCKET = { kind: 'token-bucket', rate: 5, burst: 20 } as const
const WINDOW = { kind: 'sliding-window', count: 30, windowMs: 6000 } as const
const NO_HINT = { ...BUCKET, hint: 'none' } as const
const MINUTES = { startMs: MINUTE, forMs: 4 * MINUTE }
const CLOSED = { kind: 'fixed-window', count: 0, windowMs: 30_000, hint: 'none' } as const

/** What holds today: shares of what a client that knows the limit uses, and of refused requests. */
const HOLDS: readonly (readonly [
  name: string,
  limited: LimitCase,
  holds: { used: number; usedLater: number; refused: number },
])[] = [
  ['5 a second, in bursts of 20', limited(BUCKET), { used: 0.95, usedLater: 0.95, refused: 0.01 }],
  [
    '1.8 a second without a burst',
    limited({ kind: 'token-bucket', rate: 1.8, burst: 1 }, { answerMs: 33 }),
    { used: 0.95, usedLater: 0.95, refused: 0.01 },
  ],
  [
    '30 in each 6 s, with a date',
    limited({ ...WINDOW, kind: 'fixed-window', hint: 'retry-after-date' }),
    { used: 0.9, usedLater: 0.9, refused: 0.01 },
  ],
  ['30 in any 6 s', limited(WINDOW), { used: 0.9, usedLater: 0.9, refused: 0.01 }],
  [
    '120 in any 2 s',
    limited({ ...WINDOW, count: 120, windowMs: 2000 }, { answerMs: 15, forMs: 2 * MINUTE }),
    { used: 0.9, usedLater: 0.9, refused: 0.01 },
  ],
  [
    '20 in any 4 s, without a hint',
    limited({ ...WINDOW, count: 20, windowMs: 4000, hint: 'none' }, { forMs: 2 * MINUTE }),
    { used: 0.9, usedLater: 0.9, refused: 0.02 },
  ],
  ['1,577 in each 48 minutes', limitCaseOf(68), { used: 0.95, usedLater: 0.95, refused: 0.01 }],
  [
    '40 in each second, with slow answers',
    { ...limitCaseOf(15), forMs: 3 * MINUTE },
    { used: 0.75, usedLater: 0.8, refused: 0.01 },
  ],
  [
    '50 a second, with one refusal in a hundred that has nothing to do with the rate',
    limited(
      { kind: 'token-bucket', rate: 50, burst: 50 },
      {
        faults: [{ kind: 'status', status: 429, probability: 0.01 }],
        startMs: MINUTE,
        forMs: 6 * MINUTE,
      },
    ),
    { used: 0.7, usedLater: 0.75, refused: 0.01 },
  ],
  [
    '300 in each minute',
    limited({ ...WINDOW, kind: 'fixed-window', count: 300, windowMs: MINUTE }, MINUTES),
    { used: 0.95, usedLater: 0.95, refused: 0.02 },
  ],
  [
    '300 in any minute, with the time of its reset',
    limited({ ...WINDOW, count: 300, windowMs: MINUTE, hint: 'none', rateHeaders: true }, MINUTES),
    { used: 0.95, usedLater: 0.95, refused: 0.02 },
  ],
  [
    'two at once',
    limited({ kind: 'concurrency', max: 2 }, { answerMs: 400, startMs: MINUTE }),
    { used: 0.8, usedLater: 0.95, refused: 0.01 },
  ],
  [
    '5 a second, half of them for another client in the third minute',
    limited({ ...BUCKET, other: { perSecond: 2.5, fromMs: 2 * MINUTE, untilMs: 3 * MINUTE } }),
    { used: 0.9, usedLater: 0.9, refused: 0.02 },
  ],
  [
    '5 a second that halves',
    limited(NO_HINT, { changes: [{ atMs: 2 * MINUTE, limit: { ...NO_HINT, rate: 2.5 } }] }),
    { used: 0.9, usedLater: 0.9, refused: 0.02 },
  ],
  [
    '5 a second that doubles',
    limited(BUCKET, { changes: [{ atMs: 2 * MINUTE, limit: { ...BUCKET, rate: 10 } }] }),
    { used: 0.85, usedLater: 0.85, refused: 0.01 },
  ],
  [
    '5 a second that pauses for half a minute',
    limited(NO_HINT, {
      changes: [
        { atMs: 2 * MINUTE, limit: CLOSED },
        { atMs: 2.5 * MINUTE, limit: NO_HINT },
      ],
    }),
    { used: 0.9, usedLater: 0.9, refused: 0.03 },
  ],
]

test.each(HOLDS)(
  'a limit of %s is used with few refusals',
  async (_, limit, { used, usedLater, refused }) => {
    const figures = await figuresOf(limit)
    expect(figures.used).toBeGreaterThan(used)
    expect(figures.usedLater).toBeGreaterThan(usedLater)
    expect(figures.refused).toBeLessThan(refused)
  },
)

test('the same case has the same requests at the same times', async () => {
  const limit = limited(NO_HINT, { forMs: 2 * MINUTE })
  const one = await requestsLearning(limit)
  expect(await requestsLearning(limit)).toEqual(one)
  expect(one.accepted.length).toBeGreaterThan(500)
})
