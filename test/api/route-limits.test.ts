import { describe, expect, test } from 'vitest'
import {
  after429,
  afterAcceptance,
  closedMs,
  concernsOf429,
  NO_ROUTE_LIMITS,
  type RouteLimits,
  whileTrying,
} from '../../src/api/governor/route-limits.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

type Step = (limits: RouteLimits) => RouteLimits

/** @param seconds when */
const refused =
  (route: string, seconds: number, waitMs?: number): Step =>
  limits =>
    after429(limits, { route, at: seconds * SECOND, waitMs, pausedMs: SECOND, random: () => 0 })
const accepted =
  (route: string, seconds: number): Step =>
  limits =>
    afterAcceptance(limits, route, seconds * SECOND)

const after = (...steps: readonly Step[]) => steps.reduce((limits, step) => step(limits), NO_ROUTE_LIMITS)

/** `a` was refused at second 0 and is closed for an hour; `b` was accepted meanwhile. */
const OWN = [refused('a', 0, HOUR), accepted('b', 6)]

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
    ['another route has a limit of its own', OWN, 'c', 10, 'unknown'],
    [
      'two other routes have limits of their own',
      [...OWN, refused('c', 10, HOUR), accepted('b', 20)],
      'd',
      30,
      'api',
    ],
    [
      'the route has a limit of its own and was answered since',
      [...OWN, accepted('a', 3600)],
      'a',
      3700,
      'route',
    ],
  ])('when %s', (_, steps, route, seconds, concerns) => {
    expect(concernsOf429(after(...steps), route, seconds * SECOND)).toBe(concerns)
  })
})

describe('how long a route is closed', () => {
  test.each<[when: string, steps: readonly Step[], seconds: number, ms: number]>([
    ['as long as the API asks', [refused('a', 0, MINUTE)], 20, 40 * SECOND],
    ['a quarter of an hour when the API asks for more', [refused('a', 0, HOUR)], 0, 15 * MINUTE],
    ['as long as the pause, at first, when the API asks for nothing', [refused('a', 0)], 0, SECOND],
    ['longer at the second refusal in a row', [refused('a', 0), refused('a', 1)], 1, 7.5 * SECOND],
    ['twice as long at the third', [refused('a', 0), refused('a', 1), refused('a', 9)], 9, 15 * SECOND],
    ['not after an answer', [...OWN, accepted('a', 900)], 900, 0],
    ['not any more once the limit is common', [refused('a', 0, HOUR), refused('b', 5, HOUR)], 5, 0],
    [
      'while one request tries it',
      [refused('a', 0, MINUTE), limits => whileTrying(limits, 'a', MINUTE)],
      60,
      MINUTE,
    ],
    ['not while a route without a refusal is asked', [limits => whileTrying(limits, 'a', 0)], 0, 0],
  ])('%s', (_, steps, seconds, ms) => {
    expect(closedMs(after(...steps), 'a', seconds * SECOND)).toBe(ms)
  })
})
