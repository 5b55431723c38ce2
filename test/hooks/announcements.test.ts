import { describe, expect, test } from 'vitest'
import type { HealthProblem } from '../../src/health/problems.ts'
import {
  afterCall,
  announcedNotes,
  callsAfter,
  type HookEvent,
  type WatchedProblem,
  withStored,
} from '../../src/hooks/announcements.ts'

const NOW = Date.parse('2026-03-04T12:00:00.000Z')
const SINCE = '2026-03-04T11:59:50.000Z'
const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

const problem = (id: string, more: Partial<HealthProblem> = {}): HealthProblem => ({
  id,
  kind: 'act',
  what: `What ${id} is`,
  detail: null,
  todo: `Mend ${id}.`,
  since: SINCE,
  ...more,
})

const watched = (looks: number, more: Partial<WatchedProblem> = {}): WatchedProblem => ({
  id: 'disk',
  kind: 'act',
  what: 'What disk is',
  detail: null,
  todo: 'Mend disk.',
  since: SINCE,
  looks,
  ...more,
})

const HEARD = { called: { at: NOW - HOUR_MS, isHeard: true } }
const A_DAY_AGO = { called: { at: NOW - 24 * HOUR_MS, isHeard: true } }
const UNHEARD = { called: { at: NOW - HOUR_MS, isHeard: false } }
const calling = (event: HookEvent) => ({ calling: { event, at: NOW - 1000 } })
const failed = (event: HookEvent, inMs: number, tries = 1) => ({
  failed: { event, tries, retryAt: NOW + inMs },
})

const look = (problems: readonly HealthProblem[], isPartial = false) => ({ at: NOW, problems, isPartial })
const limits = { waitMs: 15 * MINUTE_MS, room: 5 }

/** The calls and the problems that are watched after a look, as one line. */
function lineOf({ calls, next }: ReturnType<typeof callsAfter>): string {
  const begun = calls.map(({ event, problem: { id } }) => `${event} ${id}`).join(', ')
  const kept = next.map(({ id, looks }) => `${id} ${looks}`).join(', ')
  return `${begun || 'no call'}; ${kept || 'nothing watched'}`
}

const ACT = [problem('disk')]
const WARN = [problem('disk', { kind: 'warn' })]
const YOUNG = [problem('disk', { kind: 'wait' })]
const OLD = [problem('disk', { kind: 'wait', since: '2026-03-04T11:45:00.000Z' })]

