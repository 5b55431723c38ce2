/**
 * The declaration language: what a resource is, as types and data, without any I/O.
 * A resource has tables and feeds. A table says where each of its columns stands in a payload; from it come the
 * schema, the parser, the upsert, the views and the documentation. A feed is one way in which the API tells of the
 * resource: a sync mode with its endpoint, its paging and the answers that are no faults.
 */

export type ColumnKind = 'text' | 'integer' | 'real' | 'boolean' | 'timestamp' | 'date' | 'json'

/**
 * Where a column's value comes from: the payload; a column of the parent's row (children); the index in the API's
 * array; the scope or key of the request; or parley itself, in which case the payload has no say.
 */
export type ColumnSource =
  | { from: 'payload'; path: readonly string[] }
  | { from: 'parent'; column: string }
  | { from: 'position' }
  | { from: 'request'; path?: readonly string[] }
  | { from: 'parley' }

export interface Column {
  kind: ColumnKind
  source: ColumnSource
  /** One sentence for analysts: what the value means. */
  about: string
  notNull?: boolean
  /** An SQL literal. Only for columns that parley fills. */
  default?: string
  /** An SQL expression over the row: the column is not stored but computed from it. Only for columns that parley fills. */
  computed?: string
  /** For `json`: a list of objects, kept as arrays of these fields' values to save their names' bytes. */
  tuple?: readonly string[]
  /** What people wrote or said, or who they are: erased a time after the row was withdrawn. `_extra` always is. */
  content?: true
  /** What stands here once the row's content is erased, as an SQL expression over the row. */
  whenErased?: string
  /** What a quantity is measured in; `NOT_STATED` where the API does not say. Nothing that is no quantity has one. */
  unit?: string
  /** What NULL means, as a sentence, where it is not what it is in the table's other columns. */
  nullMeans?: string
  /** `table.column`: whose rows the value names. Either side may be missing. */
  refersTo?: readonly string[]
  /** A made-up value as it is stored, where the resource's example payload shows none. */
  example?: string
  /** Field of the API that a value filled by parley comes from. */
  apiField?: string
}

/** The unit of a quantity that the API gives without one: stored as sent. */
export const NOT_STATED = 'not stated'

export interface Index {
  name: string
  /** `name`, or `name DESC`: lists come newest first, and an index in that order has no half-empty pages. */
  columns: readonly string[]
  /** SQL condition of a partial index. */
  where?: string
}

export interface Table {
  name: string
  about: string
  /**
   * What NULL means in most columns, as a sentence, where it is more than that the API sent null or nothing. `about`
   * tells it too.
   */
  nullMeans?: string
  /**
   * Entity tables carry `_first_seen_at`, `_synced_at`, `_changed_at` and `_deleted_at`; every table but a link table
   * has `_extra`.
   */
  kind: 'entity' | 'child' | 'link'
  columns: Readonly<Record<string, Column>>
  /** Unique; for an entity its last column is what tasks and tombstones call the key. */
  key: readonly string[]
  /** `rowid` where an integer key of ours is wanted (large tables with several indices), else keyed by `key` alone. */
  storage: 'rowid' | 'clustered'
  indices: readonly Index[]
  /** Lists inside the payload, each a table of its own, replaced together with the row. */
  children: readonly Child[]
  /** Payload fields that a feed takes itself, so that they are neither a column nor unknown. */
  taken: readonly string[]
  /** True where two endpoints show different sets of fields: then unknown fields of the other one are kept. */
  mergesExtra: boolean
  /** For a child of a list of its own: the table whose live rows keep it live, by this table's columns. */
  livesWith?: LivesWith
  /** For an entity: SQL condition under which its children count as live, beside its own `_deleted_at`. */
  openWhen?: string
  /** What goes with a row of this table when it is tombstoned. */
  cascades: readonly Cascade[]
  /** For rows that belong to another one: that there are any is content in itself, so they go when it is erased. */
  content: boolean
}

export interface Cascade {
  table: string
  /** The other table's column → this table's column. */
  on: Readonly<Record<string, string>>
  effect: 'tombstone' | 'remove'
  /** Nothing of the other table is stored for a withdrawn row of this one, however late its answer comes. */
  keepsOut?: true
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
  /** `scalar`: the list holds plain values, which the child calls `value`. */
  items: 'object' | 'scalar'
}

interface ColumnOptions
  extends Pick<Column, 'content' | 'unit' | 'nullMeans' | 'refersTo' | 'example' | 'apiField'> {
  /** Dot-separated path in the payload where it is not the column's own name. */
  from?: string
}

