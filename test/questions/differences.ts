import type { Expected } from './recount.ts'

/** Questions round to one digit. */
const NEAR = 0.0501

/** The first twenty rows that only one of two answers has. */
export function differences(
  answer: readonly Expected[],
  expected: readonly Expected[],
  near = NEAR,
): string[] {
  const count =
    answer.length === expected.length ? [] : [`${answer.length} rows, expected ${expected.length}`]
  const cells = expected.flatMap((row, place) => {
    const found = answer[place] ?? {}
    const columns = [...new Set([...Object.keys(row), ...Object.keys(found)])]
    return columns
      .filter(column => !isSame(found[column], row[column], near))
      .map(column => `row ${place}: ${column} is ${found[column]}, expected ${row[column]}`)
  })
  return [...count, ...cells].slice(0, 20)
}

function isSame(
  found: string | number | null | undefined,
  wanted: string | number | null | undefined,
  near: number,
): boolean {
  if (typeof found === 'number' && typeof wanted === 'number') return Math.abs(found - wanted) <= near
  return found === wanted
}
