import { describe, expect, test } from 'vitest'
import type { HealthProblem } from '../../src/health/problems.ts'
import {
  type AnnouncementStage,
  type AnnouncementStep,
  afterDelivery,
  announcedNotes,
  announcementsAfter,
  type DeliveryEnd,
  type WatchedProblem,
  withStored,
} from '../../src/hooks/announcements.ts'

const NOW = Date.parse('2026-03-04T12:00:00.000Z')
const SINCE = '2026-03-04T11:59:50.000Z'
const WAIT_MS = 15 * 60_000

const problem = (id: string, more: Partial<HealthProblem> = {}): HealthProblem => ({
  id,
  kind: 'act',
  what: `What ${id} is`,
  detail: null,
  todo: `Mend ${id}.`,
  since: SINCE,
  ...more,
})

const HOUR_MS = 3_600_000

/** Someone was called about it an hour ago, and heard it, unless it was only seen. */
const watched = (
  stage: AnnouncementStage,
  present: number,
  absent: number,
  more: Partial<WatchedProblem> = {},
): WatchedProblem => ({
  id: 'disk',
  kind: 'act',
  what: 'What disk is',
  detail: null,
  todo: 'Mend disk.',
  since: SINCE,
  stage,
  isHeard: stage === 'called' || stage === 'recovering',
  calledAt: stage === 'seen' ? undefined : NOW - HOUR_MS,
  present,
  absent,
  ...more,
})

const UNHEARD = { isHeard: false }

const look = (problems: readonly HealthProblem[], isPartial = false) => ({ at: NOW, problems, isPartial })

/** The step as one line: what it announces, recovers and withdraws, and the stages and counts after it. */
function lineOf({ announce, recovered, withdraw, next }: AnnouncementStep): string {
  const ids = (of: readonly WatchedProblem[]) => of.map(({ id }) => id).join(' ')
  const rest = next.map(({ id, stage, present, absent }) => `${id} ${stage} ${present}/${absent}`).join(', ')
  return `announce [${ids(announce)}] recovered [${ids(recovered)}] withdraw [${withdraw.join(' ')}] next [${rest}]`
}

const limits = { waitMs: WAIT_MS, room: 5 }
const ACT = [problem('disk')]
const YOUNG = [problem('disk', { kind: 'wait' })]
const OLD = [problem('disk', { kind: 'wait', since: '2026-03-04T11:45:00.000Z' })]

