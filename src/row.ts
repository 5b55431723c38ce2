/** A payload as rows: what the parser makes and the store writes. */

export type Cell = string | number | null

export interface ParsedRow {
  /** One cell for each column of the table, in declaration order; null for columns that parley fills. */
  cells: Cell[]
  /** JSON object of what has no place in the columns. */
  extra: string | null
}

export interface ParsedItem extends ParsedRow {
  /** Rows of every table below, at any depth, by table name; a table without rows has an empty list. */
  children: ReadonlyMap<string, ParsedRow[]>
  /** Payload fields that a feed takes itself. */
  taken: Readonly<Record<string, unknown>>
}