type ColumnBuilder = (about: string, options?: ColumnOptions) => (name: string) => Column

const payloadColumn =
  (kind: ColumnKind): ColumnBuilder =>
  (about, { from, ...options } = {}) =>
  name => ({ kind, about, source: { from: 'payload', path: (from ?? name).split('.') }, ...options })

export const text = payloadColumn('text')
export const integer = payloadColumn('integer')
export const real = payloadColumn('real')
export const boolean = payloadColumn('boolean')
export const timestamp = payloadColumn('timestamp')
export const date = payloadColumn('date')
export const json = payloadColumn('json')

export const tuples =
  (about: string, tuple: readonly string[], options: ColumnOptions = {}) =>
  (name: string): Column => ({ ...payloadColumn('json')(about, options)(name), tuple })

/** A column that repeats one of the parent row's, such as `meeting_id` in every table below a meeting. */
export const parent =
  (column: string, kind: ColumnKind, about: string, options: Pick<Column, 'refersTo'> = {}) =>
  (): Column => ({ kind, about, source: { from: 'parent', column }, notNull: true, ...options })

/** The 0-based index in the API's array. */
export const position =
  (about = "0-based index in the API's array") =>
  (): Column => ({
    kind: 'integer',
    about,
    source: { from: 'position' },
    notNull: true,
  })

/** The scope or key that the request named. A payload field at `from` is expected to say the same. */
export const requested =
  (about: string, { from, ...options }: ColumnOptions = {}) =>
  (): Column => ({
    kind: 'text',
    about,
    source: from === undefined ? { from: 'request' } : { from: 'request', path: from.split('.') },
    notNull: true,
    ...options,
  })

/** A column that parley fills. */
export const own =
  (
    kind: ColumnKind,
    about: string,
    options: Omit<ColumnOptions, 'from'> &
      Pick<Column, 'notNull' | 'default' | 'computed' | 'whenErased'> = {},
  ) =>
  (): Column => ({ kind, about, source: { from: 'parley' }, ...options })

interface TableOptions {
  about: string
  nullMeans?: string
  key: readonly string[]
  columns: Readonly<Record<string, (name: string) => Column>>
  storage?: Table['storage']
  indices?: Readonly<Record<string, { on: readonly string[]; where?: string }>>
  children?: readonly Child[]
  taken?: readonly string[]
  mergesExtra?: boolean
  livesWith?: LivesWith
  openWhen?: string
  cascades?: readonly Cascade[]
  content?: true
}

function table(kind: Table['kind'], name: string, options: TableOptions): Table {
  const columns = Object.fromEntries(
    Object.entries(options.columns).map(([column, build]) => [column, build(column)]),
  )
  for (const column of options.key) {
    const declared = columns[column]
    if (!declared) throw new TypeError(`${name}: key column ${column} is not declared`)
    columns[column] = { ...declared, notNull: true }
  }
  return {
    name,
    about: options.about,
    kind,
    columns,
    key: options.key,
    storage: options.storage ?? 'clustered',
    indices: Object.entries(options.indices ?? {}).map(([suffix, { on, where }]) => ({
      name: `${name}_${suffix}`,
      columns: on,
      ...(where === undefined ? {} : { where }),
    })),
    children: options.children ?? [],
    taken: options.taken ?? [],
    mergesExtra: options.mergesExtra ?? false,
    cascades: options.cascades ?? [],
    content: options.content ?? false,
    ...(options.nullMeans === undefined ? {} : { nullMeans: options.nullMeans }),
    ...(options.livesWith ? { livesWith: options.livesWith } : {}),
    ...(options.openWhen ? { openWhen: options.openWhen } : {}),
  }
}

export const entity = (name: string, options: TableOptions): Table => table('entity', name, options)

/** A list of parley's own making from keys that the API names; it has no payload, so nothing can be unknown. */
export const link = (name: string, options: TableOptions): Table => table('link', name, options)

export const child = (
  name: string,
  options: TableOptions & { list: string; items?: Child['items'] },
): Child => ({
  table: table('child', name, options),
  list: options.list.split('.'),
  items: options.items ?? 'object',
})

// ---------------------------------------------------------------------------------------------- feeds

export type PagingStyle = 'v2-cursor' | 'v1-cursor' | 'v1-page' | 'any'

/** What a status that is usually a fault means here. `absent`: the thing asked for is not published. */
export type Expected = Readonly<Partial<Record<number, 'absent' | 'withheld' | 'unavailable'>>>

