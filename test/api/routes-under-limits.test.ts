import { describe, expect, test } from 'vitest'
import type { LimitRule } from '../../src/simulator/faults/limits.ts'
import { share } from '../support/effort.ts'
import { limitedTo, type VirtualApi } from './simulated-pace.ts'
import { driveRoutes, type RouteCounts } from './simulated-routes.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

const BUCKET: LimitRule = { kind: 'token-bucket', rate: 5, burst: 5 }
const LARGE_BUCKET: LimitRule = { kind: 'token-bucket', rate: 1, burst: 60 }
const WINDOW: LimitRule = { kind: 'fixed-window', count: 100, windowMs: MINUTE }

/** An API that asks for ten times the wait that is needed, and for ten seconds at least. */
const exaggerating = (rule: LimitRule): VirtualApi => {
  const api = limitedTo(rule, 'seconds')
  return {
    ...api,
    ask(at) {
      const { accepted, waitMs } = api.ask(at)
      return accepted || waitMs === undefined
        ? { accepted }
        : { accepted, waitMs: Math.max(10_000, 10 * waitMs) }
    },
  }
}

const APIS: readonly (readonly [limit: string, api: () => VirtualApi])[] = [
  ['5 a second, without a wait', () => limitedTo(BUCKET, 'none')],
  ['5 a second, with the wait', () => limitedTo(BUCKET, 'seconds')],
  ['5 a second, with ten times the wait', () => exaggerating(BUCKET)],
  ['1 a second in bursts of 60, with ten times the wait', () => exaggerating(LARGE_BUCKET)],
  ['100 a minute, without a wait', () => limitedTo(WINDOW, 'none')],
  ['100 a minute, with the wait', () => limitedTo(WINDOW, 'seconds')],
]

const BUSY_AMONG_RARE = { busy: 0, b: MINUTE, c: MINUTE, d: MINUTE }

const sum = (counts: Record<string, RouteCounts>) => {
  const all = Object.values(counts)
  const accepted = all.reduce((total, one) => total + one.accepted, 0)
  const refused = all.reduce((total, one) => total + one.refused, 0)
  return { accepted, share: refused / (accepted + refused) }
}

/** With and without telling the limit of a route from a common one. */
function compared(
  everyMs: Readonly<Record<string, number>>,
  apis: () => Readonly<Record<string, VirtualApi>>,
) {
  const drive = (tellsRoutes: boolean) => driveRoutes({ apis: apis(), everyMs, untilMs: HOUR, tellsRoutes })
  return { told: drive(true), untold: sum(drive(false)) }
}

describe.each(share(APIS))('a limit of all routes together: %s', (_, limit) => {
  const shared = (everyMs: Readonly<Record<string, number>>) => () => {
    const api = limit()
    return Object.fromEntries(Object.keys(everyMs).map(route => [route, api]))
  }

  test.each([
    ['one busy route among rare ones', BUSY_AMONG_RARE],
    ['five busy routes', { a: 0, b: 0, c: 0, d: 0, e: 0 }],
    ['two busy routes', { a: 0, b: 0 }],
    ['a single route', { a: 0 }],
  ])('is used as well, and refuses as few, with %s', (__, everyMs) => {
    const { told, untold } = compared(everyMs, shared(everyMs))
    const { accepted, share } = sum(told)
    expect(accepted).toBeGreaterThan(0.8 * untold.accepted)
    expect(share).toBeLessThan(Math.max(0.02, 1.5 * untold.share))
  })
})

describe.each(share(APIS))('a limit of one busy route: %s', (_, limit) => {
  test('lets the others have all their requests accepted, and is used with few refusals', () => {
    const { told, untold } = compared(BUSY_AMONG_RARE, () => ({ busy: limit() }))
    const { accepted = 0, refused = 0 } = told['busy'] ?? {}
    expect(told['b']).toEqual({ accepted: HOUR / MINUTE, refused: 0 })
    expect(accepted).toBeGreaterThan(0.75 * untold.accepted)
    expect(refused / (accepted + refused)).toBeLessThan(0.02)
  })
})

test('a route that is refused for hours stops no other', () => {
  const closed: VirtualApi = { ask: () => ({ accepted: false, waitMs: HOUR }), answered: () => undefined }
  const { told, untold } = compared(BUSY_AMONG_RARE, () => ({ busy: closed }))
  expect(told['b']).toEqual({ accepted: HOUR / MINUTE, refused: 0 })
  expect(told['busy']?.refused).toBeLessThan(6)
  expect(untold.accepted).toBeLessThan(20)
})

test.each([
  ['two routes', ['a', 'b'], MINUTE],
  ['two routes, without a wait', ['a', 'b'], undefined],
  ['four routes', ['a', 'b', 'c', 'd'], MINUTE],
  ['four routes, without a wait', ['a', 'b', 'c', 'd'], undefined],
])('%s that are always refused slow no other after a while', (_, names, waitMs) => {
  const closed: VirtualApi = {
    ask: () => ({ accepted: false, ...(waitMs !== undefined && { waitMs }) }),
    answered: () => undefined,
  }
  const counts = driveRoutes({
    apis: Object.fromEntries(names.map(name => [name, closed])),
    everyMs: { ...Object.fromEntries(names.map(name => [name, 0])), rare: MINUTE, often: MINUTE / 6 },
    untilMs: 6 * HOUR,
    tellsRoutes: true,
  })
  expect(counts['rare']?.accepted).toBeGreaterThan(0.9 * 6 * 60)
  expect(counts['often']?.accepted).toBeGreaterThan(0.9 * 6 * 360)
})
