import { MEMBER_VERSION_TABLE, TEAM_VERSION_TABLE } from './people-versions.ts'
import { type BookkeepingTable, bookkeepingTable } from './table-declaration.ts'
import { VALUES_ON_DELETE } from './value-on-delete.ts'

/** The tables in which parley keeps its own state. Their verbs are in `store/`. */

const META_TABLE = bookkeepingTable({
  name: 'sync_meta',
  about: 'Values that concern the whole database.',
  columns: { key: { kind: 'text' }, value: { kind: 'text' } },
  key: ['key'],
  storage: 'clustered',
})

export const RESOURCE_TABLE = bookkeepingTable({
  name: 'sync_resources',
  about: 'State of each resource; see `sync_status`.',
  columns: {
    resource: { kind: 'text' },
    /** Number of the current round; 0 before the first. */
    round: { kind: 'integer', default: 0 },
    /**
     * 1 while a round of a backfill has not ended. If the backfill is interrupted, the next one continues the round.
     */
    round_open: { kind: 'boolean', default: 0 },
    round_started_at: { kind: 'timestamp' },
    first_complete_at: { kind: 'timestamp' },
    fresh_as_of: { kind: 'timestamp' },
    last_success_at: { kind: 'timestamp' },
    next_run_at: { kind: 'timestamp' },
    complete_as_of: { kind: 'timestamp' },
    unavailable_since: { kind: 'timestamp' },
    failing_since: { kind: 'timestamp' },
    reason: { kind: 'text' },
    held_since: { kind: 'timestamp' },
    /** The round that confirms the held-back deletions. */
    held_round: { kind: 'integer' },
    deleted_since: { kind: 'timestamp' },
    /** Deleted rows that the mass-deletion guard still counts. */
    deleted_in_round: { kind: 'integer', default: 0 },
  },
  key: ['resource'],
  storage: 'clustered',
})

/** `Segment` in `store/sync/segments.ts` is a row. */
export const SEGMENT_TABLE = bookkeepingTable({
  name: 'sync_segments',
  about: 'The segments of all lists, with their checkpoints; see `sync_coverage`.',
  columns: {
    id: { kind: 'integer' },
    feed: { kind: 'text', notNull: true },
    scope: { kind: 'text', default: '' },
    from_at: { kind: 'timestamp' },
    to_at: { kind: 'timestamp' },
    /** The exact query of the cursor. A cursor is valid only with its own query. */
    query: { kind: 'json' },
    /** Parameters of the next page; NULL before the first page and after the final one. */
    cursor: { kind: 'json' },
    /** Start of the current pass, by the server's clock. */
    pass_started_at: { kind: 'timestamp' },
    /**
     * The round of the resource in which the pass in progress began; NULL when there is none. A pass that began in an
     * earlier round does not count for the current one.
     */
    pass_round: { kind: 'integer' },
    /** The value of `wanted_at` when the first page of the pass was requested. The end of the pass meets this want. */
    pass_wanted_at: { kind: 'timestamp' },
    pages: { kind: 'integer', default: 0 },
    rows: { kind: 'integer', default: 0 },
    /** Event time of the last row that the pass has read, and the keys of the rows that it read with this time. */
    edge_at: { kind: 'timestamp' },
    edge_keys: { kind: 'json' },
    /** The list's size as the pages of this pass state it; `SIZE_CHANGED` if pages differ, NULL if none has stated it. */
    total_size: { kind: 'integer' },
    /** How often this pass has restarted without progress. */
    restarts: { kind: 'integer', default: 0 },
    /** Start of the last pass that reached the end, by the server's clock. */
    listed_at: { kind: 'timestamp' },
    /** The round in which the pass of `listed_at` began. */
    listed_round: { kind: 'integer', default: 0 },
    /** For a period of a log: how many entries the pass of `listed_at` read. */
    listed_rows: { kind: 'integer' },
    /**
     * 1 for a period of a log that is final: two passes read the same number of entries, the later pass long enough
     * after the period's end. A closed period is read again only when it is wanted.
     */
    closed: { kind: 'boolean', default: 0 },
    /** Since when the list is unavailable. Meanwhile the resource can be complete without it. */
    unavailable_since: { kind: 'timestamp' },
    /** Failed requests since a page was last read with the usual `limit`. */
    attempts: { kind: 'integer', default: 0 },
    /** After a failure, the segment is not read before this time of the due clock. */
    retry_at: { kind: 'timestamp' },
    /** Duration of the latest pass that a single process read completely; NULL when there is none. */
    pass_ms: { kind: 'integer' },
    /** The segment is read at this time of the due clock, even within its interval. Only `want` and `met` change it. */
    wanted_at: { kind: 'timestamp' },
    /**
     * Failed requests in a row, since the last one that was settled. Only `tryAgain`, `settled` and `retryNow` change it.
     */
    tries: { kind: 'integer', default: 0 },
    /** After such a failed request, the segment is not read before this time of the due clock. */
    try_at: { kind: 'timestamp' },
  },
  key: ['id'],
  storage: 'rowid',
  indices: { by_feed: { on: ['feed', 'scope', 'to_at'] } },
})

