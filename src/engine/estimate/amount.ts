/** Amounts with their certainty, and how they combine. Pure. */

/** From the most to the least certain. A sum is as certain as its least certain part. */
const CERTAINTIES = ['exact', 'about', 'at least', 'unknown'] as const

export interface Amount {
  value: number
  certainty: (typeof CERTAINTIES)[number]
}

export const exactly = (value: number): Amount => ({ value, certainty: 'exact' })
export const about = (value: number): Amount => ({ value, certainty: 'about' })
export const atLeast = (value: number): Amount => ({ value, certainty: 'at least' })
export const UNKNOWN: Amount = { value: 0, certainty: 'unknown' }

/** With an unknown part, the sum is a lower bound. */
export function sum(...parts: readonly Amount[]): Amount {
  const value = parts.reduce((total, part) => total + part.value, 0)
  const ranks = parts.map(({ certainty }) => CERTAINTIES.indexOf(certainty))
  const certainty = CERTAINTIES[Math.max(0, ...ranks)] ?? 'unknown'
  if (certainty !== 'unknown') return { value, certainty }
  return parts.every(part => part.certainty === 'unknown') ? UNKNOWN : atLeast(value)
}

/** An amount minus a known part of it; at least 0. */
export function without({ value, certainty }: Amount, known: number): Amount {
  return { value: Math.max(0, value - known), certainty }
}

/** The number of requests that list this many rows, with `size` rows a page; at least one. */
export function pages({ value, certainty }: Amount, size: number): Amount {
  return { value: Math.max(1, Math.ceil(value / size)), certainty }
}

/** The smaller of two counts. It is exact only if it is known exactly and the other count cannot be smaller. */
export function smaller(one: Amount, other: Amount): Amount {
  const [less, more] = one.value <= other.value ? [one, other] : [other, one]
  if (less.certainty === 'at least' || less.certainty === 'unknown') return atLeast(less.value)
  return more.certainty === 'about' ? about(less.value) : less
}