describe('the decision after a look', () => {
  test.each<[string, WatchedProblem[], HealthProblem[], string]>([
    [
      'a problem that is seen for the first time is only remembered',
      [],
      ACT,
      'announce [] recovered [] withdraw [] next [disk seen 1/0]',
    ],
    [
      'a problem that a second look sees is announced',
      [watched('seen', 1, 0)],
      ACT,
      'announce [disk] recovered [] withdraw [] next [disk calling 2/0]',
    ],
    [
      'a problem that the last look missed is not announced by one more look',
      [watched('seen', 0, 1)],
      ACT,
      'announce [] recovered [] withdraw [] next [disk seen 1/0]',
    ],
    [
      'a problem that parley waits out is not announced while it is young',
      [watched('seen', 2, 0)],
      YOUNG,
      'announce [] recovered [] withdraw [] next [disk seen 2/0]',
    ],
    [
      'a problem that parley waits out is announced once it has lasted long enough',
      [watched('seen', 2, 0)],
      OLD,
      'announce [disk] recovered [] withdraw [] next [disk calling 2/0]',
    ],
    [
      'a problem that needs a look is announced without a wait',
      [watched('seen', 1, 0)],
      [problem('disk', { kind: 'warn' })],
      'announce [disk] recovered [] withdraw [] next [disk calling 2/0]',
    ],
    [
      'a problem that needs a look is announced again after a day',
      [watched('called', 2, 0, { kind: 'warn', calledAt: NOW - 24 * HOUR_MS })],
      [problem('disk', { kind: 'warn' })],
      'announce [disk] recovered [] withdraw [] next [disk calling 2/0]',
    ],
    [
      'an old problem that parley waits out needs two looks too',
      [],
      OLD,
      'announce [] recovered [] withdraw [] next [disk seen 1/0]',
    ],
    [
      'a blip is forgotten after two looks without it',
      [watched('seen', 0, 1)],
      [],
      'announce [] recovered [] withdraw [] next []',
    ],
    [
      'a problem is not announced again while its call is tried',
      [watched('calling', 2, 0)],
      ACT,
      'announce [] recovered [] withdraw [] next [disk calling 2/0]',
    ],
    [
      'an announced problem that lasts is not announced again',
      [watched('called', 0, 0)],
      ACT,
      'announce [] recovered [] withdraw [] next [disk called 1/0]',
    ],
    [
      'an announced problem that one look misses has not recovered',
      [watched('called', 2, 0)],
      [],
      'announce [] recovered [] withdraw [] next [disk called 0/1]',
    ],
    [
      'an announced problem that two looks miss has recovered',
      [watched('called', 0, 1)],
      [],
      'announce [] recovered [disk] withdraw [] next [disk recovering 0/2]',
    ],
    [
      'a problem that is announced is announced again when parley no longer waits it out',
      [watched('called', 2, 0, { kind: 'wait' })],
      ACT,
      'announce [disk] recovered [] withdraw [] next [disk calling 2/0]',
    ],
    [
      'a problem that needs a person is announced again after a day',
      [watched('called', 2, 0, { calledAt: NOW - 24 * HOUR_MS })],
      ACT,
      'announce [disk] recovered [] withdraw [] next [disk calling 2/0]',
    ],
    [
      'a problem that parley waits out is not announced again after a day',
      [watched('called', 2, 0, { kind: 'wait', calledAt: NOW - 24 * HOUR_MS })],
      OLD,
      'announce [] recovered [] withdraw [] next [disk called 2/0]',
    ],
    [
      'a problem whose call failed is not announced again at once',
      [watched('called', 2, 0, UNHEARD)],
      ACT,
      'announce [] recovered [] withdraw [] next [disk called 2/0]',
    ],
    [
      'a problem whose call failed is forgotten without a call when it is gone',
      [watched('called', 0, 1, UNHEARD)],
      [],
      'announce [] recovered [] withdraw [] next []',
    ],
    [
      'the call about a problem that is gone is withdrawn',
      [watched('calling', 0, 1)],
      [],
      'announce [] recovered [] withdraw [disk] next [disk calling 0/2]',
    ],
    [
      'the call about a recovery is withdrawn when the problem is back',
      [watched('recovering', 0, 2)],
      ACT,
      'announce [] recovered [] withdraw [disk] next [disk recovering 1/0]',
    ],
  ])('%s', (_, before, problems, expected) => {
    expect(lineOf(announcementsAfter(before, look(problems), limits))).toBe(expected)
  })

  test('a look without the database counts nothing as gone, and sees the problem of the database', () => {
    const before = [watched('called', 2, 0)]
    expect(lineOf(announcementsAfter(before, look([problem('database')], true), limits))).toBe(
      'announce [] recovered [] withdraw [] next [disk called 2/0, database seen 1/0]',
    )
  })

  test('recoveries come first, then the most serious problems, as many as may begin', () => {
    const problems = ['a', 'b', 'c'].map(id => problem(id))
    const before = [...problems]
      .reverse()
      .map(({ id }) => ({ ...watched('seen', 1, 0), id }))
      .concat(watched('called', 0, 1))
    const step = announcementsAfter(before, look(problems), { waitMs: WAIT_MS, room: 3 })
    expect([step.recovered, step.announce].map(of => of.map(({ id }) => id))).toEqual([['disk'], ['a', 'b']])
    const later = announcementsAfter(step.next, look(problems), { waitMs: WAIT_MS, room: 1 })
    expect(later.announce.map(({ id }) => id)).toEqual(['c'])
    expect(announcementsAfter(before, look(problems), { waitMs: 0, room: 0 }).announce).toEqual([])
  })

  test('a problem that a report names twice is one problem', () => {
    const first = announcementsAfter([], look([...ACT, ...ACT]), limits)
    expect(first.next).toHaveLength(1)
    expect(announcementsAfter(first.next, look([...ACT, ...ACT]), limits).announce).toHaveLength(1)
  })

  test('a problem that states no instant lasts from the first look that saw it', () => {
    const timeless = [problem('disk', { kind: 'wait', since: null })]
    const first = announcementsAfter([], look(timeless), limits)
    expect(first.next[0]?.since).toBe('2026-03-04T12:00:00.000Z')
    const later = (ms: number) => announcementsAfter(first.next, { ...look(timeless), at: NOW + ms }, limits)
    expect(later(WAIT_MS - 1).announce).toEqual([])
    expect(later(WAIT_MS).announce).toHaveLength(1)
  })

  test('a problem that is announced again keeps its instant and has the text that the look saw', () => {
    const later = [problem('disk', { what: 'Something else', since: '2026-03-04T11:59:59.000Z' })]
    const before = [watched('called', 2, 0, { kind: 'wait' })]
    const [again] = announcementsAfter(before, look(later), limits).announce
    expect(again).toMatchObject({ kind: 'act', what: 'Something else', since: SINCE, calledAt: NOW })
  })

  test('an announced problem keeps the instant and the text of its announcement', () => {
    const later = [problem('disk', { what: 'Something else', since: '2026-03-04T11:59:59.000Z' })]
    const [kept] = announcementsAfter([watched('called', 2, 0)], look(later), limits).next
    expect(kept).toMatchObject({ what: 'What disk is', since: SINCE })
  })
})

