/**
 * The declaration language for resources: types and data, no I/O.
 * A resource has tables and feeds. A table declares the path of each column in the API's payload. The schema, the
 * parser, the upsert, the views and the documentation are derived from it. A feed is one way of reading the resource:
 * a sync mode, its endpoint, its paging, and the error statuses that are expected answers.
 */

import type { Cell, ReadCell } from './parsed-item.ts'
import type { ResourceName } from './resource-names.ts'

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

/**
 * Page sizes follow from the style: `MAX_LIMITS` in `api/paging.ts`. `any`: the API's description does not state the paging
 * of this list. The first answer shows the paging.
 */
export type ListPaging = 'v2-cursor' | 'v1-cursor' | 'v1-page' | 'any'

/**
 * HTTP statuses that are expected answers of an endpoint rather than faults:
 * - `absent`: the API does not publish the requested item;
 * - `withheld`: the item exists, but the API key may not read it;
 * - `unavailable`: the workspace does not offer the endpoint.
 */
export type StatusMeanings = Readonly<Partial<Record<number, 'absent' | 'withheld' | 'unavailable'>>>

export interface ListRequest {
  /** Route template; `{scope}` is replaced by the scope's key. */
  path: string
  paging: ListPaging
  /** Query parameter for the scope, where the path has no `{scope}`. */
  scopeParameter?: string
}

export interface ReadRequest {
  /** Route template; `{key}` and `{scope}` are replaced. */
  path: string
  /** Where the answer has the record: at the top (`bare`), in `data`, or either where the spec does not state it. */
  placement: 'bare' | 'data' | 'either'
  /** The payload field that must equal the requested key. An answer with another value is a fault and is retried. */
  identity?: string
}

/** How to confirm that rows missing from a list no longer exist. */
export type Evidence =
  /** One read per missing key. */
  | { by: 'single'; read: ReadRequest }
  /**
   * One list request with up to 100 `ids`, which must be UUIDs, then one read per key missing from its answer. The
   * reads are needed since the list request goes to the list's own endpoint: what hides a row from the list may hide
   * the row again.
   */
  | { by: 'ids'; path: string; read: ReadRequest }
  /** The detail feed of the same resource reads each missing key. */
  | { by: 'detail' }
  /** No read shows a single row. A second complete pass, after the first, must also lack the row. */
  | { by: 'second-pass' }

/** A task for another feed, written in the transaction that stores a row. */
export interface FollowUp {
  /** What the write did to the row. */
  on: readonly ('inserted' | 'changed' | 'revived')[]
  /** Column → values: only rows that have one of these values write the task. */
  when?: Readonly<Record<string, readonly string[]>>
  /** A change of these columns alone writes no task. */
  unlessOnly?: readonly string[]
  /** `resource.feed` that gets the task. */
  feed: string
  /** Column with the key to read. */
  key: string
  /** Column with the event time: tasks are done newest first. */
  sort?: string
  /** `add`: a first read, if the key has no task or read yet; `demand`: a new read as soon as possible. */
  how: 'add' | 'demand'
}

/**
 * Tasks that re-read the CRM records to which a stored row refers, or the associations of these records. The tasks are
 * written in the transaction that stores the row. With `child`, a record gets a task only after the list of records was
 * read, and only if the row's time is later than that read or the record is not stored.
 */
export interface RecordFollowUp {
  on: FollowUp['on']
  when?: FollowUp['when']
  records: {
    /** Child table whose rows name the records. Default: the row itself names one. */
    child?: string
    /** Columns with the record's object and key. */
    object: string
    key: string
    /** Column → value: only child rows with these values count. Where no row has them, all rows count. */
    prefer?: Readonly<Record<string, string>>
    /** Only records that the row names together and that no stored association joins. */
    unassociatedOnly?: boolean
  }
  /** Column with the row's time. */
  at: string
  /** `resource.feed` that gets the tasks: a snapshot feed with `changes`, or an item feed with `associations`. */
  feed: string
}

/**
 * A list that returns the newest rows first and can only be filtered by event time. The engine divides the list's time
 * axis into segments.
 */
export interface TimelineFeed {
  mode: 'timeline'
  list: ListRequest
  table: string
  /** The column of the event time. */
  time: string
  /** The query parameters for the bounds of a segment. Both bounds are inclusive. */
  bounds: { from: string; to: string }
  evidence: Evidence
  followUps?: readonly (FollowUp | RecordFollowUp)[]
  /** A column of another table with keys of this table. Keys without a row here are requested as in `evidence`. */
  lookup?: { resource: ResourceName; table: string; column: string; where: string }
  expected?: StatusMeanings
}

/** A list without a time filter: every pass reads all of it. */
export interface SnapshotFeed {
  mode: 'snapshot'
  list: ListRequest
  table: string
  /** `rows`: each item is the whole payload. `keys`: each item only gives a key, and the detail feed reads the row. */
  lists: 'rows' | 'keys'
  /** How often the daemon reads the list, in ms. Default: the interval of all snapshot feeds. */
  intervalMs?: number
  /** Payload fields that may hold the key. The first that the item has is used. */
  keyFields: readonly string[]
  /** For `keys`: keys to read even when the list does not return them. */
  always?: readonly string[]
  /** For `keys`: the field of an item that has the event time. Undefined when the items have none. */
  timeField?: string
  /** One list per row of another table, such as CRM records per object. `always` are scopes to read in any case. */
  scope?: { table: string; column: string; always?: readonly string[] }
  evidence: Evidence
  followUps?: readonly RecordFollowUp[]
  /**
   * For `rows` with evidence by `ids`: how follow-ups re-read rows between two passes. These re-reads send the `ids`
   * request.
   */
  changes?: ChangesRead
  expected?: StatusMeanings
}