describe('the calls after a look', () => {
  test.each<[string, WatchedProblem[], HealthProblem[], string]>([
    ['a problem that is seen for the first time calls no one', [], ACT, 'no call; disk 1'],
    ['a problem that a second look sees is announced', [watched(1)], ACT, 'problem disk; disk 2'],
    ['a problem that the last look missed needs two looks again', [watched(-1)], ACT, 'no call; disk 1'],
    ['a problem that needs a look is announced without a wait', [watched(1)], WARN, 'problem disk; disk 2'],
    ['a young problem that parley waits out calls no one', [watched(2)], YOUNG, 'no call; disk 2'],
    ['an old problem that parley waits out is announced', [watched(2)], OLD, 'problem disk; disk 2'],
    ['an old problem that parley waits out needs two looks too', [], OLD, 'no call; disk 1'],
    ['a blip is forgotten after two looks without it', [watched(-1)], [], 'no call; nothing watched'],
    ['a call under way is not made twice', [watched(2, calling('problem'))], ACT, 'no call; disk 2'],
    ['an announced problem that lasts calls no one', [watched(0, HEARD)], ACT, 'no call; disk 1'],
    ['an announced problem that one look misses is not over', [watched(2, HEARD)], [], 'no call; disk -1'],
    ['an announced problem that two looks miss is over', [watched(-1, HEARD)], [], 'recovered disk; disk -2'],
    [
      'a problem is announced again when parley no longer waits it out',
      [watched(2, { ...HEARD, kind: 'wait' })],
      ACT,
      'problem disk; disk 2',
    ],
    ['a problem is announced again after a day', [watched(2, A_DAY_AGO)], ACT, 'problem disk; disk 2'],
    [
      'a problem that parley waits out is not announced again after a day',
      [watched(2, { ...A_DAY_AGO, kind: 'wait' })],
      OLD,
      'no call; disk 2',
    ],
    ['a call that was given up is not made again', [watched(2, UNHEARD)], ACT, 'no call; disk 2'],
    [
      'a problem of which no one has heard is forgotten when it is over',
      [watched(-1, UNHEARD)],
      [],
      'no call; nothing watched',
    ],
    ['a call that failed waits', [watched(2, failed('problem', 1))], ACT, 'no call; disk 2'],
    [
      'a call that failed is made after its wait',
      [watched(2, failed('problem', 0))],
      ACT,
      'problem disk; disk 2',
    ],
    [
      'a call that failed is not made when its problem is over',
      [watched(-1, failed('problem', 0))],
      [],
      'no call; nothing watched',
    ],
    [
      'a call that failed does not put off the one about the recovery',
      [watched(-1, { ...HEARD, ...failed('problem', MINUTE_MS) })],
      [],
      'recovered disk; disk -2',
    ],
    [
      'a call about a recovery that failed is not made while the problem is back',
      [watched(1, { ...HEARD, ...failed('recovered', 0) })],
      ACT,
      'no call; disk 2',
    ],
    [
      'a problem that is over while its call is under way stays watched',
      [watched(-1, calling('problem'))],
      [],
      'no call; disk -2',
    ],
  ])('%s', (_, before, problems, expected) => {
    expect(lineOf(callsAfter(before, look(problems), limits))).toBe(expected)
  })

  test('a look without the database counts nothing as gone, and sees the problem of the database', () => {
    const after = callsAfter([watched(2, HEARD)], look([problem('database')], true), limits)
    expect(lineOf(after)).toBe('no call; disk 2, database 1')
  })

  test('a problem that lasts, though another one explains it, is not over, and calls no one', () => {
    const explained = { ...look([problem('api')]), lasting: ['disk'] }
    expect(lineOf(callsAfter([watched(-1, HEARD)], explained, limits))).toBe('no call; disk -1, api 1')
    expect(lineOf(callsAfter([watched(1)], explained, limits))).toBe('no call; disk 1, api 1')
  })

  test('recoveries come first, then the most serious problems, as many as may begin', () => {
    const problems = ['a', 'b', 'c'].map(id => problem(id))
    const before = ['c', 'b', 'a'].map(id => ({ ...watched(1), id })).concat(watched(-1, HEARD))
    const begun = (room: number, from = before) => callsAfter(from, look(problems), { ...limits, room })
    const first = begun(3)
    expect(first.calls.map(({ problem: { id } }) => id)).toEqual(['disk', 'a', 'b'])
    expect(begun(1, [...first.next]).calls.map(({ problem: { id } }) => id)).toEqual(['c'])
    expect(begun(0).calls).toEqual([])
  })

  test('a problem that a report names twice is one problem', () => {
    const first = callsAfter([], look([...ACT, ...ACT]), limits)
    expect(first.next).toHaveLength(1)
    expect(callsAfter(first.next, look([...ACT, ...ACT]), limits).calls).toHaveLength(1)
  })

  test('a problem that states no instant lasts from the first look that saw it', () => {
    const timeless = [problem('disk', { kind: 'wait', since: null })]
    const first = callsAfter([], look(timeless), limits)
    expect(first.next[0]?.since).toBe('2026-03-04T12:00:00.000Z')
    const later = (ms: number) => callsAfter(first.next, { ...look(timeless), at: NOW + ms }, limits).calls
    expect(later(limits.waitMs - 1)).toEqual([])
    expect(later(limits.waitMs)).toHaveLength(1)
  })

  test('a problem that is announced again keeps its instant and has the text that the look saw', () => {
    const later = [problem('disk', { what: 'Something else', since: '2026-03-04T11:59:59.000Z' })]
    const [again] = callsAfter([watched(2, { ...HEARD, kind: 'wait' })], look(later), limits).calls
    expect(again?.problem).toMatchObject({ kind: 'act', what: 'Something else', since: SINCE })
  })

  const AHEAD = '2027-03-04T12:00:00.000Z'
  const ahead = Date.parse(AHEAD)
  test.each<[string, HealthProblem[], WatchedProblem, waitMs: number]>([
    [
      'a problem that needs a person is announced again after a day',
      ACT,
      watched(2, { since: AHEAD, called: { at: ahead, isHeard: true } }),
      24 * HOUR_MS,
    ],
    [
      'a call that failed is made again after its longest wait',
      ACT,
      watched(2, { since: AHEAD, failed: { event: 'problem', tries: 1, retryAt: ahead + MINUTE_MS } }),
      8 * MINUTE_MS,
    ],
    [
      'a problem that parley waits out and that states no instant is announced after the wait',
      [problem('disk', { kind: 'wait', since: null })],
      watched(2, { since: AHEAD }),
      limits.waitMs,
    ],
    [
      'a problem that parley waits out and that states a later instant is announced after the wait',
      [problem('disk', { kind: 'wait', since: AHEAD })],
      watched(2, { since: AHEAD }),
      limits.waitMs,
    ],
  ])('after the clock was set back by a year, %s', (_, problems, before, waitMs) => {
    let after = callsAfter([before], look(problems), limits)
    for (let ms = 0; ms < waitMs; ms += MINUTE_MS) {
      expect(after.calls).toEqual([])
      after = callsAfter(after.next, { ...look(problems), at: NOW + ms + MINUTE_MS }, limits)
    }
    expect(after.calls).toHaveLength(1)
  })

  test('a problem that states an instant after the look lasts from the look', () => {
    const { next } = callsAfter([], look([problem('disk', { since: AHEAD })]), limits)
    expect(next[0]?.since).toBe('2026-03-04T12:00:00.000Z')
  })

  test('an announced problem keeps the instant and the text of its announcement', () => {
    const later = [problem('disk', { what: 'Something else', since: '2026-03-04T11:59:59.000Z' })]
    const [kept] = callsAfter([watched(2, HEARD)], look(later), limits).next
    expect(kept).toMatchObject({ what: 'What disk is', since: SINCE })
  })
})

