import type { AnswerRow } from './question.ts'

export { mean, median, sum } from '../counting.ts'

export type Sortable = string | number | null

/** Rows by these keys, ascending, or descending where a key begins with `-`. A missing value comes last. */
export function sortedBy<T extends AnswerRow>(rows: readonly T[], ...keys: readonly string[]): T[] {
  return [...rows].sort((a, b) => {
    for (const key of keys) {
      const column = key.replace(/^-/, '')
      const order = compare(a[column] ?? null, b[column] ?? null, key.startsWith('-'))
      if (order !== 0) return order
    }
    return 0
  })
}

function compare(a: Sortable, b: Sortable, isDown: boolean): number {
  if (a === b) return 0
  if (a === null) return 1
  if (b === null) return -1
  return (a < b ? -1 : 1) * (isDown ? -1 : 1)
}

const rounded = (digits: number) => (number: number | null) =>
  number === null ? null : Math.round(number * 10 ** digits) / 10 ** digits

export const cents = rounded(2)
export const hundredths = rounded(2)
export const share = rounded(4)

export const countOf = <T>(items: readonly T[], fits: (item: T) => boolean): number =>
  items.filter(fits).length

export const distinct = <T>(items: readonly T[]): T[] => [...new Set(items)]

/** The latest of these days or instants; null of none. */
export const latest = (times: readonly string[]): string | null => [...times].sort().at(-1) ?? null
export const earliest = (times: readonly string[]): string | null => [...times].sort().at(0) ?? null
