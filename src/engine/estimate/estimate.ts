import { PAGE_ROWS } from './sample.ts'

/** Amounts with their certainty, and how they combine. Pure. */

/** From the most to the least certain. A sum is as certain as its least certain part. */
export const CERTAINTIES = ['exact', 'about', 'at least', 'unknown'] as const

export type Certainty = (typeof CERTAINTIES)[number]

export interface Amount {
  value: number
  certainty: Certainty
}

export const exactly = (value: number): Amount => ({ value, certainty: 'exact' })
export const about = (value: number): Amount => ({ value, certainty: 'about' })
export const atLeast = (value: number): Amount => ({ value, certainty: 'at least' })
export const UNKNOWN: Amount = { value: 0, certainty: 'unknown' }

export function leastSure(...certainties: readonly Certainty[]): Certainty {
  return CERTAINTIES[Math.max(0, ...certainties.map(each => CERTAINTIES.indexOf(each)))] ?? 'unknown'
}

/** With an unknown part, the sum is a lower bound. */
export function sum(...parts: readonly Amount[]): Amount {
  const value = parts.reduce((total, part) => total + part.value, 0)
  const unknown = parts.some(({ certainty }) => certainty === 'unknown')
  const certainty = leastSure(...parts.map(part => part.certainty))
  if (unknown) return parts.every(part => part.certainty === 'unknown') ? UNKNOWN : atLeast(value)
  return { value, certainty }
}

/** Requests that list this many rows; at least one. */
export function pages({ value, certainty }: Amount, size: number = PAGE_ROWS): Amount {
  return { value: Math.max(1, Math.ceil(value / size)), certainty }
}

/** The smaller of two counts. It is exact when the other count cannot be smaller. */
export function smaller(one: Amount, other: Amount): Amount {
  const [less, more] = one.value <= other.value ? [one, other] : [other, one]
  if (less.certainty === 'at least' || less.certainty === 'unknown') {
    return { value: less.value, certainty: 'at least' }
  }
  return more.certainty === 'about' ? { ...less, certainty: 'about' } : less
}

/** Copies of one e-mail are read in canonical order until one has a text (WAREHOUSE, Messages). */
export interface ListedMessage {
  header: string | null
  /** The share settings hide subjects together with texts. */
  hidden: boolean
}

/** Body requests for the messages of one page, newest first as the list gives them. */
export function bodiesFor(messages: readonly ListedMessage[]): number {
  const groups = new Map<string, ListedMessage[]>()
  messages.forEach((message, index) => {
    const name = message.header ? message.header : `id:${index}`
    groups.set(name, [...(groups.get(name) ?? []), message])
  })
  return [...groups.values()].reduce((total, copies) => total + readsOf(copies.reverse()), 0)
}

function readsOf(copies: readonly ListedMessage[]): number {
  const first = copies.findIndex(({ hidden }) => !hidden)
  return first < 0 ? copies.length : first + 1
}
