import { expect, test } from 'vitest'
import { wrongIn } from './measure.ts'

const members = (rows: Record<string, string>) =>
  new Map([['members', new Map(Object.entries(rows))] as const])

test.each([
  ['nothing', { a: 'Ana' }, { missing: 0, gone: 0, stale: 0 }],
  ['a row that is not there', {}, { missing: 1, gone: 0, stale: 0 }],
  ['a row that the API lists no more', { a: 'Ana', b: 'Bo' }, { missing: 0, gone: 1, stale: 0 }],
  ['a value from before an edit', { a: 'Anna' }, { missing: 0, gone: 0, stale: 1 }],
])('%s is counted as wrong', (_, found: Record<string, string>, wrong) => {
  expect(wrongIn(members(found), members({ a: 'Ana' }))).toEqual(wrong)
})
