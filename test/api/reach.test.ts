import { describe, expect, test } from 'vitest'
import {
  isAccessInDoubt,
  nextReachStep,
  patienceLeftMs,
  type Reach,
  type ReachOptions,
  reachAfter,
  startReach,
  troubleOf,
  withoutWait,
} from '../../src/api/reach.ts'
import type { NextStep, ReachEvent } from '../../src/api/reach-events.ts'
import { isAbandoned, isResting, restingRoutes, restMs } from '../../src/api/route-rests.ts'

const LISTS = ['activities', 'messages', 'members', 'teams'] as const
const healthChecks = LISTS.map(name => ({
  resource: name,
  feed: `${name}.list`,
  request: { route: `/${name}`, path: `/${name}` },
}))
const MINUTES = 300_000
const OPTIONS: ReachOptions = { healthChecks, againAfterMs: MINUTES, wasAnswered: true, accessWasLost: false }

/** The patience of a backfill. The daemon has none. */
const BACKFILL = { giveUpMs: 120_000 }

const begin = (options: Partial<ReachOptions> = {}) => startReach({ ...OPTIONS, ...options }, 0)

interface Failing {
  status?: number
  cause?: Extract<ReachEvent, { kind: 'failed' }>['cause']
  path?: string
  isForeign?: boolean
}

const failed = (
  name: string,
  at: number,
  { status, cause = 'server', path = name, isForeign = false }: Failing = {},
): ReachEvent => ({
  kind: 'failed',
  at,
  sentAt: at,
  route: `/${name}`,
  feed: `${name}.list`,
  path,
  cause,
  status,
  isForeign,
  message: 'why',
  random: () => 1,
})
const answered = (name: string, at: number): ReachEvent => ({ kind: 'answered', at, route: `/${name}` })
const refused = (name: string, at: number, isDeclared = false, isForeign = false): ReachEvent => ({
  kind: 'refused',
  at,
  route: `/${name}`,
  feed: `${name}.list`,
  isDeclared,
  isForeign,
  random: () => 1,
})

const throttled = (name: string, at: number): ReachEvent => ({
  kind: 'throttled',
  at,
  route: `/${name}`,
  feed: `${name}.list`,
  random: () => 1,
})

const having = (reach: Reach, ...events: ReachEvent[]): Reach => events.reduce(reachAfter, reach)

/** The step as a word: the requested route, or the wait. */
function step(reach: Reach, at: number): string {
  const next: NextStep = nextReachStep(reach, at)
  if (next.kind === 'health-check') return next.check.feed
  return next.kind === 'wait' ? `wait ${next.ms}` : next.kind
}

/** Follows every step and answers each health check with `answer`. Returns the steps with their times. */
function follow(
  first: Reach,
  untilMs: number,
  answer: (name: string, at: number) => ReachEvent,
  startMs = 0,
) {
  const done: [at: number, asked: string][] = []
  let reach = first
  let at = startMs
  while (at <= untilMs) {
    const next = nextReachStep(reach, at)
    if (next.kind === 'any' || next.kind === 'lost' || next.kind === 'trial') {
      return { reach, done, at, end: next.kind }
    }
    if (next.kind === 'wait') {
      at += next.ms
      continue
    }
    const [name = ''] = next.check.feed.split('.')
    done.push([at, name])
    reach = reachAfter(reach, answer(name, at))
  }
  return { reach, done, at, end: 'time' }
}

