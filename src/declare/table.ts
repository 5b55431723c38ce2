import type { Cell, ReadCell } from './parsed-item.ts'

/**
 * Declares tables and their columns: types and data, no I/O. A column declares its path in the API's payload. The schema,
 * the parser, the upsert, the views and the documentation are derived from it.
 */

export type ColumnKind = 'text' | 'integer' | 'real' | 'boolean' | 'timestamp' | 'date' | 'json'

/**
 * Where a column's value comes from:
 * - `payload`: the field at `path`;
 * - `parent`: a column of the parent table's row (child tables only);
 * - `position`: the 0-based index in the API's array;
 * - `request`: the scope or key of the request;
 * - `row`: computed from the other cells of the row, by the parser;
 * - `parley`: parley sets it; the parser never does.
 */
export type ColumnSource =
  | { from: 'payload'; path: readonly string[] }
  | { from: 'parent'; column: string }
  | { from: 'position' }
  | { from: 'request'; path?: readonly string[] }
  | { from: 'row'; value: (cell: ReadCell) => Cell }
  | { from: 'parley' }

export interface Column {
  kind: ColumnKind
  source: ColumnSource
  /** What the value means: one sentence for the data dictionary. */
  about: string
  notNull?: boolean
  /** Default value as an SQL literal. Only for columns that parley sets. */
  default?: string
  /**
   * For a `json` column that holds a list of objects: the fields to keep. Each object is stored as an array of their
   * values, in this order, which saves the bytes of the field names.
   */
  tuple?: readonly string[]
  /**
   * Personal content: what people wrote or said, or who they are. It is purged `retention.withdrawn_days` after the
   * row was deleted or withheld. `_extra` is always content.
   */
  content?: true
  /** SQL expression over the row: the column's value after the row's content is purged. Default: NULL. */
  whenPurged?: string
  /**
   * Unit of a quantity; `NOT_STATED` where the API does not state it. Undefined for anything that is not a quantity.
   */
  unit?: string
  /** What NULL means, as a sentence. Default: the table's `nullMeans`. */
  nullMeans?: string
  /**
   * True for ids of the API, of this row or of other rows: a UUID is stored in lower case. In a `json` column, each
   * string that is a UUID is stored so.
   */
  hasIds?: true
  /** `table.column` of the rows that the value identifies: soft references, not enforced. */
  refersTo?: readonly string[]
  /** Whether each value has its row in `refersTo`. Default: only for keys of the parent and of `livesWith`. */
  resolves?: true
  /** All values that the column may hold, as parley sets them or as the API states them. */
  values?: readonly string[]
  /**
   * True for a column with few values that the API does not state, and that say nothing of people: `column_values`
   * lists the values that occur.
   */
  isEnumerated?: true
  /** A made-up value in its stored form. Needed where the resource's example payload has none. */
  example?: string
  /** For a column without a path in the payload: the API field from which it gets the value. */
  apiField?: string
}

/** Values, each with what it means; '' where its name says it. */
export type ValueMeanings = Readonly<Record<string, string>>

/** SQL over the row: the column's value after the purge of its content; undefined for a column that a purge leaves. */
export function valueWhenPurged({
  content,
  whenPurged,
}: {
  content?: boolean | undefined
  whenPurged?: Column['whenPurged'] | undefined
}): string | undefined {
  return content || whenPurged !== undefined ? (whenPurged ?? 'NULL') : undefined
}

/** The values in a sentence: `a`, `b` (its meaning) or `c`. */
export function oneOf(values: readonly string[] | ValueMeanings): string {
  const shown = isList(values)
    ? values.map(value => `\`${value}\``)
    : Object.entries(values).map(([value, about]) =>
        about === '' ? `\`${value}\`` : `\`${value}\` (${about})`,
      )
  return shown.length < 2 ? shown.join('') : `${shown.slice(0, -1).join(', ')} or ${shown.at(-1)}`
}

