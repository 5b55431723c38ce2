import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Job, Lane, Source } from '../../src/engine/context/job.ts'
import { createLanes } from '../../src/engine/scheduler/lanes.ts'
import { runs } from '../support/effort.ts'

const SHARES: Readonly<Record<Lane, number>> = { head: 8, items: 3, history: 3, audit: 2 }
const LANES = Object.keys(SHARES) as Lane[]

const REQUESTS = 400

interface Workload {
  lane: Lane
  /** Work of the lane comes and goes: it has some while the number of the request lies in one of these spans. */
  spans: readonly { from: number; length: number }[]
  /** Sources of the lane that have work. */
  busy: number
  /** Sources of the lane that have none. */
  idle: number
}

const workloads = fc
  .tuple(
    ...LANES.map(lane =>
      fc.record({
        lane: fc.constant(lane),
        spans: fc.array(
          fc.record({ from: fc.nat(REQUESTS), length: fc.integer({ min: 1, max: REQUESTS }) }),
          { maxLength: 3 },
        ),
        busy: fc.integer({ min: 1, max: 6 }),
        idle: fc.nat(4),
      }),
    ),
  )
  .map(all => all as Workload[])

const jobOf = (feed: string): Job => ({
  resource: 'members',
  feed,
  request: { route: '', path: '' },
  expected: undefined,
  answer: () => undefined,
  refused: () => undefined,
  failed: () => undefined,
  over: () => undefined,
})

/** Which feed had each request, `lane number`, at so many requests a second; undefined where none had work. */
function chosenFeeds(workload: readonly Workload[], perSecond: number): (string | undefined)[] {
  let at = 0
  const hasWork = ({ spans }: Workload) => spans.some(({ from, length }) => at >= from && at < from + length)
  const sources = workload.flatMap(one =>
    Array.from({ length: one.busy + one.idle }, (_, number): Source => {
      const feed = `${one.lane} ${number}`
      return {
        resource: 'members',
        feed,
        route: '/v1/members',
        lane: one.lane,
        next: () => (number < one.busy && hasWork(one) ? jobOf(feed) : undefined),
        waitMs: () => 0,
        isBusy: () => false,
      }
    }),
  )
  const lanes = createLanes(sources, {
    commits: () => at,
    elapsed: () => (at * 1000) / perSecond,
    untilMs: () => 0,
  })
  const chosen: (string | undefined)[] = []
  for (; at < REQUESTS; at += 1) chosen.push(lanes.choose()?.job.feed)
  return chosen
}

const laneOf = (feed: string | undefined) => feed?.split(' ')[0]

/** What had no work is asked again after half a second while others have some. */
const noticedAfter = (perSecond: number) => Math.ceil(perSecond / 2) + 1

test('each lane with work gets its share of any consecutive requests, whatever else waits', () => {
  fc.assert(
    fc.property(workloads, fc.integer({ min: 1, max: 100 }), (workload, perSecond) => {
      const chosen = chosenFeeds(workload, perSecond)
      for (const { lane, spans } of workload) {
        for (const { from, length } of spans) {
          const begin = from + noticedAfter(perSecond)
          const end = Math.min(from + length, REQUESTS)
          for (const size of [20, 40, 100]) {
            for (let at = begin; at + size <= end; at += 7) {
              const had = chosen.slice(at, at + size).filter(feed => laneOf(feed) === lane).length
              expect([lane, at, size, had >= (size / 20) * SHARES[lane] - SHARES[lane]]).toEqual([
                lane,
                at,
                size,
                true,
              ])
            }
          }
        }
      }
    }),
    { numRuns: runs(300) },
  )
})

test('each source of a lane with work has its turn before another has its second', () => {
  fc.assert(
    fc.property(workloads, workload => {
      const whole = workload.map(one => ({ ...one, spans: [{ from: 0, length: REQUESTS }] }))
      const chosen = chosenFeeds(whole, 25)
      for (const { lane, busy } of whole) {
        const turns = chosen.filter(feed => laneOf(feed) === lane)
        for (let at = 0; at + busy <= turns.length; at += 1)
          expect(new Set(turns.slice(at, at + busy)).size).toBe(busy)
      }
    }),
    { numRuns: runs(100) },
  )
})