describe('an API that does not answer', () => {
  const failures = (names: readonly string[], failing: Failing): ReachEvent[] =>
    names.map((name, index) => failed(name, index, failing))

  test.each<[string, ReachEvent[], string]>([
    ['four failures in a row are no outage', failures(['a', 'b', 'a', 'b'], { status: 503 }), 'any'],
    [
      'server errors on one route concern only that route',
      failures(Array(9).fill('a'), { status: 500 }),
      'any',
    ],
    [
      'server errors on two routes make a third one the health check',
      failures(['a', 'b', 'a', 'b', 'a'], { status: 500 }),
      'activities.list',
    ],
    [
      'a failing route is no health check',
      failures(['activities', 'b', 'activities', 'b', 'b'], { status: 500 }),
      'messages.list',
    ],
    [
      'timeouts on one route make another one the health check',
      failures(Array(5).fill('a'), { cause: 'timeout' }),
      'activities.list',
    ],
    [
      'refused connections concern every route',
      failures(Array(5).fill('a'), { cause: 'unreachable' }),
      'wait 996',
    ],
    [
      'an answer in between ends the series',
      [...failures(['a', 'b', 'a', 'b'], {}), answered('c', 4), failed('a', 5)],
      'any',
    ],
    [
      'a refusal counts as an answer',
      [...failures(['a', 'b', 'a', 'b'], {}), refused('c', 4), failed('a', 5)],
      'any',
    ],
  ])('%s', (_, events, expected) => {
    expect(step(having(begin(), ...events), 8)).toBe(expected)
  })

  const errorsOnTwoRoutes = failures(['a', 'b', 'a', 'b', 'a'], { status: 500 })
  const doubtful = having(begin(), ...errorsOnTwoRoutes)

  test('the API answers again as soon as a health check is answered', () => {
    const { end, done } = follow(doubtful, 1000, answered)
    expect([end, done.map(([, name]) => name)]).toEqual(['any', ['activities']])
  })

  test('the API is down after two failed health checks, and trials follow at growing intervals, each on another route', () => {
    const { done, reach } = follow(doubtful, 400_000, (name, at) => failed(name, at, { status: 502 }))
    expect(done.slice(0, 6).map(([, name]) => name)).toEqual([
      'activities',
      'messages',
      'members',
      'teams',
      'members',
      'teams',
    ])
    const gaps = done.slice(1).map(([at], index) => at - (done[index]?.[0] ?? 0))
    expect(gaps.slice(0, 9)).toEqual([0, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000])
    expect(troubleOf(reach)).toMatchObject({ kind: 'silent', since: 0, reason: 'why' })
  })

  test('a route that a gateway refuses as always ends neither the doubt nor the outage', () => {
    const answer = (name: string, at: number) =>
      name === 'teams' ? refused(name, at, true) : failed(name, at, { status: 503 })
    const doubted = having(
      begin(BACKFILL),
      ...[0, 1, 2, 3, 4].map(at => failed(at % 2 === 0 ? 'activities' : 'messages', at, { status: 503 })),
    )
    const { reach, done } = follow(doubted, 20 * 60_000, answer, 5)
    expect(troubleOf(reach)).toMatchObject({ kind: 'silent', since: 0 })
    expect(patienceLeftMs(reach, 120_000)).toBeLessThanOrEqual(0)
    expect(done.length).toBeLessThan(30)
    expect(troubleOf(reachAfter(reach, answered('members', 21 * 60_000)))).toBe(undefined)
  })

  test('the first answer ends the outage, and no route rests any more', () => {
    const broken = having(begin(), failed('a', 0), failed('a', 0, { path: 'other' }), failed('a', 0))
    expect(restMs(broken, '/a', 0)).toBeGreaterThan(0)
    const { reach } = follow(having(broken, failed('b', 1), failed('c', 1)), 9000, failed)
    const back = reachAfter(reach, answered('teams', 10_000))
    expect([step(back, 10_000), restMs(back, '/a', 0), troubleOf(back)]).toEqual(['any', 0, undefined])
  })

  test('requests that were in flight at the last trial cause no further step', () => {
    const away = follow(doubtful, 1, (name, at) => failed(name, at, { status: 502 })).reach
    expect(step(having(away, failed('a', 2), failed('b', 3)), 4)).toBe(step(away, 4))
  })

  test('any request serves as a trial when no list is known', () => {
    const blind = having(begin({ healthChecks: [] }), ...failures(['a', 'b', 'a', 'b', 'a'], { status: 500 }))
    expect([step(blind, 4), step(blind, 5000)]).toEqual(['wait 1000', 'trial'])
  })

  test.each<[string, ReachEvent[], number]>([
    ['nothing has failed', [], Number.POSITIVE_INFINITY],
    ['no connection was ever made', [failed('a', 500, { cause: 'unreachable' })], 9500],
    ['a connection was made before', [answered('a', 0), failed('a', 500, { cause: 'unreachable' })], 119_500],
    [
      'a server error came last',
      [failed('a', 500, { cause: 'timeout' }), failed('a', 900, { status: 500 })],
      119_900,
    ],
  ])('the patience of a run does not shrink when %s', (_, events, left) => {
    expect(patienceLeftMs(having(begin(BACKFILL), ...events), 1000)).toBe(left)
  })

  test('gateway errors use up the patience of a run too', () => {
    const doubted = having(begin(BACKFILL), ...errorsOnTwoRoutes)
    const { reach } = follow(doubted, 100_000, (name, at) => failed(name, at, { status: 502 }))
    expect(patienceLeftMs(reach, 100_000)).toBe(20_000)
  })

  test("parley's own waits before the API went away do not use up the patience of a run", () => {
    const waited = withoutWait(having(begin(BACKFILL), ...errorsOnTwoRoutes), 60_000)
    const { reach } = follow(waited, 100_000, (name, at) => failed(name, at, { status: 502 }))
    expect(patienceLeftMs(reach, 100_000)).toBe(80_000)
  })

  describe('when the patience of a run is over', () => {
    const timeout = (name: string, at: number) => failed(name, at, { cause: 'timeout' })
    const over = having(begin(BACKFILL), answered('b', 0), timeout('a', 1000), timeout('a', 121_000))

    test('another route is asked before the run ends', () => {
      expect([step(over, 120_999), step(over, 121_000)]).toEqual(['any', 'activities.list'])
      expect(patienceLeftMs(over, 121_000)).toBe(Number.POSITIVE_INFINITY)
    })

    test('the run goes on when another route answers', () => {
      const { end, done, reach } = follow(over, 200_000, answered, 121_000)
      expect([end, done.length, patienceLeftMs(reach, 121_000)]).toEqual(['any', 1, Number.POSITIVE_INFINITY])
    })

    test('the run ends when two further routes fail too', () => {
      const away = having(over, timeout('activities', 121_000), timeout('messages', 121_000))
      expect(patienceLeftMs(away, 121_000)).toBe(0)
    })

    test('the run ends at once when the API never responded', () => {
      const silent = having(begin(BACKFILL), timeout('a', 1000))
      expect([patienceLeftMs(silent, 120_999), patienceLeftMs(silent, 121_000)]).toEqual([1, 0])
    })

    test('the daemon asks nothing more', () => {
      const daemon = having(begin(), answered('b', 0), timeout('a', 1000), timeout('a', 121_000))
      expect(step(daemon, 121_000)).toBe('any')
    })
  })
})

