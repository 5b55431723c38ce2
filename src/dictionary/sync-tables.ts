import { type DescribedTable, described, type Line } from './described.ts'

/** What parley knows about its own work, and the dictionary itself: tables and views that no resource declares. */

const RESOURCE: Line = ['text', 'Name of the resource.', { isKey: true, example: 'messages' }]
const INSTANT = '2026-03-04T05:06:07.123Z'
const RUN: Line = ['integer', 'Number of the run.', { isKey: true, example: '42' }]

/** An instant that may be unknown. */
const instant = (about: string, nullMeaning: string): Line => [
  'timestamp',
  about,
  { nullMeaning, example: INSTANT },
]

const count = (about: string, unit: string, example: string, nullMeaning?: string): Line => [
  'integer',
  about,
  { unit, example, ...(nullMeaning === undefined ? {} : { nullMeaning }) },
]

export const SYNC_TABLES: readonly DescribedTable[] = [
  described(
    {
      name: 'sync_status',
      form: 'view',
      area: 'sync',
      about: 'One row per resource: whether it is complete, how fresh it is, and what is the matter with it.',
    },
    {
      resource: RESOURCE,
      state: [
        'text',
        '`backfilling` until it was complete for the first time; `waiting`: complete, but something is not ready at the API; `unavailable`: this workspace does not offer it; `failing`: the last run failed, a list was not read within twice its interval, or the API cannot be reached or grants no access; else `ok`.',
        { example: 'ok' },
      ],
      reason: [
        'text',
        'Why it is not `ok`: of `waiting` what waits, of `failing` and `unavailable` what the API answered.',
        { nullMeaning: 'It is `ok`.', example: 'The API answers 403' },
      ],
      rows_live: count(
        'Live rows. Of `messages` e-mails and no copies, of `message_bodies` e-mails with a text, of `transcripts` meetings with one.',
        'rows',
        '5120',
      ),
      rows_deleted: count('Rows whose absence was confirmed.', 'rows', '3'),
      newest_at: instant('Latest event time among the live rows.', 'It has no rows, or no event time.'),
      fresh_as_of: instant(
        'Start of the last complete read of the newest end, or of the last complete pass.',
        'There was none yet.',
      ),
      complete_as_of: instant(
        'Everything published before this instant, of whatever event time, had been read.',
        'History is loading.',
      ),
      backfill_done: count('How much of the backfill is done: `rows_live`.', 'rows', '5120'),
      backfill_total: count(
        'Out of how much, what is yet to be read included.',
        'rows',
        '5120',
        'It is unknown.',
      ),
      pending_tasks: count('Reads that are still to be made or repeated.', 'reads', '0'),
      rejected: count('Items that could still not be stored, see `sync_rejects`.', 'items', '0'),
      last_success_at: instant('When it was last read without a fault.', 'It never was.'),
      next_run_at: instant(
        'When it is next due. Whether it is read then depends on a daemon or a backfill that runs.',
        'It was never read.',
      ),
    },
  ),
  described(
    {
      name: 'sync_coverage',
      form: 'view',
      area: 'sync',
      about:
        'One row per time segment of the resources that are read in time order: when it was last read, and what is in it. Segments leave no gap. Of activities and messages the oldest has no start and the newest no end; those of the access log are the periods in which it was asked for.',
    },
    {
      resource: RESOURCE,
      from_at: instant('Start of the segment.', 'The beginning of time.'),
      to_at: instant('Its end, not part of it.', 'The open end.'),
      listed_at: instant('When it was last read to its end.', 'It never was.'),
      rows_live: count(
        'Live rows within it, of `messages` copies; those without a time are in the oldest.',
        'rows',
        '812',
      ),
      bodies_present: count(
        'E-mails within it whose text is known.',
        'e-mails',
        '790',
        'It is no segment of e-mails.',
      ),
      bodies_pending: count(
        'E-mails within it whose text is still to be read.',
        'e-mails',
        '0',
        'It is no segment of e-mails.',
      ),
    },
  ),
  described(
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
      lane: ['text', '`history` until the resource was complete once, then `audit`.', { example: 'history' }],
      started_at: ['timestamp', 'When it began.', { example: INSTANT }],
      ended_at: instant('When it ended.', 'It is under way.'),
      outcome: [
        'text',
        '`complete`, `stopped` before its end, `failed`, `unavailable` (not offered here) or `interrupted` (the process died).',
        { nullMeaning: 'It is under way.', example: 'complete' },
      ],
      requests: count('Requests that it made.', 'requests', '52'),
      throttled: count('Of these, refused as too many (429).', 'requests', '0'),
      rows_read: count('Records that the API sent.', 'records', '5120'),
      rows_changed: count('Rows written because they were new or had changed.', 'rows', '5120'),
      rows_deleted: count('Rows whose absence it confirmed.', 'rows', '0'),
      error: ['text', 'What went wrong.', { nullMeaning: 'Nothing.', example: 'The API answers 500' }],
    },
  ),
  described(
    {
      name: 'sync_rejects',
      form: 'table',
      area: 'sync',
      about:
        'Every item that could not be stored. Nothing received is dropped without a row here. A span of event time in which the API cannot answer for some row has a row here too, with the span as its item.',
      sortable: ['id'],
    },
    {
      id: ['integer', 'Number of the item.', { isKey: true, example: '7' }],
      resource: ['text', 'Name of the resource.', { example: 'activities' }],
      item: ['json', 'As received; or the span, as `from` and `to`.', { example: '{"id":null}' }],
      reason: ['text', 'Why it could not be stored.', { example: 'no id' }],
      first_seen_at: ['timestamp', 'When it was first received.', { example: INSTANT }],
      last_seen_at: ['timestamp', 'When it was last received.', { example: INSTANT }],
      resolved_at: instant(
        'When it was stored after all, or was no longer in anything that is still read. It is removed some weeks later.',
        'It is still so.',
      ),
      _feed: ['text', 'Internal: the list or read that brought it.', { example: 'activities.list' }],
      _scope: ['text', 'Internal: what was asked for there; empty where nothing was.', { example: 'deal' }],
      _digest: ['text', 'Internal: tells the same item, seen again, from another one.', { example: '9b1c…' }],
    },
  ),
]