const SEEN_TABLE = bookkeepingTable({
  name: 'sync_seen',
  about: 'Keys that the pass in progress has returned.',
  columns: { feed: { kind: 'text' }, scope: { kind: 'text' }, key: { kind: 'text' } },
  key: ['feed', 'scope', 'key'],
  storage: 'clustered',
})

/** `Task` in `store/sync/tasks/task.ts` is a row. */
export const TASK_TABLE = bookkeepingTable({
  name: 'sync_tasks',
  about: 'Single reads that wait: first reads, retries and confirmations.',
  columns: {
    feed: { kind: 'text' },
    scope: { kind: 'text', default: '' },
    key: { kind: 'text' },
    /** Event time of the record, to read the newest first. */
    sort_at: { kind: 'timestamp' },
    due_at: { kind: 'timestamp', notNull: true },
    /** The round in which the key was last read; 0 when it was never read or is wanted again; or `BY_DUE_TIME`. */
    round: { kind: 'integer', default: 0 },
    /**
     * Consecutive answers that were not final yet. For a probe: how often the probe has found its row. For a read that
     * follows a relation: the number of the read's step.
     */
    attempts: { kind: 'integer', default: 0 },
    /** Until when content counts as not ready yet, or a key that a webhook has named is requested. */
    deadline: { kind: 'timestamp' },
    /** 1 while the API has not finished the content, and after a failed request. */
    waiting: { kind: 'boolean', default: 0 },
    /** Consecutive failed requests. */
    failures: { kind: 'integer', default: 0 },
    /** When a list last named the key, noted at most once a day. NULL when rows or a webhook alone name it. */
    named_at: { kind: 'timestamp' },
    /** Failed requests in a row, each of which is soon made again. */
    tries: { kind: 'integer', default: 0 },
    /** After such a failed request, the key is not read before this time of the due clock, though it is due. */
    try_at: { kind: 'timestamp' },
  },
  key: ['feed', 'scope', 'key'],
  storage: 'clustered',
  indices: {
    tried: { on: ['feed', 'try_at'], where: 'tries > 0' },
    by_round: { on: ['feed', 'round'] },
    by_due: { on: ['feed', 'due_at'] },
    // Only the tasks that `sync_status` counts. They are few: tasks still to read, and tasks that wait for the API.
    open: { on: ['feed', 'round', 'waiting', 'deadline'], where: 'waiting OR round = 0' },
  },
})

export const SUSPICION_TABLE = bookkeepingTable({
  name: 'sync_suspicions',
  about: 'Suspected deletions: rows that the API has denied once or twice and that are not deleted yet.',
  columns: {
    table_name: { kind: 'text' },
    scope: { kind: 'text', default: '' },
    key: { kind: 'text' },
    missing_since: { kind: 'timestamp', notNull: true },
    confirmed: { kind: 'boolean', default: 0 },
    means: { kind: 'text', default: 'absent', values: ['absent', 'withheld', 'empty'] },
  },
  key: ['table_name', 'scope', 'key'],
  storage: 'clustered',
})

const INSTANT = '2026-03-04T05:06:07.123Z'

const count = (about: string, unit: string, example: string) =>
  ({ kind: 'integer', default: 0, about, unit, example }) as const

/** A column that analysts use, and that is never NULL. */
const described = <const K extends 'text' | 'timestamp' | 'json' | 'integer' | 'boolean'>(
  kind: K,
  about: string,
  example: string,
) => ({ kind, notNull: true, about, example }) as const