describe('a site that is not the API', () => {
  const page = (name: string): ReachEvent =>
    failed(name, 0, { status: 200, cause: 'garbled', isForeign: true })
  const notFound = (name: string): ReachEvent => refused(name, 0, false, true)
  const limit: ReachEvent = throttled('a', 0)
  const leaves = (events: readonly ReachEvent[], options: Partial<ReachOptions> = {}) =>
    patienceLeftMs(having(begin({ ...BACKFILL, ...options }), ...events), 0)

  test.each<[string, ReachEvent[]]>([
    ['three web pages on different routes', [page('a'), page('b'), page('c')]],
    ['a web page between 404 in a foreign form', [notFound('a'), page('b'), notFound('c')]],
    [
      'three web pages with a timeout in between',
      [page('a'), page('b'), failed('d', 0, { cause: 'timeout' }), page('c')],
    ],
  ])('a run ends at once after %s', (_, events) => {
    expect(leaves(events)).toBe(0)
  })

  test('a run ends after three web pages, also when only one list is known', () => {
    const one = { healthChecks: healthChecks.slice(0, 1) }
    const pages = [page('activities'), page('activities'), page('activities')]
    expect(leaves(pages, one)).toBe(0)
    expect(leaves(pages.slice(0, 2), one)).toBe(120_000)
  })

  test.each<[string, ReachEvent[]]>([
    [
      'on two routes alone',
      Array(9)
        .fill([page('a'), page('b')])
        .flat(),
    ],
    ['after an answer', [answered('a', 0), page('a'), page('b'), page('c'), page('d')]],
    ["after a refusal in the API's form", [refused('a', 0), page('a'), page('b'), page('c')]],
    [
      'when a server error came in between',
      [page('a'), page('b'), failed('d', 0, { status: 502 }), page('c')],
    ],
    ['when a limit came in between', [page('a'), page('b'), limit, page('c')]],
  ])('the run waits as for any other failure %s', (_, events) => {
    expect(leaves(events)).toBe(120_000)
  })

  test('a site that refuses everything is judged by its refusals', () => {
    expect(leaves([notFound('a'), notFound('b'), notFound('c')])).toBe(Number.POSITIVE_INFINITY)
  })

  test.each<[string, ReachEvent[]]>([
    ['the site answers', [page('a'), page('b'), page('c')]],
    ['no connection is possible', [failed('a', 0, { cause: 'unreachable' })]],
  ])('a process that waits indefinitely does not end when %s', (_, events) => {
    expect(patienceLeftMs(having(begin(), ...events), 0)).toBe(Number.POSITIVE_INFINITY)
  })
})

