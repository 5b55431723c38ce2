import { expect, test } from 'vitest'
import { changesOf, momentsOf } from '../../src/commands/demo/daily-changes.ts'

const DAY_MS = 86_400_000

test('the moments of a day are in order and end with the day, so that the last is the present', () => {
  for (let day = 1; day <= 100; day += 1) {
    const moments = momentsOf(day)
    expect(moments).toEqual([...moments].sort((one, other) => one - other))
    expect(new Set(moments).size).toBe(moments.length)
    expect(moments[0]).toBeGreaterThan(0)
    expect(moments.at(-1)).toBe(DAY_MS)
  }
})

test('ten weeks have every kind of change that a question asks for, and a larger workspace has more of them', () => {
  const of = (messages: number) => Array.from({ length: 75 }, (_, day) => changesOf(day + 1, messages)).flat()
  const kinds = new Set(
    of(1000).map(change => `${change.kind} ${'resource' in change ? change.resource : ''}`),
  )
  expect([...kinds].sort()).toEqual([
    'delete crm_records',
    'delete meetings',
    'delete messages',
    'edit crm_records',
    'edit meetings',
    'edit playbooks',
    'hide meetings',
    'hide members',
    'publish crm_records',
    'publish meetings',
    'publish messages',
  ])
  expect(of(4000).length).toBeGreaterThan(3 * of(1000).length)
})