export const RUN_TABLE = bookkeepingTable({
  name: 'sync_runs',
  about: 'One row per run of a resource.',
  columns: {
    id: { kind: 'integer', about: 'Number of the run.', example: '42' },
    resource: described('text', 'Name of the resource.', 'messages'),
    lane: described(
      'text',
      '`history` until the resource was complete for the first time, then `audit`.',
      'history',
    ),
    started_at: described('timestamp', 'When the run started.', INSTANT),
    ended_at: {
      kind: 'timestamp',
      about: 'When the run ended.',
      nullMeans: 'The run is in progress.',
      example: INSTANT,
    },
    outcome: {
      kind: 'text',
      values: ['complete', 'stopped', 'failed', 'unavailable', 'interrupted'],
      about:
        '`complete`, `stopped` (before its end), `failed`, `unavailable` (this workspace does not offer it) or `interrupted` (the process died).',
      nullMeans: 'The run is in progress.',
      example: 'complete',
    },
    requests: count('Requests that the run made.', 'requests', '52'),
    throttled: count('Requests among these that the API refused as too many (429).', 'requests', '0'),
    rows_read: count('Records that the API sent.', 'records', '5120'),
    rows_changed: count('Rows written because they were new or had changed.', 'rows', '5120'),
    rows_deleted: count('Rows whose deletion the run confirmed.', 'rows', '0'),
    error: {
      kind: 'text',
      about: 'Error that ended the run.',
      nullMeans: 'There was no error.',
      example: 'The API answers 500',
    },
  },
  key: ['id'],
  storage: 'rowid',
  indices: {
    by_resource: { on: ['resource', 'started_at'] },
    open: { on: ['id'], where: 'ended_at IS NULL' },
  },
})

export const MINUTE_TABLE = bookkeepingTable({
  name: 'sync_minutes',
  about:
    'The traffic of each minute in which parley read the API, for two weeks. A minute without a row: parley did not run.',
  columns: {
    at: { kind: 'timestamp', about: 'Start of the minute.', example: '2026-03-04T05:06:00.000Z' },
    requests: count('Requests that were answered or failed in this minute.', 'requests', '240'),
    throttled: count('Requests among these that the API refused as too many (429).', 'requests', '0'),
    errors: count(
      'Requests among these that failed: server errors, a refused key, unreadable answers, timeouts and broken connections.',
      'requests',
      '0',
    ),
    rows: count('Rows that were written because they were new, changed or deleted.', 'rows', '5120'),
    rate: {
      kind: 'real',
      about: 'Rate limit of the API at the end of the minute, as measured.',
      nullMeans: 'The API had not shown a limit.',
      unit: 'requests per second',
      example: '9.8',
    },
    in_flight: count('Most requests in flight at once, of one sample per second.', 'requests', '8'),
    paused_seconds: count(
      'Time for which no request was sent, because the API asked to wait or had refused one, or the requests of the day were used up.',
      'seconds',
      '0',
    ),
  },
  key: ['at'],
  storage: 'clustered',
})

export const DAY_TABLE = bookkeepingTable({
  name: 'sync_days',
  about: 'How many rows of each resource were written on each day (UTC), for a year.',
  columns: {
    day: { kind: 'text', about: 'The day, in UTC.', example: '2026-03-04' },
    resource: { kind: 'text', about: 'Name of the resource.', example: 'messages' },
    rows_new: count('Rows that were stored for the first time.', 'rows', '312'),
    rows_changed: count('Stored rows that changed.', 'rows', '18'),
    rows_deleted: count('Rows whose deletion was confirmed.', 'rows', '2'),
  },
  key: ['day', 'resource'],
  storage: 'clustered',
})