export const DICTIONARY_TABLE: DescribedTable = described(
  {
    name: 'data_dictionary',
    form: 'table',
    area: 'dictionary',
    about:
      'What every column of every table and view means, this one included. The program parley made this file from the API of a conversation-intelligence product and keeps it true to it.',
    sortable: ['table_name'],
  },
  {
    table_name: ['text', 'Name of the table or view.', { isKey: true, example: 'meetings' }],
    column_name: ['text', 'Name of the column.', { isKey: true, example: 'recording_duration' }],
    position: ['integer', '0-based place of the column within its table.', { example: '8' }],
    type: [
      'text',
      '`text`, `timestamp` (text, UTC, always 24 characters), `date` (text, `2026-06-30`), `json` (text), `integer`, `boolean` (0 or 1), `real`, or `any` (a number, and text where it has more digits than a number keeps). A timestamp of a CRM field that does not parse stands as it was sent.',
      { example: 'integer' },
    ],
    null_meaning: ['text', 'What NULL means there.', { example: 'The API sent null or nothing.' }],
    description: ['text', 'What the value means.', { example: 'Length of the recording.' }],
    source_field: [
      'text',
      'Field of the API that the value comes from; `[]` stands after every list on the way.',
      { nullMeaning: 'The value is of parley’s own making.', example: 'attendees[].teams[].team_id' },
    ],
    unit: [
      'text',
      'What a quantity is measured in; `not stated` where the API does not say.',
      { nullMeaning: 'The value is no quantity.', example: 'not stated' },
    ],
    example: [
      'text',
      'A made-up value as it is stored.',
      { nullMeaning: 'It is a field of your CRM.', example: '2700' },
    ],
  },
)

export const QUESTIONS_TABLE: DescribedTable = described(
  {
    name: 'parley_questions',
    form: 'table',
    area: 'dictionary',
    about:
      'Questions that people ask this file, as SQL to run and to change. They come with parley, the program that made this file, and are in the folder `drizzle/questions` of its source.',
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
      'What can be changed at the top of the statement: a list of `name`, `value` (an SQL expression) and `about`.',
      { example: '[{"name":"days","value":"14","about":"how many days without activity are too many"}]' },
    ],
    sql: [
      'text',
      'One statement for SQLite 3.38 or newer.',
      { example: 'WITH parameters AS (SELECT …) SELECT …' },
    ],
    duckdb_sql: [
      'text',
      'The same for DuckDB, over the views of `parley schema --duckdb`, or Parquet files under the names of their tables.',
      { example: 'WITH parameters AS (SELECT …) SELECT …' },
    ],
  },
)

/** Tables for parley alone: their columns are not told and may change. */
export const INTERNAL_TABLES: Readonly<Record<string, string>> = {
  sync_meta: 'Values of the database as a whole.',
  sync_resources: 'What is known of each resource; `sync_status` tells it.',
  sync_segments: 'The ledger of what was listed; `sync_coverage` tells it.',
  sync_seen: 'Keys that a pass under way has seen.',
  sync_tasks: 'Reads that are to be made, repeated or confirmed.',
  sync_absences: 'Rows that the API has denied once or twice and that are not deleted yet.',
  sync_erasures: 'What was withdrawn and still has its content.',
  sync_arrivals: 'How late rows came to be known.',
  sync_requests: 'What other processes ask of the one that writes.',
  __drizzle_migrations: 'Which migrations the file has had.',
}

/** Full-text indices, there while `search.enabled` is on: for queries of the analysts' own, without descriptions of their columns. */
export const SEARCH_TABLES: Readonly<Record<string, string>> = {
  search_messages: 'Full-text index of subjects and texts of e-mails; its rowid is `messages._id`.',
  search_transcripts: 'Full-text index of what was said; its rowid is `transcript_entries._id`.',
  search_meetings:
    'Full-text index of titles, chapters, points and action items; `rowid >> 36` is `meetings._id`.',
  search_indices: 'How far each full-text index is built.',
}

/** SQLite's own tables, typed tables while they are being filled or emptied, and the full-text indices. */
const INTERNAL_NAMES = /^(sqlite_|sync_crm_|search_)/

/** Whether a table of the file is parley's or SQLite's alone. */
export function isInternal(name: string): boolean {
  return Object.hasOwn(INTERNAL_TABLES, name) || INTERNAL_NAMES.test(name)
}
