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

export const within =
  (since: string, until: string) =>
  (at: unknown): boolean =>
    typeof at === 'string' && at >= since && at < until

export const text = (row: Cells | undefined, column: string): string => String(row?.[column] ?? '')