describe('a failing route', () => {
  const broken = having(begin(), failed('a', 0), failed('a', 0, { path: 'other' }), failed('a', 0))

  test.each<[string, ReachEvent[], number]>([
    [
      'rests after three failures of two requests',
      [failed('a', 0), failed('a', 0, { path: 'x' }), failed('a', 0)],
      1000,
    ],
    ['does not rest for one request that always fails', Array(9).fill(failed('a', 0)), 0],
    ['does not rest for two failures', [failed('a', 0), failed('a', 0, { path: 'x' })], 0],
    [
      'does not rest while other requests of it are answered',
      [failed('a', 0), failed('a', 0, { path: 'x' }), answered('a', 0), failed('a', 0)],
      0,
    ],
  ])('a failing route %s', (_, events, rest) => {
    expect(restMs(having(begin(), ...events), '/a', 0)).toBe(rest)
  })

  test('a failing route leaves other routes and the API as a whole alone', () => {
    expect([restMs(broken, '/b', 0), step(broken, 0), troubleOf(broken)]).toEqual([0, 'any', undefined])
  })

  test('a failing route has one trial after each growing wait, and a run abandons it in the end', () => {
    let reach = broken
    const rests: number[] = []
    let at = 0
    while (!isAbandoned(reach, '/a')) {
      const rest = restMs(reach, '/a', at)
      rests.push(rest)
      at += rest
      expect([restMs(reach, '/a', at), isResting(reach, '/a')]).toEqual([0, true])
      reach = reachAfter(reach, failed('a', at))
    }
    expect(rests).toEqual([1000, 2000, 4000, 8000])
    const back = reachAfter(reach, answered('a', at))
    expect([restMs(back, '/a', at), isResting(back, '/a')]).toEqual([0, false])
  })

  test('a route that rested before may be tried at once, and rests as long as there if it fails', () => {
    const resting = { route: '/a', since: -9000, until: 0, tries: 3, reason: 'why' }
    const reach = startReach({ ...OPTIONS, resting: [resting] }, 0)
    expect(restMs(reach, '/a', 0)).toBe(0)
    const again = having(reach, failed('a', 10))
    expect(restMs(again, '/a', 10)).toBe(8000)
    expect(restingRoutes(again, 17_000)).toMatchObject([{ ...resting, until: 8010, tries: 4 }])
    expect(restingRoutes(again, 17_011)).toEqual([])
    expect(restMs(having(again, answered('a', 9000)), '/a', 9000)).toBe(0)
  })

  test('a failing route has another trial at once when the first met a limit', () => {
    expect(restMs(reachAfter(broken, throttled('a', 2000)), '/a', 2000)).toBe(0)
  })
})

test('every rest ends when the API is back, whatever its first response is', () => {
  const resting = having(begin(), failed('a', 0), failed('a', 0, { path: 'x' }), failed('a', 0))
  const away = having(resting, ...LISTS.flatMap(name => [failed(name, 1), failed(name, 2)]), failed('a', 3))
  expect([troubleOf(away)?.kind, isResting(away, '/a')]).toEqual(['silent', true])
  const events: ReachEvent[] = [
    answered('messages', 9000),
    refused('messages', 9000),
    throttled('messages', 9000),
    { kind: 'redirected', at: 9000, route: '/messages', feed: 'messages.list', random: () => 1 },
  ]
  expect(events.map(event => isResting(reachAfter(away, event), '/a'))).toEqual([false, false, false, false])
})