/** The values with their meanings, without a full stop: `a`: its meaning; `b`: its meaning. */
export function meaningsOf(values: ValueMeanings): string {
  return Object.entries(values)
    .map(([value, about]) => `\`${value}\`: ${about}`)
    .join('; ')
}

const isList = (values: readonly string[] | ValueMeanings): values is readonly string[] =>
  Array.isArray(values)

/** `unit` of a quantity whose unit the API does not state. The value is stored as sent. */
export const NOT_STATED = 'not stated'

export interface Index {
  name: string
  /**
   * `name`, or `name DESC`. The lists return the newest rows first; an index in the same order is filled from one end,
   * so its pages in the database file stay full.
   */
  columns: readonly string[]
  /** SQL condition of a partial index. */
  where?: string
}

export interface Table {
  name: string
  /** What one row is: one or two sentences for the data dictionary. */
  about: string
  /**
   * What NULL means in columns without a `nullMeans`, as a sentence. Default: the API sent null or nothing. A table
   * that sets it must explain it in `about` too.
   */
  nullMeans?: string
  /**
   * - `entity`: has its own life. It has `_first_seen_at`, `_synced_at`, `_changed_at`, `_deleted_at` and `_extra`.
   * - `child`: rows of a list in a payload, replaced together with the payload's row. It has `_extra`.
   * - `link`: rows that parley builds from keys or from other tables. It has no payload and none of these columns.
   */
  kind: 'entity' | 'child' | 'link'
  columns: Readonly<Record<string, Column>>
  /** Unique key. For an entity its last column is the key that tasks and deletions use. */
  key: readonly string[]
  /**
   * `rowid`: the primary key is an integer `_id` and `key` is a unique index; for large tables with several indices
   * or a full-text index. `clustered`: WITHOUT ROWID, stored in the order of `key`.
   */
  storage: 'rowid' | 'clustered'
  indices: readonly Index[]
  /** Lists inside the payload. Each is a separate table whose rows are replaced together with the payload's row. */
  children: readonly Child[]
  /** Payload fields that the handler of the feed stores. They have no column and do not go to `_extra`. */
  feedFields: readonly string[]
  /** The column that says when the API last changed the row. An answer with an earlier time is older than the row. */
  changedAt?: string
  /** True where two endpoints return different sets of fields. `_extra` then keeps the unknown fields of both. */
  mergesExtra: boolean
  /**
   * For a table outside the owner's payload: a row counts as live while its owner's row in `livesWith.table` is live.
   */
  livesWith?: LivesWith
  /** For an entity: SQL condition that a row must meet, besides `_deleted_at IS NULL`, for its children to be live. */
  openWhen?: string
  /** What deleting a row of this table does to other tables, in the same transaction. */
  cascades: readonly Cascade[]
  /**
   * For child and link tables: the whole rows are personal content, and even their number is. They are removed when
   * the content of the row they belong to is purged.
   */
  content: boolean
}

/**
 * What the deletion of a row does to its rows of another table: an entity's get `_deleted_at`, a link's are removed.
 */
export interface Cascade {
  table: string
  /** The other table's column → this table's column. */
  on: Readonly<Record<string, string>>
  /** While a row of this table is deleted or withheld, answers store none of its rows of the other table. */
  blocksInserts?: true
}

export interface LivesWith {
  table: string
  /** This table's column → the other table's column. */
  on: Readonly<Record<string, string>>
}

export interface Child {
  table: Table
  /** Path of the list in the parent's payload. */
  list: readonly string[]
  /** `scalar`: the list holds plain values. The child's columns read them from the path `value`. */
  items: 'object' | 'scalar'
}

interface ColumnOptions
  extends Pick<
    Column,
    | 'content'
    | 'hasIds'
    | 'unit'
    | 'nullMeans'
    | 'refersTo'
    | 'resolves'
    | 'values'
    | 'isEnumerated'
    | 'example'
    | 'apiField'
  > {
  /** Dot-separated path in the payload. Default: the column's name. */
  from?: string
}

