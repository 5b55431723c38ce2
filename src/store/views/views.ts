import { ownerOf, type PlacedTable, TABLES, tableNamed } from '../../catalog/catalog.ts'
import type { LivesWith } from '../../declare/table.ts'
import { quote } from '../database/sql.ts'
import type { Sqlite } from '../database/sqlite-types.ts'
import { dealViews } from './deal-views.ts'
import { replaceViews, type View } from './replace.ts'
import { syncCoverage, syncStatus } from './sync.ts'

/**
 * The views that the writer creates when it opens the file: one `live_…` view for each table of the catalogue,
 * `transcript_words`, and the views of the sync's state (sync.ts) and of deals (deal-views.ts). The `live_…` and
 * `labelled_…` views of CRM objects are in `../crm/sql.ts`. The latter and the deal views are replaced again when the
 * CRM's fields change.
 */

/** Creates or replaces each of these views that is missing or differs from this version's. */
export function ensureViews(db: Sqlite): void {
  replaceViews(db, [...viewStatements(), ...dealViews(db)])
}

function viewStatements(): readonly View[] {
  return [
    ...[...TABLES.values()].map(liveViewOf),
    view('transcript_words', TRANSCRIPT_WORDS),
    view('sync_status', syncStatus()),
    view('sync_coverage', syncCoverage()),
    ...Object.entries(EARLIER_NAMES).map(([name, table]) => view(name, `SELECT * FROM ${table}`)),
  ]
}

/** Tables by their earlier names, for views and triggers that parley did not create. */
export const EARLIER_NAMES = { sync_absences: 'sync_suspicions', sync_erasures: 'sync_purge_queue' }

/** The SQL of this view is valid in DuckDB as well. */
export const liveViewOf = (placed: PlacedTable): View => view(`live_${placed.table.name}`, liveRows(placed))

const view = (name: string, select: string): View => ({
  name,
  sql: `CREATE VIEW ${quote(name)} AS ${select}`,
})

function liveRows(placed: PlacedTable): string {
  const { table } = placed
  const columns = Object.keys(table.columns).filter(name => !name.startsWith('_'))
  const select = `SELECT ${columns.map(name => `t.${quote(name)}`).join(', ')} FROM ${quote(table.name)} t`
  if (table.kind === 'entity') return `${select} WHERE t._deleted_at IS NULL`
  const owner = ownerOf(placed)
  return owner ? `${select} WHERE EXISTS (${liveOwner(owner)})` : select
}

function liveOwner({ table, on }: LivesWith): string {
  const { openWhen } = tableNamed(table)
  const conditions = [
    ...Object.entries(on).map(([mine, theirs]) => `o.${quote(theirs)} = t.${quote(mine)}`),
    'o._deleted_at IS NULL',
    ...(openWhen ? [`o.${openWhen}`] : []),
  ]
  return `SELECT 1 FROM ${quote(table)} o WHERE ${conditions.join(' AND ')}`
}

/** NULL when the time is not a number. */
const timeOfWord = (index: number) =>
  `CAST(CASE WHEN json_type(w.value, '$[${index}]') IN ('integer', 'real') THEN json_extract(w.value, '$[${index}]') END AS REAL)`

const TRANSCRIPT_WORDS = `
SELECT e.meeting_id, e.position AS entry_position, CAST(w.key AS INTEGER) AS position,
  CAST(json_extract(w.value, '$[0]') AS TEXT) AS text,
  ${timeOfWord(1)} AS start_time,
  ${timeOfWord(2)} AS end_time
FROM transcript_entries e JOIN json_each(e.words) w`.trim()
