import { type ColumnLine, type DescribedTable, tableFromLines } from './described-table.ts'

/** Descriptions of tables and views that no resource declares: the sync state, and the dictionary itself. */

const RESOURCE: ColumnLine = ['text', 'Name of the resource.', { isKey: true, example: 'messages' }]
const INSTANT = '2026-03-04T05:06:07.123Z'
const RUN: ColumnLine = ['integer', 'Number of the run.', { isKey: true, example: '42' }]

/** An instant that may be unknown. */
const instant = (about: string, nullMeaning: string): ColumnLine => [
  'timestamp',
  about,
  { nullMeaning, example: INSTANT },
]

const count = (about: string, unit: string, example: string, nullMeaning?: string): ColumnLine => [
  'integer',
  about,
  { unit, example, ...(nullMeaning === undefined ? {} : { nullMeaning }) },
]

export const SYNC_TABLES: readonly DescribedTable[] = [
  tableFromLines(
    {
      name: 'sync_status',
      form: 'view',
      area: 'sync',
      about: 'One row per resource: whether it is complete, how fresh it is, and why it is not `ok`.',
    },
    {
      resource: RESOURCE,
      state: [
        'text',
        '`backfilling`: not complete yet for the first time; `waiting`: complete, but the API is not ready with something; `unavailable`: this workspace does not offer it; `failing`: the last run failed, a list was not read within twice its interval, or the API cannot be reached or grants no access; `ok`: none of these.',
        { example: 'ok' },
      ],
      reason: [
        'text',
        'Why the state is not `ok`. For `waiting`: what is not ready. For `failing` and `unavailable`: what the API answered.',
        { nullMeaning: 'The state is `ok`.', example: 'The API answers 403' },
      ],
      rows_live: count(
        'Live rows. For `messages`: e-mails, not copies. For `message_bodies`: e-mails with a text. For `transcripts`: meetings with a transcript.',
        'rows',
        '5120',
      ),
      rows_deleted: count('Rows whose deletion was confirmed.', 'rows', '3'),
      newest_at: instant(
        'Latest event time of the live rows.',
        'There are no rows, or the resource has no event time.',
      ),
      fresh_as_of: instant(
        'Start of the last complete read of the newest end, or of the last complete pass.',
        'There was none yet.',
      ),
      complete_as_of: instant(
        'Everything published before this instant, whatever its event time, had been read.',
        'History is still loading.',
      ),
      backfill_done: count('Progress of the backfill: `rows_live`.', 'rows', '5120'),
      backfill_total: count(
        'Expected end of the backfill: rows stored and rows still to read.',
        'rows',
        '5120',
        'It is not known.',
      ),
      pending_tasks: count('Reads that are outstanding or have to be repeated.', 'reads', '0'),
      rejected: count('Items that could not be stored; see `sync_rejects`.', 'items', '0'),
      last_success_at: instant(
        'When the resource was last read without a fault.',
        'It has never been read without a fault.',
      ),
      next_run_at: instant(
        'When the resource is next due. It is read then only while a daemon or a backfill runs.',
        'It has never been read.',
      ),
    },
  ),
  tableFromLines(
    {
      name: 'sync_coverage',
      form: 'view',
      area: 'sync',
      about:
        'One row per time segment of the resources that are read in time order: when it was last read, and what it holds. Segments leave no gap. For activities and messages the oldest segment has no start and the newest no end. For the access log the segments are the periods in which it was read.',
    },
    {
      resource: RESOURCE,
      from_at: instant('Start of the segment, inclusive.', 'The segment has no start.'),
      to_at: instant('End of the segment, exclusive.', 'The segment has no end.'),
      listed_at: instant('When the segment was last read to its end.', 'It has never been read to its end.'),
      rows_live: count(
        'Live rows in the segment; for `messages` copies. Rows without a time count in the oldest segment.',
        'rows',
        '812',
      ),
      bodies_present: count(
        'E-mails in the segment whose text is known.',
        'e-mails',
        '790',
        'The segment is not one of e-mails.',
      ),
      bodies_pending: count(
        'E-mails in the segment whose text is still to be read.',
        'e-mails',
        '0',
        'The segment is not one of e-mails.',
      ),
    },
  ),
  tableFromLines(
    {
      name: 'sync_runs',
      form: 'table',
      area: 'sync',
      about: 'One row per run of a resource.',
      sortable: ['id', 'resource'],
    },
    {
      id: RUN,
      resource: ['text', 'Name of the resource.', { example: 'messages' }],
      lane: [
        'text',
        '`history` until the resource was complete for the first time, then `audit`.',
        { example: 'history' },
      ],
      started_at: ['timestamp', 'When the run started.', { example: INSTANT }],
      ended_at: instant('When the run ended.', 'The run is in progress.'),
      outcome: [
        'text',
        '`complete`, `stopped` (before its end), `failed`, `unavailable` (this workspace does not offer it) or `interrupted` (the process died).',
        { nullMeaning: 'The run is in progress.', example: 'complete' },
      ],
      requests: count('Requests that the run made.', 'requests', '52'),
      throttled: count('Requests among these that the API refused as too many (429).', 'requests', '0'),
      rows_read: count('Records that the API sent.', 'records', '5120'),
      rows_changed: count('Rows written because they were new or had changed.', 'rows', '5120'),
      rows_deleted: count('Rows whose deletion the run confirmed.', 'rows', '0'),
      error: [
        'text',
        'Error that ended the run.',
        { nullMeaning: 'There was no error.', example: 'The API answers 500' },
      ],
    },
  ),
  tableFromLines(
    {
      name: 'sync_rejects',
      form: 'table',
      area: 'sync',
      about:
        'Every item that could not be stored. No received item is dropped without a row here. A span of event time that the API fails to list also has a row here, with the span as its item.',
      sortable: ['id'],
    },
    {
      id: ['integer', 'Number of the item.', { isKey: true, example: '7' }],
      resource: ['text', 'Name of the resource.', { example: 'activities' }],
      item: ['json', 'The item as received, or the span as `from` and `to`.', { example: '{"id":null}' }],
      reason: ['text', 'Why it could not be stored.', { example: 'no id' }],
      first_seen_at: ['timestamp', 'When it was first received.', { example: INSTANT }],
      last_seen_at: ['timestamp', 'When it was last received.', { example: INSTANT }],
      resolved_at: instant(
        'When the item was stored after all, or when a complete pass no longer listed it. The row is removed some weeks later.',
        'The item is still not stored.',
      ),
      _feed: ['text', 'Internal: the list or read that returned the item.', { example: 'activities.list' }],
      _scope: ['text', 'Internal: scope of that list or read; empty where it has none.', { example: 'deal' }],
      _digest: [
        'text',
        'Internal: digest that identifies the item when it is received again.',
        { example: '9b1c…' },
      ],
    },
  ),
]