describe('the stage after a call has ended', () => {
  test.each<[AnnouncementStage, 'heard' | 'not heard', DeliveryEnd, string]>([
    ['calling', 'not heard', 'delivered', 'called, heard'],
    ['calling', 'not heard', 'failed', 'called, not heard'],
    ['calling', 'not heard', 'withdrawn', 'forgotten'],
    ['calling', 'heard', 'failed', 'called, heard'],
    ['calling', 'heard', 'withdrawn', 'called, heard'],
    ['recovering', 'heard', 'delivered', 'forgotten'],
    ['recovering', 'heard', 'failed', 'forgotten'],
    ['recovering', 'heard', 'withdrawn', 'called, heard'],
  ])('a problem that was %s, was %s before and whose call was %s is %s', (stage, heard, end, expected) => {
    const other = { ...watched('calling', 2, 0), id: 'other' }
    const before = watched(stage, 2, 0, { isHeard: heard === 'heard' })
    const [first, ...rest] = afterDelivery([before, other], 'disk', end)
    const after =
      first?.id === 'disk' ? `${first.stage}, ${first.isHeard ? 'heard' : 'not heard'}` : 'forgotten'
    expect(after).toBe(expected)
    expect([first, ...rest]).toContainEqual(other)
  })

  test('a call that succeeds after its problem is gone is followed by one about the recovery', () => {
    const gone = announcementsAfter([watched('calling', 0, 1)], look([]), limits)
    const told = afterDelivery(gone.next, 'disk', 'delivered')
    expect(announcementsAfter(told, look([]), limits).recovered).toHaveLength(1)
  })
})

describe('what is stored', () => {
  const old = { id: 'disk', what: 'What disk is', todo: 'Mend disk.', since: SINCE }
  const note = { ...old, kind: 'act', called_at: '2026-03-04T11:00:00.000Z' } as const

  test.each<[AnnouncementStage, boolean]>([
    ['seen', false],
    ['calling', false],
    ['calling', true],
    ['called', false],
    ['called', true],
    ['recovering', true],
  ])('a problem that is %s is stored if a call about it succeeded: %s', (stage, isHeard) => {
    expect(announcedNotes([watched(stage, 2, 0, { isHeard })])).toEqual(isHeard ? [note] : [])
  })

  test('a stored problem is not announced again, and recovers when two looks miss it', () => {
    const known = withStored([], [old], NOW)
    const first = announcementsAfter(known, look(ACT), limits)
    expect(announcementsAfter(first.next, look(ACT), limits).announce).toEqual([])
    const gone = announcementsAfter(known, look([]), limits)
    expect(announcementsAfter(gone.next, look([]), limits).recovered).toHaveLength(1)
  })

  test('a stored problem that this process has seen is announced already, and one that it calls about is not', () => {
    expect(withStored([watched('seen', 2, 0)], [note], NOW)).toEqual([watched('called', 0, 0)])
    expect(withStored([watched('calling', 2, 0)], [note], NOW)).toEqual([watched('calling', 2, 0)])
  })
})