export const PUBLICATION_TABLE = bookkeepingTable({
  name: 'sync_publications',
  about:
    'One row per attempt to publish the warehouse to a target, complete or failed. An attempt that was stopped or killed has no row. Rows are kept as long as `sync_runs`; the newest complete one of each target stays.',
  columns: {
    id: { kind: 'integer', about: 'Number of the attempt.', example: '42' },
    target: described('text', 'Where the warehouse was published, without credentials.', 's3://bucket/lake'),
    publication: {
      kind: 'integer',
      about: 'Number of the publication, as in the table `publications` of the target.',
      nullMeans: 'It failed.',
      example: '311',
    },
    started_at: described('timestamp', 'When it started.', INSTANT),
    finished_at: described('timestamp', 'When it was complete or failed.', INSTANT),
    published_at: {
      kind: 'timestamp',
      about: 'The instant of the warehouse that all published tables show.',
      nullMeans: 'It failed.',
      example: INSTANT,
    },
    complete_as_of: {
      kind: 'timestamp',
      about: 'Everything published before this instant by the API is in the publication.',
      nullMeans: 'It failed, or history was still loading.',
      example: INSTANT,
    },
    fresh_as_of: {
      kind: 'timestamp',
      about: 'Up to when the newest data in the publication was read.',
      nullMeans: 'It failed, or nothing had been read.',
      example: INSTANT,
    },
    tables_changed: count('Tables of which files were written.', 'tables', '7'),
    rows: count('Rows of all tables in the target.', 'rows', '512000'),
    files_written: count('Data files that were written.', 'files', '9'),
    files_removed: count('Files of earlier publications that were removed.', 'files', '12'),
    bytes_written: count('Size of what was written.', 'bytes', '48211'),
    error_code: {
      kind: 'text',
      about: 'Code of the error for programs.',
      nullMeans: 'The publication is complete.',
      example: 'publish-unreachable',
    },
    error: {
      kind: 'text',
      about: 'Error that ended the attempt.',
      nullMeans: 'The publication is complete.',
      example: 'The bucket cannot be reached',
    },
  },
  key: ['id'],
  storage: 'rowid',
  indices: { by_target: { on: ['target', 'finished_at'] } },
})

export const REJECT_TABLE = bookkeepingTable({
  name: 'sync_rejects',
  about:
    'Every item that could not be stored. No received item is dropped without a row here. A span of event time that the API fails to list also has a row here, with the span as its item.',
  columns: {
    id: { kind: 'integer', about: 'Number of the item.', example: '7' },
    resource: described('text', 'Name of the resource.', 'activities'),
    item: described('json', 'The item as received, or the span as `from` and `to`.', '{"id":null}'),
    reason: described('text', 'Why it could not be stored.', 'no id'),
    first_seen_at: described('timestamp', 'When it was first received.', INSTANT),
    last_seen_at: described('timestamp', 'When it was last received.', INSTANT),
    resolved_at: {
      kind: 'timestamp',
      about:
        'When the item was stored after all, or when a complete pass no longer listed it. The row is removed some weeks later.',
      nullMeans: 'The item is still not stored.',
      example: INSTANT,
    },
    _feed: described('text', 'Internal: the list or read that returned the item.', 'activities.list'),
    _scope: {
      kind: 'text',
      default: '',
      about: 'Internal: scope of that list or read; empty where it has none.',
      example: 'deal',
    },
    _digest: described(
      'text',
      'Internal: digest that identifies the item when it is received again.',
      '9b1c…',
    ),
  },
  key: ['id'],
  storage: 'rowid',
  indices: { digest: { on: ['resource', '_digest'], unique: true } },
})

export const OLDER_ANSWER_TABLE = bookkeepingTable({
  name: 'sync_older_answers',
  about: 'Rows of which the API last sent an older state than the stored one.',
  columns: {
    table_name: { kind: 'text' },
    scope: { kind: 'text', default: '' },
    key: { kind: 'text' },
    since: { kind: 'timestamp', notNull: true },
  },
  key: ['table_name', 'scope', 'key'],
  storage: 'clustered',
})

export const GATE_TABLE = bookkeepingTable({
  name: 'sync_gates',
  about: 'What is closed, so that reads that are due wait; see `sync_status`. What is open has no row.',
  columns: {
    what: { kind: 'text' },
    kind: {
      kind: 'text',
      notNull: true,
      values: ['silent', 'refused', 'asked-to-wait', 'day-used-up', 'failing', 'unavailable'],
    },
    since: { kind: 'timestamp', notNull: true },
    until: { kind: 'timestamp', notNull: true },
    reason: { kind: 'text', notNull: true },
    resources: { kind: 'json', notNull: true },
    tries: { kind: 'integer', default: 0 },
  },
  key: ['what'],
  storage: 'clustered',
})

export const PURGE_TABLE = bookkeepingTable({
  name: 'sync_purge_queue',
  about: 'Deleted or withheld rows whose content is not purged yet.',
  columns: {
    table_name: { kind: 'text' },
    scope: { kind: 'text', default: '' },
    key: { kind: 'text' },
    withdrawn_at: { kind: 'timestamp', notNull: true },
  },
  key: ['table_name', 'scope', 'key'],
  storage: 'clustered',
  indices: { by_time: { on: ['withdrawn_at'] } },
})