export const DICTIONARY_TABLE: DescribedTable = tableFromLines(
  {
    name: 'data_dictionary',
    form: 'table',
    area: 'dictionary',
    about:
      'What every column of every table and view means, including this one. The program parley created this file from the API of a conversation-intelligence product and keeps it up to date.',
    sortable: ['table_name'],
  },
  {
    table_name: ['text', 'Name of the table or view.', { isKey: true, example: 'meetings' }],
    column_name: ['text', 'Name of the column.', { isKey: true, example: 'recording_duration' }],
    position: ['integer', '0-based position of the column within its table.', { example: '8' }],
    type: [
      'text',
      '`text`, `timestamp` (text, UTC, always 24 characters), `date` (text, `2026-06-30`), `json` (text), `integer`, `boolean` (0 or 1), `real`, or `any` (a number, or text where a number would lose digits). A timestamp of a CRM field that cannot be parsed is stored as sent.',
      { example: 'integer' },
    ],
    null_meaning: ['text', 'What NULL means in the column.', { example: 'The API sent null or nothing.' }],
    description: ['text', 'What the value means.', { example: 'Length of the recording.' }],
    source_field: [
      'text',
      'API field that the value comes from, with `[]` after each list in its path.',
      { nullMeaning: 'parley sets the value.', example: 'attendees[].teams[].team_id' },
    ],
    unit: [
      'text',
      'Unit of a quantity; `not stated` where the API does not state it.',
      { nullMeaning: 'The value is not a quantity.', example: 'not stated' },
    ],
    example: [
      'text',
      'A made-up value in its stored form.',
      { nullMeaning: 'The column is a field of your CRM.', example: '2700' },
    ],
  },
)

export const QUESTIONS_TABLE: DescribedTable = tableFromLines(
  {
    name: 'parley_questions',
    form: 'table',
    area: 'dictionary',
    about:
      'Common questions about this file, as SQL to run and to adapt. They come with parley, the program that created this file, and are in the folder `drizzle/questions` of its source.',
    sortable: ['name'],
    label: 'question',
  },
  {
    name: ['text', 'Name of the question.', { isKey: true, example: 'deals-without-activity' }],
    question: [
      'text',
      'The question in words.',
      { example: 'Which open deals have had no activity for 14 days?' },
    ],
    parameters: [
      'json',
      'Parameters at the top of the statement: a list of `name`, `value` (an SQL expression) and `about`.',
      { example: '[{"name":"days","value":"14","about":"how many days without activity are too many"}]' },
    ],
    sql: [
      'text',
      'One statement for SQLite 3.38 or newer.',
      { example: 'WITH parameters AS (SELECT …) SELECT …' },
    ],
    duckdb_sql: [
      'text',
      'The same statement for DuckDB, over the views of `parley schema --duckdb` or over Parquet files named after their tables.',
      { example: 'WITH parameters AS (SELECT …) SELECT …' },
    ],
  },
)

/** Tables that only parley uses. Their columns are not described and may change. */
export const INTERNAL_TABLES: Readonly<Record<string, string>> = {
  sync_meta: 'Values that concern the whole database.',
  sync_resources: 'State of each resource; see `sync_status`.',
  sync_segments: 'The ledger of time segments; see `sync_coverage`.',
  sync_seen: 'Keys that the pass in progress has returned.',
  sync_tasks: 'Single reads that wait: first reads, retries and confirmations.',
  sync_absences:
    'Suspected deletions: rows that the API has denied once or twice and that are not deleted yet.',
  sync_erasures: 'Deleted or withheld rows whose content is not purged yet.',
  sync_arrivals: 'How late rows became visible.',
  sync_requests: 'Requests of other processes to the process that writes.',
  __drizzle_migrations: 'Migrations that were applied to the file.',
}

/** Full-text indices, present while `search.enabled` is on. Analysts may query them; their columns are not described. */
export const SEARCH_TABLES: Readonly<Record<string, string>> = {
  search_messages: 'Full-text index of subjects and texts of e-mails; its rowid is `messages._id`.',
  search_transcripts: 'Full-text index of what was said; its rowid is `transcript_entries._id`.',
  search_meetings:
    'Full-text index of titles, chapters, points and action items; `rowid >> 36` is `meetings._id`.',
  search_indices: 'How far each full-text index is built.',
}

/** SQLite's tables, typed CRM tables that are being filled or emptied, and the full-text indices. */
const INTERNAL_NAMES = /^(sqlite_|sync_crm_|search_)/

/** Whether only parley or SQLite uses the table. */
export function isInternal(name: string): boolean {
  return Object.hasOwn(INTERNAL_TABLES, name) || INTERNAL_NAMES.test(name)
}
