import { expect, test } from 'vitest'
import { knownTable } from '../../../src/publish/clickhouse/known-parts.ts'
import { completed, shown, stored } from './state-rows.ts'

const known = (
  publications: readonly number[],
  parts: ReturnType<typeof shown>[],
  rows: ReturnType<typeof stored>[],
) => knownTable({ publications: publications.map(number => completed(number)), parts }, rows, 's')

test('the parts of the last complete publication are known and shown', () => {
  const { parts, isShown } = known(
    [1, 2],
    [shown(1, 'a', 1), shown(2, 'a', 1), shown(2, '', 2)],
    [stored('a', 1), stored('', 2)],
  )
  expect(isShown).toBe(true)
  expect(parts.map(({ part, isMissing, row }) => [part, isMissing, row.written_in])).toEqual([
    ['a', false, 1],
    [null, false, 2],
  ])
})

test('what an interrupted publication has written is known, but not shown', () => {
  const rows = [stored('a', 1), stored('a', 2)]
  const { parts, isShown } = known([1], [shown(1, 'a', 1), shown(2, 'a', 2)], rows)
  expect(parts.map(({ row }) => row.written_in)).toEqual([2])
  expect(isShown).toBe(false)
})

test('a table of which an interrupted publication has written nothing is still shown', () => {
  const { isShown } = known([1], [shown(1, 'a', 1), shown(2, 'a', 1)], [stored('a', 1)])
  expect(isShown).toBe(true)
})

test('a table that lost a part in an interrupted publication is not shown', () => {
  const rows = [stored('a', 1), stored('b', 1)]
  const { isShown } = known([1], [shown(1, 'a', 1), shown(1, 'b', 1), shown(2, 'a', 1)], rows)
  expect(isShown).toBe(false)
})

test('a table that the last publication left out is neither known nor shown', () => {
  expect(known([1, 2], [shown(1, 'a', 1)], [stored('a', 1)])).toEqual({ parts: [], isShown: false })
})

test.each([
  ['no rows', []],
  ['another number of rows', [{ ...stored('a', 1), rows: 2 }]],
  ['rows of another publication', [stored('a', 2)]],
])('a part of which the server has %s is missing', (_, rows) => {
  const { parts } = known([1], [shown(1, 'a', 1)], rows)
  expect(parts).toMatchObject([{ part: 'a', isMissing: true }])
})
