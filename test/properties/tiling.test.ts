import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isoInstant } from '../../src/base/clock.ts'
import { createLog } from '../../src/base/log.ts'
import { type DeclaredFeed, feedNamed } from '../../src/catalog/feeds.ts'
import type { TimelineFeed } from '../../src/declare/resource.ts'
import { createContext } from '../../src/engine/context/context.ts'
import { growingBackoff } from '../../src/engine/context/feed-waits.ts'
import { auditInterval } from '../../src/engine/context/intervals.ts'
import { byTime } from '../../src/engine/due/by-time.ts'
import { endPassOf } from '../../src/engine/modes/pass.ts'
import { tileByAge } from '../../src/engine/modes/timeline/tiling.ts'
import { addFirstSegment } from '../../src/engine/modes/timeline/timeline.ts'
import type { Segment } from '../../src/store/sync/segments.ts'
import { virtualClock } from '../api/virtual-clock.ts'
import { temporaryStore } from '../store/temporary-store.ts'
import { runs } from '../support/effort.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
const START = Date.parse('2026-01-01T00:00:00.000Z')
const POLL_MS = MINUTE
const FEED = 'activities.list'

type Step =
  | { kind: 'wait'; ms: number }
  /** This many items become visible at this age. */
  | { kind: 'publish'; rows: number; ageMs: number }
  /** Everything that is due is listed, but for those whose bit is set, which fail. */
  | { kind: 'list'; failing: number }

const age = fc.oneof(
  fc.constant(0),
  fc.integer({ min: 0, max: 3600_000 }),
  fc.integer({ min: 0, max: 900 * DAY }),
)
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constant('wait' as const),
    ms: fc.oneof(fc.integer({ min: 1000, max: 600_000 }), fc.integer({ min: DAY / 24, max: 2 * DAY })),
  }),
  fc.record({ kind: fc.constant('publish' as const), rows: fc.integer({ min: 1, max: 80 }), ageMs: age }),
  fc.record({ kind: fc.constant('list' as const), failing: fc.oneof(fc.constant(0), fc.nat(255)) }),
)

function declaredList(): DeclaredFeed<TimelineFeed> {
  const { feed, ...named } = feedNamed(FEED)
  if (feed.mode !== 'timeline') throw new Error('activities are no timeline any more')
  return { ...named, feed }
}

/** Instants of which it is known for sure when each was last listed. */
const PROBES = [0, MINUTE, 30 * MINUTE, DAY, 3 * DAY, 20 * DAY, 100 * DAY, 500 * DAY].map(before =>
  isoInstant(START - before),
)

const covers = ({ from, to }: Segment, at: string) =>
  (from === null || from <= at) && (to === null || at < to)

describe('the segments of the daemon', () => {
  test('the segments stay few, without gap or overlap, and never claim a later listing than they had', async () => {
    const store = temporaryStore()
    const log = await createLog({ level: 'fatal' })
    const list = declaredList()
    let rows = 0
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), steps => {
        let now = START
        const clock = { ...virtualClock(START), now: () => now, elapsed: () => now - START }
        const context = createContext({
          store,
          clock,
          log,
          options: { since: null, intervalScale: 1, accessLogEndParameter: 'to', words: true },
          backoffs: growingBackoff({
            clock,
            random: () => 1,
            unavailableMs: DAY,
            refusedMs: DAY,
          }),
          createSchedule: made => byTime(made, { pollMs: POLL_MS }),
          isFinished: () => true,
        })
        const known = new Map<string, number>()
        const insert = store.prepare(
          'INSERT INTO activities (id, occurred_at, _first_seen_at, _synced_at) VALUES (?, ?, ?, ?)',
        )
        store.db.exec('BEGIN')
        try {
          addFirstSegment(context, FEED)
          for (const change of steps) {
            if (change.kind === 'wait') now += change.ms
            if (change.kind === 'publish') {
              for (let row = 0; row < change.rows; row += 1) {
                rows += 1
                insert.run(`a${rows}`, isoInstant(now - change.ageMs - row), isoInstant(now), isoInstant(now))
              }
            }
            if (change.kind === 'list') {
              const due = store.segments
                .of(FEED, '')
                .filter(segment => context.schedule.waitMs(list, segment) === 0)
              for (const segment of due.filter((_, index) => ((change.failing >> index) & 1) === 0)) {
                for (const at of PROBES) if (covers(segment, at)) known.set(at, now)
                endPassOf(store.segments, { ...segment, passStartedAt: isoInstant(now), passRound: 1 })
              }
              tileByAge(context, list, new Set())
            }
            const segments = store.segments.of(FEED, '')
            expect(segments[0]?.to).toBe(null)
            expect(segments.at(-1)?.from).toBe(null)
            expect(segments.slice(1).map(({ to }) => to)).toEqual(
              segments.slice(0, -1).map(({ from }) => from),
            )
            expect(segments.length).toBeLessThan(40)
            for (const at of PROBES) {
              const claimed = segments.find(segment => covers(segment, at))?.listedAt
              if (claimed) expect(Date.parse(claimed)).toBeLessThanOrEqual(known.get(at) ?? 0)
            }
          }
        } finally {
          store.db.exec('ROLLBACK')
        }
      }),
      { numRuns: runs(300) },
    )
  })

  test('the segments after a complete listing span at most six times the age of their newest end', async () => {
    const store = temporaryStore()
    const log = await createLog({ level: 'fatal' })
    const list = declaredList()
    const clock = virtualClock(START)
    const context = createContext({
      store,
      clock,
      log,
      options: { since: null, intervalScale: 1, accessLogEndParameter: 'to', words: true },
      backoffs: growingBackoff({
        clock,
        random: () => 1,
        unavailableMs: DAY,
        refusedMs: DAY,
      }),
      createSchedule: made => byTime(made, { pollMs: POLL_MS }),
      isFinished: () => true,
    })
    const insert = store.prepare(
      'INSERT INTO activities (id, occurred_at, _first_seen_at, _synced_at) VALUES (?, ?, ?, ?)',
    )
    for (let row = 0; row < 200; row += 1) {
      insert.run(`a${row}`, isoInstant(START - row * 10_000), isoInstant(START), isoInstant(START))
    }
    addFirstSegment(context, FEED)
    const [whole] = store.segments.of(FEED, '')
    if (!whole) throw new Error('there is no segment')
    endPassOf(store.segments, { ...whole, passStartedAt: isoInstant(START), passRound: 1 })
    tileByAge(context, list, new Set())
    const segments = store.segments.of(FEED, '')
    expect(segments[0]?.from).toBe(isoInstant(START - 50 * 10_000))
    for (const { from, to } of segments.slice(1)) {
      const newest = Math.max(START - Date.parse(to ?? ''), 10 * MINUTE)
      const oldest = from === null ? Number.POSITIVE_INFINITY : START - Date.parse(from)
      expect(oldest <= 6 * newest || auditInterval(newest) === auditInterval(365 * DAY)).toBe(true)
    }
  })
})
