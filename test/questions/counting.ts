/** Parts of the recounts: plain lists and maps. */

export const sum = (numbers: readonly number[]): number => numbers.reduce((all, each) => all + each, 0)

/** null of nothing. */
export const mean = (numbers: readonly number[]): number | null =>
  numbers.length === 0 ? null : sum(numbers) / numbers.length

/** The middle, or the mean of the two in the middle; null of nothing. */
export function median(numbers: readonly number[]): number | null {
  const sorted = [...numbers].sort((a, b) => a - b)
  const half = sorted.length / 2
  return mean(sorted.slice(Math.ceil(half) - 1, Math.floor(half) + 1))
}

export type Key = string | number | null

/** Rows in order of these keys; a key that is `down` comes largest first. NULL is smaller than all else, as in SQL. */
export function ordered<T>(
  rows: readonly T[],
  ...keys: readonly { by: (row: T) => Key; down?: true }[]
): T[] {
  return [...rows].sort((a, b) => {
    for (const { by, down } of keys) {
      const order = compare(by(a), by(b)) * (down ? -1 : 1)
      if (order !== 0) return order
    }
    return 0
  })
}

function compare(a: Key, b: Key): number {
  if (a === b) return 0
  if (a === null) return -1
  if (b === null) return 1
  if (typeof a === 'string' && typeof b === 'string') return Buffer.compare(Buffer.from(a), Buffer.from(b))
  return a < b ? -1 : 1
}

const DAY = 86_400_000

/** Whole days from the day of one instant to the day of another. */
export const daysBetween = (from: string, to: string): number =>
  Math.round((Date.parse(to.slice(0, 10)) - Date.parse(from.slice(0, 10))) / DAY)

/** Days with their parts. */
export const exactDays = (from: string, to: string): number => (Date.parse(to) - Date.parse(from)) / DAY
export const exactHours = (from: string, to: string): number => exactDays(from, to) * 24