export const ARRIVAL_TABLE = bookkeepingTable({
  name: 'sync_arrivals',
  about: 'How late rows became visible.',
  columns: {
    resource: { kind: 'text' },
    bucket: { kind: 'integer' },
    rows: { kind: 'integer', default: 0 },
    /** The longest lag in this bucket. */
    longest_ms: { kind: 'integer', default: 0 },
  },
  key: ['resource', 'bucket'],
  storage: 'clustered',
})

export const REQUEST_TABLE = bookkeepingTable({
  name: 'sync_requests',
  about: 'Requests of other processes to the process that writes.',
  columns: {
    id: { kind: 'integer' },
    kind: { kind: 'text', notNull: true, values: ['resync', 'accept-deletions'] },
    resource: { kind: 'text', notNull: true },
    asked_at: { kind: 'timestamp', notNull: true },
    done_at: { kind: 'timestamp' },
  },
  key: ['id'],
  storage: 'rowid',
})

/** The columns are described in `store/changes/`. */
const CHANGED_PART_TABLE = bookkeepingTable({
  name: 'sync_changed_parts',
  about: 'Which parts of the tables have changed, and when last, so that a publication compares only these.',
  columns: {
    table_name: { kind: 'text' },
    part: { kind: 'text' },
    /** Number of the change. It grows with every transaction that changes a published row. */
    change: { kind: 'integer', notNull: true },
  },
  key: ['table_name', 'part'],
  storage: 'clustered',
})

const ON_DELETE_TEXT = Object.entries(VALUES_ON_DELETE)
  .map(([value, about]) => `\`${value}\`: ${about}`)
  .join('; ')

/**
 * This table and `QUESTION_TABLE` explain the others. `store/views/` rewrites the rows of both tables when the rows are
 * out of date.
 */
export const DICTIONARY_TABLE = bookkeepingTable({
  name: 'data_dictionary',
  about:
    'What every column of every table and view means, including this one. The program parley created this file from the API of a conversation-intelligence product and keeps it up to date.',
  columns: {
    table_name: { kind: 'text', about: 'Name of the table or view.', example: 'meetings' },
    column_name: { kind: 'text', about: 'Name of the column.', example: 'recording_duration' },
    position: described('integer', '0-based position of the column within its table.', '8'),
    type: described(
      'text',
      '`text`, `timestamp` (text, UTC, always 24 characters), `date` (text, `2026-06-30`), `json` (text), `integer`, `boolean` (0 or 1), `real`, or `any` (a number, or text where a number would lose digits). A timestamp of a CRM field that cannot be parsed is stored as sent.',
      'integer',
    ),
    null_meaning: {
      kind: 'text',
      about: 'What NULL means in the column.',
      example: 'The API sent null or nothing.',
    },
    description: described('text', 'What the value means.', 'Length of the recording.'),
    source_field: {
      kind: 'text',
      about: 'API field that the value comes from, with `[]` after each list in its path.',
      nullMeans: 'parley sets the value.',
      example: 'attendees[].teams[].team_id',
    },
    unit: {
      kind: 'text',
      about: 'Unit of a quantity; `not stated` where the API does not state it.',
      nullMeans: 'The value is not a quantity.',
      example: 'not stated',
    },
    example: {
      kind: 'text',
      about: 'A made-up value in its stored form.',
      nullMeans: 'The column is a field of your CRM.',
      example: '2700',
    },
    value_on_delete: {
      kind: 'text',
      values: Object.keys(VALUES_ON_DELETE),
      about: `What the value is after its row was deleted at the source, or, for what belongs to a row, after that row was. ${ON_DELETE_TEXT}. A withheld meeting is purged as a deleted one.`,
      nullMeans: 'Rows are not deleted at the source, or the row is about many.',
      example: 'kept',
    },
  },
  key: ['table_name', 'column_name'],
  storage: 'clustered',
})