describe('the problem after a call', () => {
  const ended = (before: WatchedProblem, isHeard: boolean) =>
    afterCall({ problem: before, isHeard, now: NOW, random: () => 0 })

  test.each<[string, Partial<WatchedProblem>, isHeard: boolean, next: object | undefined]>([
    [
      'a call that succeeds is heard',
      calling('problem'),
      true,
      { called: { at: NOW - 1000, isHeard: true } },
    ],
    ['a call that fails is made again', calling('problem'), false, failed('problem', 48_000)],
    [
      'the wait doubles with each failure',
      { ...calling('problem'), ...failed('problem', 0, 3) },
      false,
      failed('problem', 192_000 * 2, 4),
    ],
    [
      'the fifth failure is the last',
      { ...calling('problem'), ...failed('problem', 0, 4) },
      false,
      { called: { at: NOW - 1000, isHeard: false } },
    ],
    [
      'a problem of which someone heard stays heard when another call is given up',
      { ...calling('problem'), ...failed('problem', 0, 4), ...HEARD },
      false,
      { called: { at: NOW - 1000, isHeard: true } },
    ],
    [
      'failures of a call about the problem do not count for one about its recovery',
      { ...calling('recovered'), ...failed('problem', 0, 4), ...HEARD },
      false,
      { ...HEARD, ...failed('recovered', 48_000) },
    ],
    ['a recovery that is heard is forgotten', { ...calling('recovered'), ...HEARD }, true, undefined],
    [
      'a recovery that is given up is forgotten',
      { ...calling('recovered'), ...failed('recovered', 0, 4), ...HEARD },
      false,
      undefined,
    ],
  ])('%s', (_, more, isHeard, next) => {
    expect(ended(watched(2, more), isHeard).next).toEqual(next && watched(2, next))
  })

  test('a call that succeeds after its problem is over is followed by one about the recovery', () => {
    const told = ended(watched(-2, calling('problem')), true).next
    expect(callsAfter(told ? [told] : [], look([]), limits).calls).toMatchObject([{ event: 'recovered' }])
  })
})

describe('what is stored', () => {
  const old = { id: 'disk', what: 'What disk is', todo: 'Mend disk.', since: SINCE }
  const note = { ...old, kind: 'act', called_at: '2026-03-04T11:00:00.000Z' } as const

  test('a problem is stored once someone has heard of it', () => {
    const all = [watched(2), watched(2, calling('problem')), watched(2, UNHEARD), watched(2, HEARD)]
    expect(all.map(one => announcedNotes([one]))).toEqual([[], [], [], [note]])
  })

  test('a stored problem is not announced again, and is over when two looks miss it', () => {
    const known = withStored([], [old], NOW)
    const first = callsAfter(known, look(ACT), limits)
    expect(callsAfter(first.next, look(ACT), limits).calls).toEqual([])
    const gone = callsAfter(known, look([]), limits)
    expect(callsAfter(gone.next, look([]), limits).calls).toMatchObject([{ event: 'recovered' }])
  })

  test('a stored problem that this process has seen is announced already, and one that it calls about is not', () => {
    expect(withStored([watched(2)], [note], NOW)).toEqual([watched(0, HEARD)])
    expect(withStored([watched(2, calling('problem'))], [note], NOW)).toEqual([
      watched(2, calling('problem')),
    ])
  })
})
