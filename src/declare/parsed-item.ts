/** A parsed payload: what the parser returns and the store writes. */

export type Cell = string | number | null

export type ReadCell = (column: string) => Cell

export interface ParsedRow {
  /** One cell per column of the table, in declaration order; null for columns that parley sets. */
  cells: Cell[]
  /** JSON object for the column `_extra`: unknown fields, and values that do not fit their column. */
  extra: string | null
}

export interface ParsedItem extends ParsedRow {
  /** Rows of every child table, at any depth, by table name. A table without rows has an empty list. */
  children: ReadonlyMap<string, ParsedRow[]>
  /** Values of the fields that the table declares as `feedFields`. */
  feedFields: Readonly<Record<string, unknown>>
}
