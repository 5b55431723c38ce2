import type { ValueOnDelete } from './value-on-delete.ts'

/**
 * The language for declaring the tables in which parley keeps its own state: types and data, no I/O. The schema, the
 * data dictionary and the types of rows are derived from a declaration.
 */

export interface BookkeepingColumn {
  kind: 'text' | 'timestamp' | 'json' | 'integer' | 'real' | 'boolean'
  /** Key columns and columns with a default are never NULL either. */
  notNull?: true
  default?: string | number
  /** All values of a text column. */
  values?: readonly string[]
  /** What the value means, as in a resource's declaration. Only for tables that analysts use. */
  about?: string
  /** What NULL means, as a sentence. Default: the value is never NULL. */
  nullMeans?: string
  unit?: string
  /** `table.column` of the rows that the value identifies. */
  refersTo?: readonly string[]
  /** What the column holds after its row was deleted at the source. Default: no row is ever deleted. */
  onDelete?: ValueOnDelete
  /** A made-up value in its stored form. */
  example?: string
}

export interface BookkeepingIndex {
  on: readonly string[]
  /** SQL condition of a partial index. */
  where?: string
  unique?: true
}

export interface BookkeepingTable {
  name: string
  /** What the table holds, as a sentence. */
  about: string
  columns: Readonly<Record<string, BookkeepingColumn>>
  key: readonly string[]
  /** `clustered`: WITHOUT ROWID, stored in the order of `key`. */
  storage: 'rowid' | 'clustered'
  /**
   * The indices by name, without the table's name: `by_feed` of `sync_segments` is the index `sync_segments_by_feed`.
   */
  indices?: Readonly<Record<string, BookkeepingIndex>>
}

export const bookkeepingTable = <const T extends BookkeepingTable>(declaration: T): T => declaration

/** A row of the table as SQLite returns it. */
export type RowOf<T extends BookkeepingTable> = {
  -readonly [Name in keyof T['columns']]: Name extends T['key'][number]
    ? CellOf<T['columns'][Name]>
    : T['columns'][Name] extends { notNull: true } | { default: string | number }
      ? CellOf<T['columns'][Name]>
      : CellOf<T['columns'][Name]> | null
}

type CellOf<C extends BookkeepingColumn> = C['kind'] extends 'integer' | 'real'
  ? number
  : C['kind'] extends 'boolean'
    ? 0 | 1
    : C['values'] extends readonly string[]
      ? C['values'][number]
      : string

/** A row whose columns are properties in camel case, as `propertiesOf` selects them. */
export type PropertiesOf<T extends BookkeepingTable> = {
  [Name in keyof RowOf<T> as CamelCase<Name & string>]: RowOf<T>[Name]
}

type CamelCase<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Name

export const propertyOf = (column: string): string =>
  column.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())

/** SQL after SELECT for `PropertiesOf`. */
export const propertiesOf = ({ columns }: BookkeepingTable): string =>
  Object.keys(columns)
    .map(column => `${column} AS "${propertyOf(column)}"`)
    .join(', ')

/** Whether the columns are described, since analysts use the table. */
export const isDescribed = ({ columns }: BookkeepingTable): boolean =>
  Object.values(columns).some(({ about }) => about !== undefined)
