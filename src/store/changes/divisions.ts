import { BOOKKEEPING, SEGMENT_TABLE } from '../../catalog/bookkeeping/tables.ts'
import { ownerOf, TABLES } from '../../catalog/catalog.ts'
import type { DescribedColumn } from '../../dictionary/described-table.ts'
import { DERIVED_TABLES } from '../../dictionary/report-tables.ts'

/** How the tables that are exported or published are divided into parts: by the month of a time, else by key. Pure. */
export type Division =
  | { by: 'month'; column: string }
  /** By the month of the owner of each row, such as the meeting of a transcript entry. */
  | { by: 'month-of-owner'; owner: string; column: string; on: { mine: string; theirs: string } }
  | { by: 'key'; columns: readonly string[] }

/**
 * The event time by table. `crm_records` has none: `updated_at` changes whenever a record changes, so rows would move
 * between parts.
 */
const TIMES: Readonly<Record<string, string>> = {
  activities: 'occurred_at',
  message_copies: 'received_at',
  messages: 'received_at',
  meetings: 'start_time',
  playbook_results: 'created_at',
  crm_record_changes: 'observed_at',
  access_logs: 'occurred_at',
  conversations: 'happened_at',
  sync_runs: 'started_at',
  sync_minutes: 'at',
  deal_versions: 'from_at',
}

/** The tables of parley's own state that are exported. */
const STATE_TABLES = [
  'sync_runs',
  'sync_minutes',
  'sync_rejects',
  'sync_days',
  'data_dictionary',
  'parley_questions',
  'report_settings',
  'report_settings_changes',
  'member_versions',
  'team_versions',
  'metrics',
]

/** By table. The typed tables of CRM objects depend on the workspace and are missing here: their key is `id`. */
export const DIVISIONS: ReadonlyMap<string, Division> = new Map([
  ...[...TABLES.keys()].map(name => [name, divisionOf(name)] as const),
  ...BOOKKEEPING.filter(({ name }) => STATE_TABLES.includes(name)).map(
    ({ name, key }) => [name, byOwnTime(name) ?? { by: 'key', columns: key }] as const,
  ),
  ...DERIVED_TABLES.map(
    ({ name, columns }) => [name, byOwnTime(name) ?? { by: 'key', columns: keyOf(columns) }] as const,
  ),
])

function keyOf(columns: readonly DescribedColumn[]): string[] {
  return columns.flatMap(({ isKey, name }) => (isKey ? [name] : []))
}

function divisionOf(name: string): Division {
  const placed = TABLES.get(name)
  if (!placed) throw new TypeError(`No resource declares a table ${name}`)
  const { storage, key } = placed.table
  const owner = ownerOf(placed)
  const [[mine, theirs] = []] = Object.entries(owner?.on ?? {})
  const column = TIMES[owner?.table ?? '']
  const byKey: Division = { by: 'key', columns: storage === 'rowid' ? ['_id'] : key }
  if (TIMES[name] !== undefined) return byOwnTime(name) ?? byKey
  if (!owner || column === undefined || mine === undefined || theirs === undefined) return byKey
  return { by: 'month-of-owner', owner: owner.table, column, on: { mine, theirs } }
}

function byOwnTime(name: string): Division | undefined {
  const column = TIMES[name]
  return column === undefined ? undefined : { by: 'month', column }
}

/** The internal tables for reports. */
export const INTERNAL_SOURCES = ['_conversation_people', '_record_conversations', '_mail_questions'] as const

/**
 * Tables that stay in the warehouse. Exported views read them, so their changes are noted too, each as a change of the
 * whole table.
 */
export const SOURCES_OF_VIEWS: readonly string[] = [SEGMENT_TABLE.name, ...INTERNAL_SOURCES]

/**
 * The tables with most rows of a warehouse. A row that one of these rows owns is only added when its owner is added or
 * changed.
 */
export const LARGE_OWNERS: readonly string[] = ['activities', 'message_copies', 'messages']

const GENERAL_COLUMNS = ['_first_seen_at', '_synced_at', '_changed_at', '_deleted_at', '_extra']

/** False for a column that only parley uses. */
export const isExported = (column: string): boolean =>
  !column.startsWith('_') || GENERAL_COLUMNS.includes(column)