export interface ListRequest {
  /** Route template; `{scope}` is filled with the scope's key. */
  path: string
  paging: PagingStyle
  query?: Readonly<Record<string, string>>
  /** A query parameter that carries the scope, where the path does not. */
  scopeParameter?: string
}

export interface ReadRequest {
  /** Route template; `{key}` (and `{scope}`) are filled. */
  path: string
  /** Where the record stands in the answer: at the top, in `data`, or as the spec does not say, in either. */
  placement: 'bare' | 'data' | 'either'
  /** The payload field that must repeat the key; an answer for something else is no answer. */
  identity?: string
}

/** How to find out whether rows that a list no longer shows still exist. */
export type Evidence =
  | { by: 'single'; read: ReadRequest }
  /** One list request for up to 100 keys, all of them UUIDs. */
  | { by: 'ids'; path: string }
  /** The detail feed of the same resource reads each missing key and its answer decides. */
  | { by: 'detail' }
  /** No evidence is to be had: a second complete pass, begun after the first ended, must miss it too. */
  | { by: 'second-pass' }
  /** The list itself is the fact, once it was read to its end. */
  | { by: 'list' }

/** A read of another feed that a stored row calls for, written in the row's own transaction. */
export interface Cause {
  on: readonly ('inserted' | 'changed' | 'revived')[]
  /** Only for rows with one of these values. */
  when?: Readonly<Record<string, readonly string[]>>
  /** `resource.feed` whose task is written. */
  feed: string
  /** Columns of the row with the key to read and, for newest first, its event time. */
  key: string
  sort?: string
  /** `add`: a first read, if none was made yet; `demand`: read again as soon as possible. */
  how: 'add' | 'demand'
}

/**
 * Records of the snapshot that a stored row points at are read again, or what belongs to them is: tasks written in
 * the row's own transaction. What the snapshot's list was read for after the row's time needs nothing.
 */
export interface PointCause {
  on: Cause['on']
  when?: Cause['when']
  points: {
    /** Columns that name a record by its object and its key: the row's own, or those of a child table's rows. */
    child?: string
    object: string
    key: string
    /** Child rows with these values are meant; where there is none, all of them. */
    prefer?: Readonly<Record<string, string>>
    /** Only records named together with others that the feed does not know to belong with them. */
    strangers?: boolean
  }
  /** Column of the row's time. */
  at: string
  /** `resource.feed`: a snapshot that re-reads what changed, or an item feed that reads `pairs`. */
  feed: string
}

/** Newest-first list that can only be filtered by event time; kept by a ledger of time segments. */
export interface TimelineFeed {
  mode: 'timeline'
  list: ListRequest
  table: string
  /** The column of the event time, and the names of the inclusive bounds in the query. */
  time: string
  bounds: { from: string; to: string }
  evidence: Evidence
  causes?: readonly (Cause | PointCause)[]
  /** Keys that rows of another table name and this one lacks: asked for by the evidence's `ids`. */
  lookup?: { resource: ResourceName; table: string; column: string; where: string }
  expected?: Expected
}

/** The whole set in every pass. */
export interface SnapshotFeed {
  mode: 'snapshot'
  list: ListRequest
  table: string
  /** `rows`: each item is the whole payload; `keys`: the list only tells which exist, and the detail feed reads them. */
  lists: 'rows' | 'keys'
  /** How often the daemon reads it, in ms; the usual interval where it says nothing. */
  every?: number
  /** The payload fields that may hold the key, first match wins. */
  keyFields: readonly string[]
  /** For `keys`: read even when the list does not name them. */
  always?: readonly string[]
  /** For `keys`: the payload field with the event time, where the list shows it. */
  timeField?: string
  /** One pass for each row of another table. `always` are asked for even when that table has no such row. */
  scope?: { table: string; column: string; always?: readonly string[] }
  evidence: Evidence
  causes?: readonly PointCause[]
  /** For `rows` with evidence by ids: rows that are said to have changed are read again at once, by the same request. */
  changes?: ChangesRead
  expected?: Expected
}

export interface ChangesRead {
  /** The column that tells when a row was last changed. */
  updated: string
  /** The JSON column with a row's values, and the table that says which of them are keys of other rows. */
  values: string
  relations: {
    table: string
    /** Condition for a relation. */
    where: string
    /** Its columns: the object, the value's name, and the object or the resource that it points at. */
    object: string
    name: string
    targetObject: string
    targetResource: string
  }
}

