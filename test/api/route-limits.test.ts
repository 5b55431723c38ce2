import { describe, expect, test } from 'vitest'
import {
  after429,
  afterFailure,
  afterSending,
  closedMs,
  closedRoutes,
  concernsOf429,
  isOfOtherRoute,
  limitsAfterAcceptance,
  NO_ROUTE_LIMITS,
  type RouteLimits,
} from '../../src/api/governor/route-limits.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

type Step = (limits: RouteLimits) => RouteLimits

/** @param seconds when; a request takes none */
const refused =
  (route: string, seconds: number, waitMs?: number, sentSeconds = seconds): Step =>
  limits =>
    after429(limits, {
      route,
      at: seconds * SECOND,
      sentAt: sentSeconds * SECOND,
      waitMs,
      pausedMs: SECOND,
      random: () => 0,
    })
const accepted =
  (route: string, seconds: number): Step =>
  limits =>
    limitsAfterAcceptance(limits, { route, at: seconds * SECOND, sentAt: seconds * SECOND })
const sent =
  (route: string, seconds: number): Step =>
  limits =>
    afterSending(limits, route, seconds * SECOND)
const failed =
  (route: string, seconds: number): Step =>
  limits =>
    afterFailure(limits, route, seconds * SECOND)

const limitsAfter = (...steps: readonly Step[]) =>
  steps.reduce((limits, step) => step(limits), NO_ROUTE_LIMITS)

/** `a` was refused at second 0 and is closed for an hour; `b` was accepted meanwhile. */
const OWN = [refused('a', 0, HOUR), accepted('b', 6)]

/** `a` and `b` were refused together: the limit is taken as common for an hour. */
const COMMON = [refused('b', 0, MINUTE), refused('a', 5, MINUTE)]

/** `a` is refused three times, and each time another route is accepted before the next. */
const PROVED = [
  ...COMMON,
  accepted('c', 66),
  refused('a', 70, MINUTE),
  accepted('c', 131),
  refused('a', 140, MINUTE),
  accepted('d', 201),
]

describe('what a 429 concerns', () => {
  test.each<[when: string, steps: readonly Step[], route: string, seconds: number, concerns: string]>([
    ['it is the first', [], 'a', 0, 'unknown'],
    ['another route was accepted six seconds later', OWN, 'a', 900, 'route'],
    [
      'another route was accepted after three seconds',
      [refused('a', 0, HOUR), accepted('b', 3)],
      'a',
      900,
      'unknown',
    ],
    ['the accepted request was sent before', [refused('a', 1, HOUR), accepted('b', 0)], 'a', 900, 'unknown'],
    [
      'another route was accepted once the wait was over',
      [refused('a', 0, MINUTE), accepted('b', 61)],
      'a',
      62,
      'unknown',
    ],
    ['another route was refused just before', [refused('b', 0, MINUTE)], 'a', 5, 'api'],
    ['another route was refused, and its wait is over', [refused('b', 0, MINUTE)], 'a', 61, 'unknown'],
    [
      'two routes were refused within the hour',
      [refused('a', 0, MINUTE), refused('b', 5, MINUTE)],
      'a',
      3600,
      'api',
    ],
    [
      'two routes were refused more than an hour ago',
      [refused('a', 0, MINUTE), refused('b', 5, MINUTE)],
      'a',
      3606,
      'unknown',
    ],
    ['another route has its own limit, as a third one has shown', OWN, 'c', 10, 'unknown'],
    ['another route has its own limit, as only this one has shown', OWN, 'b', 10, 'api'],
    [
      'it comes within the hour after a common limit, again and again',
      [refused('a', 0, MINUTE), refused('b', 5, MINUTE), refused('a', 3000, MINUTE)],
      'a',
      3606,
      'unknown',
    ],
    [
      'two other routes have their own limits',
      [...OWN, refused('c', 10, HOUR), accepted('b', 20)],
      'd',
      30,
      'api',
    ],
    ['the route has its own limit and was answered since', [...OWN, accepted('a', 3600)], 'a', 3700, 'route'],
    [
      'three refusals under a common limit were each followed by an answer of another',
      PROVED,
      'a',
      300,
      'route',
    ],
    ['only two of them were', [...COMMON, ...PROVED.slice(-4)], 'a', 300, 'api'],
    [
      'the route was answered in between',
      [...PROVED.slice(0, -2), accepted('a', 190), ...PROVED.slice(-2)],
      'a',
      300,
      'api',
    ],
    ['that was proved, and the route was answered since', [...PROVED, accepted('a', 250)], 'a', 300, 'route'],
    ['that was proved of another route', PROVED, 'b', 4000, 'unknown'],
  ])('when %s', (_, steps, route, seconds, concerns) => {
    expect(concernsOf429(limitsAfter(...steps), route, seconds * SECOND)).toBe(concerns)
  })
})