export const QUESTION_TABLE = bookkeepingTable({
  name: 'parley_questions',
  about:
    'Common questions about this file, as SQL to run and to adapt. They come with parley, the program that created this file, and are in the folder `drizzle/questions` of its source.',
  columns: {
    name: { kind: 'text', about: 'Name of the question.', example: 'deals-without-activity' },
    question: described(
      'text',
      'The question in words.',
      'Which open deals have had no activity for 14 days?',
    ),
    parameters: described(
      'json',
      'Parameters at the top of the statement: a list of `name`, `value` (an SQL expression) and `about`.',
      '[{"name":"days","value":"14","about":"how many days without an e-mail or a meeting are too many"}]',
    ),
    sql: described(
      'text',
      'One statement, the same for SQLite from 3.39 on, DuckDB, Spark and Trino, over the tables and views of this page.',
      'WITH parameters AS (SELECT …) SELECT …',
    ),
    duckdb_sql: described(
      'text',
      'The same as `sql`, which had another form in DuckDB before.',
      'WITH parameters AS (SELECT …) SELECT …',
    ),
  },
  key: ['name'],
  storage: 'rowid',
})

export const REPORT_SETTING_TABLE = bookkeepingTable({
  name: 'report_settings',
  about:
    'One setting of the tables and views for reports, such as `crm.deal.amount`: which field of the CRM holds what, by the settings file or by a guess.',
  columns: {
    name: {
      kind: 'text',
      about: 'Name of the setting, as in the settings file.',
      example: 'crm.deal.amount',
    },
    value: {
      kind: 'text',
      about: 'Its value; a list or a table is JSON.',
      nullMeans: 'There is none, or no field holds it.',
      example: 'amount',
    },
    is_guessed: described('boolean', '1 where the settings file says nothing.', '1'),
    why: described('text', 'Why this value.', 'Guessed: amount looks like what the deal is worth.'),
  },
  key: ['name'],
  storage: 'clustered',
})

export const REPORT_CHANGE_TABLE = bookkeepingTable({
  name: 'report_settings_changes',
  about: 'One change of a row of `report_settings`, by the settings file or by a new guess.',
  columns: {
    name: { kind: 'text', about: 'Name of the setting.', example: 'crm.deal.amount' },
    changed_at: { kind: 'timestamp', about: 'When it changed.', example: '2026-03-04T05:06:07.123Z' },
    old_value: { kind: 'text', about: 'Its value before.', nullMeans: 'There was none.', example: 'amount' },
    new_value: {
      kind: 'text',
      about: 'Its value since.',
      nullMeans: 'There is none.',
      example: 'deal_value',
    },
    why: described('text', 'Why it changed.', 'The settings name this field.'),
  },
  key: ['name', 'changed_at'],
  storage: 'clustered',
})

export const METRIC_TABLE = bookkeepingTable({
  name: 'metrics',
  about:
    'One number that reports agree on, such as the win rate: `SELECT expression FROM dataset WHERE filter`, with its texts put in. The statement is the same in SQLite, DuckDB, Spark and Trino.',
  columns: {
    name: { kind: 'text', about: 'Name of the metric.', example: 'win_rate' },
    label: described('text', 'Its name for people.', 'Win rate'),
    dataset: described('text', 'Table or view that it is computed from.', 'deals'),
    expression: described('text', 'SQL of the value, an aggregate.', 'count(*)'),
    filter: described(
      'text',
      'SQL of the rows that count. For a period, an owner or a pipeline add a condition with AND.',
      "outcome = 'open'",
    ),
    unit: described('text', 'Unit of the value.', 'deals'),
    is_additive: described(
      'boolean',
      '1 where the values of parts, such as owners or months, add up to the value of all. A share or a mean does not.',
      '1',
    ),
    description: described(
      'text',
      'What it says, and by which day a period is chosen.',
      'Deals that are open.',
    ),
    caveat: described('text', 'What is not counted.', 'Deals whose outcome is unknown are not open.'),
  },
  key: ['name'],
  storage: 'clustered',
})

/** All tables in which parley keeps its own state. */
export const BOOKKEEPING: readonly BookkeepingTable[] = [
  META_TABLE,
  RESOURCE_TABLE,
  SEGMENT_TABLE,
  SEEN_TABLE,
  TASK_TABLE,
  SUSPICION_TABLE,
  RUN_TABLE,
  MINUTE_TABLE,
  DAY_TABLE,
  PUBLICATION_TABLE,
  REJECT_TABLE,
  OLDER_ANSWER_TABLE,
  GATE_TABLE,
  PURGE_TABLE,
  ARRIVAL_TABLE,
  REQUEST_TABLE,
  CHANGED_PART_TABLE,
  DICTIONARY_TABLE,
  QUESTION_TABLE,
  REPORT_SETTING_TABLE,
  REPORT_CHANGE_TABLE,
  MEMBER_VERSION_TABLE,
  TEAM_VERSION_TABLE,
  METRIC_TABLE,
]
