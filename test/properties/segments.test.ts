import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isoInstant, systemClock } from '../../src/base/clock.ts'
import { createLog, type Log } from '../../src/base/log.ts'
import { createContext, type EngineContext } from '../../src/engine/context/context.ts'
import { backoffForTheRun } from '../../src/engine/context/feed-waits.ts'
import { byRounds } from '../../src/engine/due/by-rounds.ts'
import { endPassOf, recoverFromDeadCursor, splitPass } from '../../src/engine/modes/pass.ts'
import { addFirstSegment } from '../../src/engine/modes/timeline/timeline.ts'
import type { Segment } from '../../src/store/sync/segments.ts'
import { openAt, type TemporaryStore, withShortcuts } from '../store/temporary-store.ts'
import { runs } from '../support/effort.ts'

/** The time axis as instants 1 to 19 with an open end on both sides; a stretch lies between two neighbours. */
const END = 20
const START = Date.parse('2026-01-01T00:00:00.000Z')
const at = (instant: number) => isoInstant(START + instant * 3_600_000)
const instantOf = (text: string) => (Date.parse(text) - START) / 3_600_000
const lower = ({ from }: Segment) => (from === null ? 0 : instantOf(from))
const upper = ({ to }: Segment) => (to === null ? END : instantOf(to))

const FEED = 'messages.list'

type Step =
  /** A page that moves a pass down by a share of the rest. */
  | { kind: 'page'; which: number; percent: number }
  | { kind: 'setback'; which: number }
  | { kind: 'end'; which: number }
  /** The rest of a pass, except a share of it, goes to another segment. */
  | { kind: 'leave'; which: number; percent: number }
  | { kind: 'since'; instant: number }

const which = fc.nat(20)
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant('page' as const), which, percent: fc.integer({ min: 0, max: 100 }) }),
  fc.record({ kind: fc.constant('setback' as const), which }),
  fc.record({ kind: fc.constant('end' as const), which }),
  fc.record({ kind: fc.constant('leave' as const), which, percent: fc.integer({ min: 0, max: 100 }) }),
  fc.record({ kind: fc.constant('since' as const), instant: fc.integer({ min: 1, max: END - 1 }) }),
)

let folder: string
let store: TemporaryStore
let log: Log

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'parley-segments-'))
  const path = join(folder, 'parley.db')
  store = withShortcuts(openAt(path), folder, path)
  log = await createLog({ level: 'fatal' })
})

afterAll(() => {
  store.close()
  rmSync(folder, { recursive: true })
})

function contextWith(since: string | null): EngineContext {
  const options = { since, intervalScale: 1, accessLogEndParameter: 'to', words: true }
  return createContext({
    store,
    clock: systemClock(),
    log,
    options,
    backoffs: backoffForTheRun(),
    createSchedule: byRounds,
    isFinished: () => true,
  })
}

const segments = (): Segment[] =>
  store.segments.of(FEED, '').sort((one, other) => upper(other) - upper(one) || lower(other) - lower(one))

function take(change: Step, isListed: boolean[]): void {
  if (change.kind === 'since') {
    for (const { edgeAt, to } of segments()) {
      const spansIt = segments().some(
        each => each.edgeAt === edgeAt && lower(each) < change.instant && upper(each) > change.instant,
      )
      if (edgeAt !== null && spansIt)
        isListed.fill(true, instantOf(edgeAt), to === null ? END : instantOf(to))
    }
    addFirstSegment(contextWith(at(change.instant)), FEED)
    return
  }
  const all = segments()
  const segment = all[change.which % all.length]
  if (!segment) throw new Error('no segment')
  if (change.kind === 'leave') {
    if (segment.edgeAt === null) return
    const edge = instantOf(segment.edgeAt)
    const instant = Math.round(edge - ((edge - lower(segment)) * change.percent) / 100)
    if (instant > lower(segment) && instant < edge) splitPass(store.segments, segment, at(instant))
    return
  }
  if (change.kind === 'page') {
    const top = segment.edgeAt === null ? upper(segment) : instantOf(segment.edgeAt)
    const edge = Math.max(Math.ceil(top - ((top - lower(segment)) * change.percent) / 100), 1)
    if (edge >= END) return
    store.segments.save({
      ...segment,
      cursor: { cursor: 'x' },
      passStartedAt: at(0),
      passRound: 1,
      pages: segment.pages + 1,
      edgeAt: at(edge),
    })
    return
  }
  const pass = segment.passStartedAt === null ? { ...segment, passStartedAt: at(0), passRound: 1 } : segment
  if (change.kind === 'end') {
    isListed.fill(true, lower(segment), upper(segment))
    endPassOf(store.segments, pass)
    return
  }
  const edge = pass.edgeAt === null ? END : instantOf(pass.edgeAt)
  if (edge < upper(segment) && edge > lower(segment)) isListed.fill(true, edge, upper(segment))
  try {
    recoverFromDeadCursor(store.segments, pass, 'refused')
  } catch {
    // Refused again without having got anywhere: nothing is stored.
  }
}

function expectTiled(): void {
  const all = segments()
  expect(all[0]?.to).toBe(null)
  expect(all.at(-1)?.from).toBe(null)
  all.slice(1).forEach((segment, index) => {
    expect(segment.to).toBe(all[index]?.from)
  })
}

/** Whether each stretch lies in a segment that was listed. */
function listedStretches(): boolean[] {
  const stretches = new Array<boolean>(END).fill(false)
  for (const segment of segments()) {
    if (segment.listedAt !== null) stretches.fill(true, lower(segment), upper(segment))
  }
  return stretches
}

describe('the segments of a timeline', () => {
  test('the segments tile the axis without gap or overlap after every step, and exactly the listed ranges count as listed', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 15 }), steps => {
        store.db.exec('BEGIN')
        try {
          addFirstSegment(contextWith(null), FEED)
          const isListed = new Array<boolean>(END).fill(false)
          expectTiled()
          for (const change of steps) {
            take(change, isListed)
            expectTiled()
            expect(listedStretches()).toEqual(isListed)
          }
        } finally {
          store.db.exec('ROLLBACK')
        }
      }),
      { numRuns: runs(500) },
    )
  })
})
