import { expect, test } from 'vitest'
import { createKeyDoubt } from '../../src/engine/requests/key-doubt.ts'

const MINUTE = 60_000
const LISTS = ['members', 'teams', 'collections'] as const
type List = (typeof LISTS)[number]

/** A doubt about the key of an API with three lists. `states` has what each step led to. */
function startDoubt() {
  let now = 0
  const healthChecks = LISTS.map(resource => ({
    resource,
    feed: `${resource}.list`,
    request: { route: resource, path: resource },
  }))
  const doubt = createKeyDoubt(() => healthChecks, { elapsed: () => now })
  return {
    doubt,
    next: () => doubt.next()?.resource,
    pass: (ms: number) => {
      now += ms
    },
  }
}

test.each<
  [string, readonly [List, 'answer' | 'unauthorized' | 'retry' | 'refused'][], (string | undefined)[]]
>([
  ['refused, when the next list refuses it', [['members', 'unauthorized']], ['refused']],
  ['accepted, when the next list is answered', [['members', 'answer']], ['accepted']],
  [
    'not decided by a list that fails, and then the next one counts',
    [
      ['members', 'retry'],
      ['collections', 'answer'],
    ],
    [undefined, 'accepted'],
  ],
  [
    'refused, when no list decides',
    [
      ['members', 'retry'],
      ['collections', 'refused'],
    ],
    [undefined, 'refused'],
  ],
])('a key that one route refuses is %s', (_, answers, verdicts) => {
  const { doubt, next } = startDoubt()
  expect(next()).toBeUndefined()
  expect(doubt.refused('teams')).toBe(true)
  const found = answers.map(([list, kind]) => {
    expect(next()).toBe(list)
    return doubt.checked(list, { kind })
  })
  expect(found).toEqual(verdicts)
  expect(doubt.isOfRoute('teams')).toBe(verdicts.includes('accepted'))
})

test('what a 401 of a route means is asked again after a quarter of an hour', () => {
  const { doubt, next, pass } = startDoubt()
  doubt.refused('teams')
  doubt.checked('members', { kind: 'answer' })
  pass(14 * MINUTE)
  expect([next(), doubt.isOfRoute('teams')]).toEqual([undefined, true])
  pass(MINUTE)
  expect(doubt.isOfRoute('teams')).toBe(false)
})

test('a 401 counts at once when each other list refuses the key by itself', () => {
  const { doubt } = startDoubt()
  for (const [route, other] of [
    ['teams', 'members'],
    ['collections', 'members'],
  ] as const) {
    expect(doubt.refused(route)).toBe(true)
    doubt.checked(other, { kind: 'answer' })
  }
  expect(doubt.refused('members')).toBe(false)
})

test('a health check that is refused puts the key in doubt', () => {
  const { doubt, next } = startDoubt()
  expect(doubt.checked('members', { kind: 'unauthorized' })).toBeUndefined()
  expect(next()).toBe('teams')
})