describe('an API that refuses requests', () => {
  const refusals = [0, 1, 2, 3].map(at => refused(at % 2 === 0 ? 'activities' : 'messages', at))

  test('three refusals in a row raise no doubt, nor do declared refusals', () => {
    expect(step(having(begin(), ...refusals.slice(0, 3)), 3)).toBe('any')
    expect(
      step(having(begin(), ...[...refusals, ...refusals].map(({ at }) => refused('members', at, true))), 3),
    ).toBe('any')
  })

  test('refusals of two lists make a third one a health check, whose answer ends the doubt', () => {
    const { done, end, reach } = follow(having(begin(), ...refusals), 9000, answered)
    expect([done.map(([, name]) => name), end, troubleOf(reach)]).toEqual([['members'], 'any', undefined])
  })

  test('a redirect is no answer: it ends no doubt about access, and the next list is requested', () => {
    const redirected: ReachEvent = {
      kind: 'redirected',
      at: 4,
      route: '/members',
      feed: 'members.list',
      random: () => 1,
    }
    const reach = having(begin(), ...refusals)
    expect([step(reach, 4), step(reachAfter(reach, redirected), 4)]).toEqual(['members.list', 'teams.list'])
    expect(isAccessInDoubt(reachAfter(reach, redirected))).toBe(true)
  })

  test('refusals of all lists count when each is refused again minutes later', () => {
    const { done, end, at } = follow(having(begin(), ...refusals), 10 * MINUTES, refused)
    expect([end, at]).toEqual(['lost', 3 + MINUTES])
    expect(done.slice(0, 2)).toEqual([
      [0, 'members'],
      [0, 'teams'],
    ])
    const last = done.slice(-LISTS.length)
    expect(last.map(([, name]) => name).sort()).toEqual([...LISTS].sort())
    expect(last.every(([time]) => time === 3 + MINUTES)).toBe(true)
    // In between, one request at a time tests whether the API answers again.
    expect(done.length).toBeGreaterThan(12)
  })

  test('the doubt about all lists ends as soon as one of them is answered', () => {
    const { end, at } = follow(having(begin(), ...refusals), 10 * MINUTES, (name, time) =>
      time < 60_000 ? refused(name, time) : answered(name, time),
    )
    expect(end).toBe('any')
    expect(at).toBeLessThan(60_000 + 15_000)
  })

  test('refusals of all lists do not count for a quarter of an hour while one of them only fails', () => {
    const { end, done } = follow(having(begin(), ...refusals), 14 * 60_000, (name, at) =>
      name === 'teams' ? failed(name, at, { status: 500 }) : refused(name, at),
    )
    expect(end).toBe('time')
    expect(done.length).toBeLessThan(120)
  })

  test.each<[string, (name: string, at: number) => ReachEvent]>([
    ['fails', (name, at) => failed(name, at, { status: 501 })],
    [
      'is redirected',
      (name, at) => ({ ...refused(name, at), kind: 'redirected', route: `/${name}` }) as ReachEvent,
    ],
    ['is throttled', throttled],
  ])('access is lost after a quarter of an hour although one of the lists always %s', (_, other) => {
    const { end, at, done, reach } = follow(having(begin(), ...refusals), 60 * 60_000, (name, time) =>
      name === 'teams' ? other(name, time) : refused(name, time),
    )
    expect(end).toBe('lost')
    expect(at).toBeLessThan(16 * 60_000)
    expect(done.length).toBeLessThan(200)
    expect(troubleOf(reach)).toMatchObject({ kind: 'refused' })
  })

  test('a doubt stays while most lists fail in another way than by a refusal', () => {
    const { end } = follow(having(begin(), ...refusals), 60 * 60_000, (name, at) =>
      name === 'teams' ? refused(name, at) : ({ ...refused(name, at), kind: 'redirected' } as ReachEvent),
    )
    expect(end).toBe('time')
  })

  test('without a known list any request is a trial, and a second refusal minutes later counts', () => {
    const blind = having(begin({ healthChecks: [] }), ...refusals)
    const trialAt = 3 + 1000
    expect([step(blind, 3), step(blind, trialAt)]).toEqual(['wait 1000', 'trial'])
    const soon = reachAfter(blind, refused('activities', trialAt))
    expect(step(soon, trialAt)).toBe('wait 2000')
    expect(step(reachAfter(soon, refused('activities', 3 + MINUTES)), 3 + MINUTES)).toBe('lost')
    expect(step(reachAfter(soon, answered('activities', trialAt)), trialAt)).toBe('any')
  })

  test.each<[string, Partial<ReachOptions>, ReachEvent[]]>([
    ['when it never answered', { wasAnswered: false }, refusals],
    ['when access was lost before', { wasAnswered: false, accessWasLost: true }, []],
    ['when the run is to end at once', { againAfterMs: 0 }, refusals],
  ])('refusals of all lists count at once %s', (_, options, events) => {
    const { end, at, done } = follow(having(begin(options), ...events), MINUTES, refused)
    expect(end).toBe('lost')
    expect(at).toBeLessThan(10)
    expect(done.length).toBeLessThanOrEqual(2 * LISTS.length)
  })
})