export interface ChangesRead {
  /** The column with the time of the row's last change. */
  updated: string
  /** The JSON column with the row's field values. */
  values: string
}

/** One request per row, newest first. */
export interface ItemFeed {
  mode: 'item'
  read: ReadRequest | ListRequest
  /** How the answer is stored. The engine has one handler for each way. */
  stores: 'row' | 'body' | 'transcript' | 'results' | 'setting' | 'links'
  table: string
  /**
   * Rows that still need their first read: those of `table` that meet `where`. A partial index serves the condition.
   * With `afterListOf`, a row waits until that resource's list has been read down to a day before the row's time.
   */
  pending?: {
    table: string
    key: string
    where: string
    time: string
    afterListOf?: ResourceName
    /** SQL condition for rows whose answer has content: that content may change without a change of the row. */
    mayChange?: string
  }
  /** True: every backfill reads all rows again. False: only rows that are missing, changed or due. */
  everyRound: boolean
  /** True: rows known to be older than `sync.since` are not read. */
  boundBySince: boolean
  /** The answer is final once this column has this value. Until then it is read again at growing intervals. */
  readyWhen?: { column: string; is: string }
  /** For `stores: 'row'`: the column of the event time. A row with a later event time is read again sooner. */
  time?: string
  /**
   * `resource.feed` that reads the row which this feed completes. After the first refusal here, that feed reads the row
   * again: the answer for the row shows what the refusal means.
   */
  partOf?: string
  followUps?: readonly FollowUp[]
  /** For `links`: the snapshot feed of the records, and the pairs of objects. Each pair is stored in this order. */
  associations?: { of: string; kinds: readonly (readonly [string, string])[] }
  expected?: StatusMeanings
}

/** A log that is read period by period. The end of a period is exclusive. */
export interface PeriodicFeed {
  mode: 'periodic'
  list: ListRequest
  table: string
  /** The column of the event time. */
  time: string
  /**
   * The query parameter for the period's start. The setting `access_log.end_parameter` names the parameter for its end.
   */
  from: string
  expected?: StatusMeanings
}

/** A resource that is one document. */
export interface SingletonFeed {
  mode: 'singleton'
  read: ReadRequest
  table: string
  /** `row`: the fields of the answer become columns. `document`: the whole answer goes to the column `document`. */
  stores: 'row' | 'document'
  expected?: StatusMeanings
}

export type Feed = TimelineFeed | SnapshotFeed | ItemFeed | PeriodicFeed | SingletonFeed

/** A row of a table: its values by column. */
export type SourceRow = Readonly<Record<string, string | number | null>>

/** How `sync_status` counts a resource. */
export interface StatusSource {
  table: string
  /** SQL condition: which live rows count. Default: all. */
  where?: string
  /** Column of the event time. */
  newest?: string
  /** For a resource that completes rows of another one: SQL condition for a live row that still needs its read. */
  pending?: string
  /** What the API may still be preparing, as a plural noun such as `transcripts`. `sync_status` shows it. */
  waitsFor?: string
  /** For a resource that completes rows of another one: how its rows are counted by the outcome of their read. */
  byState?: CountedByState
}

export interface CountedByState {
  /** SQL expression of the outcome. It is `present` for exactly the rows that meet `where` of the source. */
  state: string
  /** What the rows are, as a plural noun. */
  rows: string
  /** What is read for each row, as a singular noun. */
  part: string
}

/** The chapter of the documentation that describes the resource. */
export type ResourceArea = 'people' | 'timeline' | 'mail' | 'meetings' | 'crm' | 'service'

export interface ReadWithoutFeed {
  /** Each parameter is named after the item whose id it takes: `/v1/teams/{team}`. */
  path: string
  placement: ReadRequest['placement']
  /** The table whose columns the item is checked against. */
  table: string
  expected?: StatusMeanings
  /**
   * The fields of an item that may hold the last id of `path`. The item is in the list at `path` without that id.
   * Default: the id field of the item.
   */
  idFields?: readonly string[]
}

export interface Resource {
  name: ResourceName
  about: string
  area: ResourceArea
  /** Resources whose rows the requests of this one are built from. */
  parents: readonly ResourceName[]
  /**
   * `parley resync` of that resource also reads this resource again: each read here belongs to a row of that resource.
   */
  readAgainWith?: ResourceName
  /** Tables that this resource owns, without their children. */
  tables: readonly Table[]
  /** The feeds by name. Tasks and log lines identify a feed as `resource.feed`. */
  feeds: Readonly<Record<string, Feed>>
  /** Single reads of the API that no feed sends. `parley doctor` checks them too. */
  readsWithoutFeed?: readonly ReadWithoutFeed[]
  /** True when the full-text indices contain texts of this resource. */
  isSearched?: true
  status: StatusSource
  /** By feed name: a payload as in the API's specification, for tests and documentation. */
  example: Readonly<Record<string, unknown>>
}

export const resource = (declaration: Resource): Resource => declaration
