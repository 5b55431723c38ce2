import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createSegmentTurns } from '../../src/engine/due/overload-order.ts'

/** A part of a list. Each request takes one unit of time. */
interface Made {
  /** How long after it was read it falls due again. */
  interval: number
  pages: number
  /** No request for it is ever answered: it is put off for a while that grows. */
  isBad: boolean
  wasListed: boolean
}

const MOST = { interval: 12, pages: 3, putOff: 30 }

const part: fc.Arbitrary<Made> = fc.record({
  interval: fc.integer({ min: 1, max: MOST.interval }),
  pages: fc.integer({ min: 1, max: MOST.pages }),
  isBad: fc.boolean(),
  wasListed: fc.boolean(),
})

interface Part extends Made {
  number: number
  listedAt: string | null
  attempts: number
  readAt: number
  dueAt: number
  pagesLeft: number
  /** Since when it is due and has had no request. */
  waitsSince: number
}

/** Which part had each request, and how long any has waited at most. */
function read(made: readonly Made[], requests: number): { chosen: number[]; longestWait: number } {
  const parts = made.map(
    (each, number): Part => ({
      ...each,
      number,
      listedAt: each.wasListed ? 'once' : null,
      attempts: 0,
      readAt: -MOST.interval,
      dueAt: 0,
      pagesLeft: each.pages,
      waitsSince: 0,
    }),
  )
  let now = 0
  const choose = createSegmentTurns<Part>(({ readAt, interval }) => (now - readAt - interval) / interval)
  const chosen: number[] = []
  let longestWait = 0
  for (; now < requests; now += 1) {
    const due = parts.filter(({ dueAt }) => dueAt <= now)
    for (const { waitsSince } of due) longestWait = Math.max(longestWait, now - waitsSince)
    const next = choose(due)
    if (!next) continue
    chosen.push(next.number)
    answer(next, now)
  }
  return { chosen, longestWait }
}

function answer(one: Part, now: number): void {
  if (one.isBad) {
    one.attempts += 1
    one.dueAt = now + Math.min(one.attempts, MOST.putOff)
  } else if (one.pagesLeft > 1) {
    one.pagesLeft -= 1
  } else {
    Object.assign(one, { listedAt: 'again', readAt: now, dueAt: now + one.interval, pagesLeft: one.pages })
  }
  one.waitsSince = Math.max(now, one.dueAt)
}

test('every part has its turn, however much is due and whatever fails', () => {
  fc.assert(
    fc.property(fc.array(part, { minLength: 1, maxLength: 10 }), parts => {
      const pages = parts.reduce((sum, each) => sum + each.pages, 0)
      // Each kind has a third of all requests, and the rarest part waits for as many intervals as the most frequent.
      expect(read(parts, 2000).longestWait).toBeLessThan(3 * pages * (MOST.interval + 1))
    }),
  )
})

test('parts with the same interval are read equally often', () => {
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 20 }), count => {
      const each = { interval: 1, pages: 1, isBad: false, wasListed: true }
      const parts = Array.from({ length: count }, () => each)
      const { chosen } = read(parts, 10 * count)
      for (let from = 0; from < chosen.length; from += count)
        expect(new Set(chosen.slice(from, from + count)).size).toBe(count)
    }),
  )
})

test('an overload stretches all intervals alike', () => {
  const parts = [1, 2, 4, 8].map(interval => ({ interval, pages: 2, isBad: false, wasListed: true }))
  const { chosen } = read(parts, 1500)
  const times = parts.map((_, number) => chosen.filter(each => each === number).length)
  expect(times.map(count => Math.round(count / 100))).toEqual([8, 4, 2, 1])
})

test('first reads keep their order, and the parts with the fewest failures go first', () => {
  const due = [
    { name: 'newest', listedAt: null, attempts: 0 },
    { name: 'older', listedAt: null, attempts: 0 },
    { name: 'failed twice', listedAt: null, attempts: 2 },
    { name: 'failed once', listedAt: 'once', attempts: 1 },
    { name: 'listed', listedAt: 'once', attempts: 0 },
  ]
  const choose = createSegmentTurns<(typeof due)[number]>(() => 0)
  const order: string[] = []
  for (let left = due; left.length > 0; ) {
    const next = choose(left)
    order.push(next?.name ?? '')
    left = left.filter(each => each !== next)
  }
  expect(order).toEqual(['newest', 'listed', 'failed once', 'older', 'failed twice'])
})