/** One request a row, newest first. */
export interface ItemFeed {
  mode: 'item'
  read: ReadRequest | ListRequest
  /** What the answer is stored as; the engine has one handler for each. */
  stores: 'row' | 'body' | 'transcript' | 'results' | 'setting' | 'links'
  table: string
  /** First reads: rows of this table for which the condition holds (a partial index serves it). */
  pending?: { table: string; key: string; where: string; time: string; behind?: ResourceName }
  /** True where every backfill reads all of them again; else only what is missing, changed or due. */
  everyRound: boolean
  /** True where the owner's `since` keeps what is known to have happened before it from being read. */
  boundBySince: boolean
  /** The answer is not final until this column holds this value; until then it is asked for again. */
  readyWhen?: { column: string; is: string }
  causes?: readonly Cause[]
  /** For `links`: the snapshot whose records belong together, and the kinds of pairs, each stored in this direction. */
  pairs?: { of: string; kinds: readonly (readonly [string, string])[] }
  expected?: Expected
}

/** A log read in periods with an exclusive end. */
export interface PeriodicFeed {
  mode: 'periodic'
  list: ListRequest
  table: string
  time: string
  from: string
  expected?: Expected
}

/** One document. */
export interface SingletonFeed {
  mode: 'singleton'
  read: ReadRequest
  table: string
  /** `row`: the document is mapped to columns; `document`: it is kept whole in the column `document`. */
  stores: 'row' | 'document'
  expected?: Expected
}

export type Feed = TimelineFeed | SnapshotFeed | ItemFeed | PeriodicFeed | SingletonFeed

export const RESOURCE_NAMES = [
  'members',
  'teams',
  'collections',
  'collection_meetings',
  'activities',
  'messages',
  'message_bodies',
  'meetings',
  'transcripts',
  'playbook_results',
  'playbooks',
  'crm_objects',
  'crm_records',
  'crm_record_links',
  'access_logs',
  'bot_definition',
  'integrations',
] as const

export type ResourceName = (typeof RESOURCE_NAMES)[number]

/** A copy as the merge sees it: the source table's columns by name. */
export type SourceRow = Readonly<Record<string, string | number | null>>

/**
 * A table made from another one's live rows, one row a group. `merge` is pure and must give the same whatever order
 * the rows arrived in; the store hands them over in canonical order.
 */
export interface Derivation {
  from: string
  into: string
  /** The column of `from` with the key of the merged row. */
  groupBy: string
  /** The value of that column, for a row whose cells are known by their columns. */
  groupOf(cell: (column: string) => SourceRow[string]): string
  /**
   * The children of the rows, merged like them: one row of `into` for each key among those of `from`. The first column
   * of either is the key of the row above; a value comes from the first child that has it.
   */
  parts: { from: string; into: string }
  /** Canonical order: earliest `time`, then smallest `key`. */
  time: string
  key: string
  merge(rows: readonly SourceRow[]): Readonly<Record<string, string | number | null>>
  /** Columns of the merge that tell how it was made: another value there is no change of what is merged. */
  aboutMerge: readonly string[]
}

/** Every key of a JSON column whose value changed from one observation to the next gives a row. */
export interface History {
  of: string
  column: string
  into: string
}

/** What `sync_status` counts. */
export interface StatusSource {
  table: string
  /** SQL condition: which live rows count. */
  where?: string
  /** Column of the event time. */
  newest?: string
  /** For a resource that fills rows of another one: the condition under which a live row is still to be read. */
  pending?: string
  /** In the plural: what its reads that wait for the API are to bring. */
  waitsFor?: string
  /** For a resource that fills rows of another one: how these are counted by what came of reading them. */
  byState?: CountedByState
}

export interface CountedByState {
  /** SQL expression; `present` where there is something, and counted by `where` of the source. */
  state: string
  /** What the rows are, in the plural, and what they are read for. */
  rows: string
  part: string
}

export interface Resource {
  name: ResourceName
  about: string
  /** Resources whose rows this one is asked for by. */
  parents: readonly ResourceName[]
  /** Tables that this resource owns, children not repeated. */
  tables: readonly Table[]
  derivation?: Derivation
  history?: History
  /** By name; tasks and log lines say `resource.feed`. */
  feeds: Readonly<Record<string, Feed>>
  status: StatusSource
  /** A payload as the specification shows it, for tests and documentation; by feed name. */
  example: Readonly<Record<string, unknown>>
}

export const resource = (declaration: Resource): Resource => declaration