type ColumnBuilder = (about: string, options?: ColumnOptions) => (name: string) => Column

const payloadColumn =
  (kind: ColumnKind): ColumnBuilder =>
  (about, { from, ...options } = {}) =>
  name => ({ kind, about, source: { from: 'payload', path: (from ?? name).split('.') }, ...options })

export const text = payloadColumn('text')
export const id: ColumnBuilder = (about, options) => text(about, { ...options, hasIds: true })
export const integer = payloadColumn('integer')
export const real = payloadColumn('real')
export const boolean = payloadColumn('boolean')
export const timestamp = payloadColumn('timestamp')
export const date = payloadColumn('date')
export const json = payloadColumn('json')

export const tuples =
  (about: string, tuple: readonly string[], options: ColumnOptions = {}) =>
  (name: string): Column => ({ ...payloadColumn('json')(about, options)(name), tuple })

/** A column copied from the parent table's row, such as `meeting_id` in every child table of `meetings`. */
export const parent =
  (column: string, kind: ColumnKind, about: string, options: Pick<Column, 'refersTo'> = {}) =>
  (): Column => ({ kind, about, source: { from: 'parent', column }, notNull: true, ...options })

export const position = () => (): Column => ({
  kind: 'integer',
  about: "0-based index in the API's array",
  source: { from: 'position' },
  notNull: true,
})

/** The scope or key of the request. With `from`, a payload field that has another value goes to `_extra`. */
export const requestKey =
  (about: string, { from, ...options }: ColumnOptions = {}) =>
  (): Column => ({
    kind: 'text',
    about,
    source: from === undefined ? { from: 'request' } : { from: 'request', path: from.split('.') },
    notNull: true,
    ...options,
  })

/** A column that parley sets itself. */
export const own =
  (
    kind: ColumnKind,
    about: string,
    options: Omit<ColumnOptions, 'from'> & Pick<Column, 'notNull' | 'default' | 'whenPurged'> = {},
  ) =>
  (): Column => ({ kind, about, source: { from: 'parley' }, ...options })

/** A column that follows from other columns of its row. */
export const derived =
  (
    kind: ColumnKind,
    about: string,
    value: (cell: ReadCell) => Cell,
    options: Omit<ColumnOptions, 'from'> = {},
  ) =>
  (): Column => ({ kind, about, source: { from: 'row', value }, ...options })

interface TableOptions
  extends Pick<Table, 'about' | 'key'>,
    Partial<Omit<Table, 'about' | 'key' | 'name' | 'kind' | 'columns' | 'indices' | 'content'>> {
  columns: Readonly<Record<string, (name: string) => Column>>
  indices?: Readonly<Record<string, { on: readonly string[]; where?: string }>>
  content?: true
}

function table(kind: Table['kind'], name: string, { indices = {}, ...options }: TableOptions): Table {
  const columns = Object.fromEntries(
    Object.entries(options.columns).map(([column, build]) => [column, build(column)]),
  )
  for (const column of options.key) {
    const declared = columns[column]
    if (!declared) throw new TypeError(`${name}: key column ${column} is not declared`)
    columns[column] = { ...declared, notNull: true }
  }
  return {
    storage: 'clustered',
    children: [],
    feedFields: [],
    mergesExtra: false,
    cascades: [],
    content: false,
    ...options,
    name,
    kind,
    columns,
    indices: Object.entries(indices).map(([suffix, { on, ...index }]) => ({
      name: `${name}_${suffix}`,
      columns: on,
      ...index,
    })),
  }
}

export const entity = (name: string, options: TableOptions): Table => table('entity', name, options)

export const link = (name: string, options: TableOptions): Table => table('link', name, options)

export const child = (
  name: string,
  { list, items = 'object', ...options }: TableOptions & { list: string; items?: Child['items'] },
): Child => ({ table: table('child', name, options), list: list.split('.'), items })

// ---------------------------------------------------------------------------------------------- feeds
