import type { Cells, DemoWarehouse } from './demo-warehouse.ts'

/** A number that the question rounds; `null` is no number. */
export type Expected = Readonly<Record<string, string | number | null>>

/** How a question is answered a second time, without SQL. */
export interface Recount {
  /** SQL expressions in place of the file's own, so that the answer does not depend on the day of the test. */
  parameters: Readonly<Record<string, string>>
  /** The rows in the order of the answer, numbers not yet rounded. */
  expected: (warehouse: DemoWarehouse) => readonly Expected[]
  /** An answer with fewer rows would prove too little. */
  least: number
}

export const quoted = (text: string): string => `'${text}'`

/** For times that parley notes by the clock of the test machine. */
export const ALWAYS = { since: quoted('0000'), until: quoted('9999') }

export const within =
  (since: string, until: string) =>
  (at: unknown): boolean =>
    typeof at === 'string' && at >= since && at < until

export const text = (row: Cells | undefined, column: string): string => String(row?.[column] ?? '')
export const minute = (at: unknown): string | null => (typeof at === 'string' ? at.slice(0, 16) : null)
export const domainOf = (address: string): string => address.replace(/^[^@]*@/, '').toLowerCase()

/** Domains of all members that there ever were. */
export function ownDomains({ before, after }: DemoWarehouse): ReadonlySet<string> {
  return new Set([...before.members, ...after.members].map(({ email }) => domainOf(String(email))))
}
