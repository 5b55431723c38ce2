import { expect, test } from 'vitest'
import { createRouteSlots } from '../../src/engine/requests/route-slots.ts'

const slotsOf = (most: number, resting: readonly string[] = []) =>
  createRouteSlots({ most: () => most, isResting: route => resting.includes(route), onEnd: () => undefined })

/** Sends as many requests as may be in flight. Returns how they end. */
function started(slots: ReturnType<typeof createRouteSlots>, route: string, most = 100) {
  const ends: ((wasAnswered: boolean) => void)[] = []
  while (ends.length < most && slots.mayTake(route)) ends.push(slots.begin(route))
  return ends
}

test('a route begins with one request in flight and has one more with each answer', () => {
  const slots = slotsOf(8)
  let inFlight = started(slots, '/a')
  const counts: number[] = []
  for (let times = 0; times < 4; times += 1) {
    counts.push(inFlight.length)
    for (const end of inFlight) end(true)
    inFlight = started(slots, '/a')
  }
  expect(counts).toEqual([1, 2, 4, 8])
})

test('a route has one request in flight after a request without a response', () => {
  const slots = slotsOf(8)
  for (let times = 0; times < 3; times += 1) for (const end of started(slots, '/a')) end(true)
  const [first, ...others] = started(slots, '/a')
  first?.(false)
  expect(slots.mayTake('/a')).toBe(false)
  for (const end of others) end(false)
  expect(started(slots, '/a')).toHaveLength(1)
})

test('a route that rests has one request in flight, whatever it answered before', () => {
  const resting: string[] = []
  const slots = slotsOf(8, resting)
  for (let times = 0; times < 3; times += 1) for (const end of started(slots, '/a')) end(true)
  resting.push('/a')
  expect(started(slots, '/a')).toHaveLength(1)
})

test.each([
  { most: 1, unanswered: 1 },
  { most: 4, unanswered: 2 },
  { most: 7, unanswered: 4 },
])(
  'of $most requests in flight, $unanswered are for routes that have not answered',
  ({ most, unanswered }) => {
    const slots = slotsOf(most)
    for (const end of started(slots, '/answers')) end(true)
    const routes = Array.from({ length: 9 }, (_, number) => `/silent/${number}`)
    expect(routes.flatMap(route => started(slots, route))).toHaveLength(unanswered)
    expect(slots.mayTake('/answers')).toBe(true)
  },
)