describe('how long a route is closed', () => {
  test.each<[when: string, steps: readonly Step[], seconds: number, ms: number]>([
    ['as long as the API asks', [refused('a', 0, MINUTE)], 20, 40 * SECOND],
    ['a quarter of an hour when the API asks for more', [refused('a', 0, HOUR)], 0, 15 * MINUTE],
    ['as long as the pause, at first, when the API asks for nothing', [refused('a', 0)], 0, SECOND],
    ['longer at the second refusal in a row', [refused('a', 0), refused('a', 1)], 1, 5 * SECOND],
    ['twice as long at the third', [refused('a', 0), refused('a', 1), refused('a', 9)], 9, 10 * SECOND],
    [
      'no longer for a request that was sent before the refusal',
      [refused('a', 1), refused('a', 1.5, undefined, 0)],
      1,
      SECOND,
    ],
    [
      'longer when the API asks that request to wait longer',
      [refused('a', 1), refused('a', 2, MINUTE, 0)],
      2,
      MINUTE,
    ],
    ['not any more once the limit is common', [refused('a', 0, HOUR), refused('b', 5, HOUR)], 5, 0],
    ['while one request tries it', [refused('a', 0, MINUTE), sent('a', 60)], 60, MINUTE],
    [
      'as long as the API asks when the trial is refused',
      [refused('a', 0, MINUTE), sent('a', 60), refused('a', 61, SECOND)],
      61,
      SECOND,
    ],
    ['no longer when the trial has failed', [refused('a', 0, MINUTE), sent('a', 60), failed('a', 61)], 61, 0],
    [
      'as long as before while a request goes to it nevertheless',
      [refused('a', 0, 10 * MINUTE), sent('a', 5)],
      5,
      595 * SECOND,
    ],
    ['not while a route without a refusal is asked', [sent('a', 0)], 0, 0],
  ])('%s', (_, steps, seconds, ms) => {
    expect(closedMs(limitsAfter(...steps), 'a', seconds * SECOND)).toBe(ms)
  })
})

describe('the distance between the requests of a route with its own limit', () => {
  const distance = (...steps: readonly Step[]) =>
    limitsAfter(...OWN, ...steps).routes.get('a')?.distanceMs ?? 0

  test('grows with each refusal, up to half a minute', () => {
    const refusals = Array.from({ length: 40 }, (_, n) => refused('a', 900 * (n + 1), SECOND))
    expect(distance(...refusals.slice(0, 2))).toBeCloseTo(50 * 1.5 ** 2)
    expect(distance(...refusals)).toBe(30 * SECOND)
  })

  test('shrinks with each answer', () => {
    expect(distance(accepted('a', 900), accepted('a', 901))).toBeLessThan(50)
  })

  test('is kept after each request, and after the answer that opens the route', () => {
    const open = limitsAfter(...OWN, accepted('a', 900))
    expect(closedMs(open, 'a', 900 * SECOND)).toBeCloseTo(50, 0)
    expect(closedMs(sent('a', 901)(open), 'a', 901 * SECOND)).toBeCloseTo(50, 0)
  })
})

test('an accepted request is elsewhere while another route is closed, five seconds after its refusal', () => {
  const limits = limitsAfter(refused('a', 0, MINUTE))
  const seen = [4, 5, 59, 60].map(seconds => isOfOtherRoute(limits, 'b', seconds * SECOND))
  expect(seen).toEqual([false, true, true, false])
  expect(isOfOtherRoute(limits, 'a', 5 * SECOND)).toBe(false)
})

describe('the routes that are told', () => {
  test.each<[when: string, steps: readonly Step[], seconds: number, told: readonly string[]]>([
    ['one with its own limit', OWN, 10, ['a']],
    ['none whose limit may be common', [refused('a', 0, HOUR)], 10, []],
    ['none that is closed for seconds', [...OWN, accepted('a', 900), refused('a', 901, SECOND)], 901, []],
    ['one while it is tried', [...OWN, sent('a', 900)], 930, ['a']],
    ['none after an answer', [...OWN, accepted('a', 900)], 900, []],
  ])('%s', (_, steps, seconds, told) => {
    const routes = closedRoutes(limitsAfter(...steps), seconds * SECOND, 30 * SECOND)
    expect(routes.map(({ route }) => route)).toEqual(told)
  })
})
