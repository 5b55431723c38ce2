import { type BookkeepingTable, isDescribed } from '../catalog/bookkeeping/table-declaration.ts'
import {
  BOOKKEEPING,
  DAY_TABLE,
  DICTIONARY_TABLE,
  MINUTE_TABLE,
  PUBLICATION_TABLE,
  QUESTION_TABLE,
  REJECT_TABLE,
  RUN_TABLE,
} from '../catalog/bookkeeping/tables.ts'
import { meaningsOf } from '../declare/table.ts'
import {
  type ColumnLine,
  column,
  type DescribedTable,
  NEVER_NULL,
  tableFromLines,
} from './described-table.ts'

/** Descriptions of the tables and views of the sync state, and of the dictionary itself. */

const RESOURCE: ColumnLine = column('text', 'Name of the resource.', 'messages', { isKey: true })
const INSTANT = '2026-03-04T05:06:07.123Z'

/** The states of a resource. Every table, page, document and metric shows these words. */
export const RESOURCE_STATES = {
  ok: 'everything that the API publishes is here, except what `sync.since` leaves out',
  backfilling:
    'the first complete read is under way, or `sync.resources`, `--only` or `--skip` leaves it out',
  'on hold':
    'nothing is wrong with this resource, but nothing is read: the API is away, refuses access or asked to wait, or the daemon waits',
  waiting: 'complete, but something is not ready in the API yet',
  unavailable: 'this workspace does not offer it',
  failing: 'it cannot be read, or a list was not read within twice its interval',
} as const

export type ResourceStateName = keyof typeof RESOURCE_STATES

/** An instant that may be unknown. */
const instant = (about: string, nullMeaning: string): ColumnLine =>
  column('timestamp', about, INSTANT, { nullMeaning })

const count = (about: string, unit: string, example: string, nullMeaning = NEVER_NULL): ColumnLine =>
  column('integer', about, example, { unit, nullMeaning })

export const SYNC_TABLES: readonly DescribedTable[] = [
  tableFromLines(
    {
      name: 'sync_status',
      form: 'view',
      area: 'sync',
      onDelete: null,
      about: 'One row per resource: whether it is complete, how fresh it is, and why it is not `ok`.',
    },
    {
      resource: RESOURCE,
      state: column('text', `${meaningsOf(RESOURCE_STATES)}.`, 'ok', {
        values: Object.keys(RESOURCE_STATES),
      }),
      reason: column(
        'text',
        'Explains the state. For `backfilling`: whether it is left out. For `waiting`: what is not ready. For `on hold`: since when, why, and the next try. For `failing` and `unavailable`: what the API answered. For `ok`: that it is left out by now, or that deletions are not recognised, since a list shows another number of rows than it states.',
        'The API answers 403',
        { nullMeaning: 'The state is `ok`, the resource is read, and deletions are recognised.' },
      ),
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
        'Start of the last complete read of the newest end, or of the last complete pass. For resources with several lists, such as CRM records: of the list whose last pass is the oldest.',
        'There was none yet, or the resource is read row by row and has no list; `complete_as_of` has its age.',
      ),
      complete_as_of: instant(
        'Everything published before this instant, whatever its event time, had been read. With `sync.since` this leaves out the details, transcripts and playbook results of earlier meetings, the texts of earlier e-mails and earlier log entries. For `access_logs`: except entries that appeared after their period was closed; `parley resync access_logs` reads them.',
        'History is still loading, or `sync.since` leaves out the beginning of a list of activities or messages.',
      ),
      backfill_done: count('Progress of the backfill: `rows_live`.', 'rows', '5120'),
      backfill_total: count(
        'Expected end of the backfill: rows stored and rows still to read.',
        'rows',
        '5120',
        'It is not known.',
      ),
      pending_tasks: count(
        'Reads that are outstanding or have to be repeated, without those that `sync.since` leaves out.',
        'reads',
        '0',
      ),
      rejected: count('Items that could not be stored; see `sync_rejects`.', 'items', '0'),
      last_success_at: instant(
        'When a run of the resource last ended without a failure.',
        'No run has ended without a failure yet.',
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
      onDelete: null,
      about:
        'One row per time segment of the resources that are read in time order: when it was last read, and what it holds. Segments leave no gap. For activities and messages the oldest segment has no start and the newest no end. For the access log the segments are the periods in which it was read.',
    },
    {
      resource: column('text', 'Name of the resource.', 'messages'),
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
        'The segment is not of the resource `messages`.',
      ),
      bodies_pending: count(
        'E-mails in the segment whose text is still to be read.',
        'e-mails',
        '0',
        'The segment is not of the resource `messages`.',
      ),
    },
  ),
  describedBookkeeping(RUN_TABLE, { area: 'sync' }),
  describedBookkeeping(MINUTE_TABLE, { area: 'sync' }),
  describedBookkeeping(DAY_TABLE, { area: 'sync' }),
  describedBookkeeping(PUBLICATION_TABLE, { area: 'sync' }),
  describedBookkeeping(REJECT_TABLE, { area: 'sync' }),
]

export const DICTIONARY_TABLES: readonly DescribedTable[] = [
  describedBookkeeping(DICTIONARY_TABLE, { area: 'dictionary' }),
  describedBookkeeping(QUESTION_TABLE, { area: 'dictionary', label: 'question' }),
]

export function describedBookkeeping(
  { name, about, columns, key, indices = {} }: BookkeepingTable,
  more: Pick<DescribedTable, 'area' | 'label'>,
): DescribedTable {
  const leading = [key, ...Object.values(indices).flatMap(({ on, unique }) => (unique ? [] : [on]))]
  return {
    name,
    form: 'table',
    about,
    columns: Object.entries(columns).map(([column, declared]) => ({
      name: column,
      kind: declared.kind,
      about: declared.about ?? '',
      isKey: key.includes(column),
      nullMeaning: declared.nullMeans ?? NEVER_NULL,
      source: null,
      unit: declared.unit ?? null,
      example: declared.example ?? null,
      refersTo: declared.refersTo ?? [],
      onDelete: declared.onDelete ?? null,
      ...(declared.values === undefined ? {} : { values: declared.values }),
    })),
    sortable: [...new Set(leading.flatMap(([first]) => first ?? []))],
    ...more,
  }
}

/** Tables that only parley uses. Their columns are not described and may change. */
export const INTERNAL_TABLES: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    BOOKKEEPING.filter(table => !isDescribed(table)).map(({ name, about }) => [name, about]),
  ),
  __drizzle_migrations: 'Migrations that were applied to the file.',
  sync_absences: 'The earlier name of `sync_suspicions`.',
  sync_erasures: 'The earlier name of `sync_purge_queue`.',
}

/** Full-text indices, present while `search.enabled` is on. Analysts may query them; no column is described. */
export const SEARCH_TABLES: Readonly<Record<string, string>> = {
  search_messages: 'Full-text index of subjects and texts of e-mails; its rowid is `messages._id`.',
  search_transcripts: 'Full-text index of what was said; its rowid is `transcript_entries._id`.',
  search_meetings:
    'Full-text index of titles, chapters, points and action items; `rowid >> 36` is `meetings._id`.',
  search_indices: 'How far each full-text index is built.',
}

/**
 * SQLite's tables, typed CRM tables that are being filled or emptied, the full-text indices, and tables behind those
 * for reports.
 */
const INTERNAL_NAMES = /^(sqlite_|sync_crm_|search_|_)/

/** Whether the dictionary leaves the table out. */
export function isInternal(name: string): boolean {
  return Object.hasOwn(INTERNAL_TABLES, name) || INTERNAL_NAMES.test(name)
}
