import type { ResourceName } from './resource-names.ts'
import type { Table } from './table.ts'

/**
 * Declares resources: types and data, no I/O. A resource has tables (`table.ts`) and feeds. A feed is one way of
 * reading the resource: a sync mode, its endpoint, its paging, and the error statuses that are expected answers.
 */

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
