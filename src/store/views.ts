import { CATALOG, type PlacedTable, TABLES, tableNamed } from '../catalog.ts'
import { sqlComment } from '../dictionary/described.ts'
import { describedTable } from '../dictionary/dictionary.ts'
import type { LivesWith } from '../resource.ts'
import { replaceView } from './database/set-aside.ts'
import { dealViews } from './deal-views.ts'
import type { Sqlite } from './open.ts'
import { quote } from './sql.ts'
import { syncCoverage, syncStatus } from './sync-views.ts'

/** The views of the warehouse contract, made from the catalogue, so that they are always those of this version. */

/** Makes every view of the warehouse that is missing or differs; touches nothing else. */
export function ensureViews(db: Sqlite): void {
  replaceViews(db, [...viewStatements(), ...dealViews(db)])
}

/** Makes those of the views that are missing or differ; touches nothing else. Returns whether there were any. */
export function replaceViews(db: Sqlite, views: readonly View[]): boolean {
  const present = new Map(
    db.prepare("SELECT name, sql FROM sqlite_master WHERE type = 'view'").raw().all() as [string, string][],
  )
  const tables = new Set(db.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").pluck().all())
  // A table of someone else that has the name stays.
  const outdated = views
    .map(explained)
    .filter(({ name, sql }) => present.get(name) !== sql && !tables.has(name))
  if (outdated.length === 0) return false
  db.transaction(() => {
    for (const view of outdated) replaceView(db, view)
  }).immediate()
  return true
}

export interface View {
  name: string
  sql: string
}

/** With what a row of it is, for those who look at the schema. */
function explained({ name, sql }: View): View {
  const about = describedTable(name)?.about
  if (about === undefined) return { name, sql }
  return { name, sql: sql.replace(/^CREATE VIEW \S+/, head => `${head} ${sqlComment(about)}`) }
}

export function viewStatements(): readonly View[] {
  const view = (name: string, select: string): View => ({
    name,
    sql: `CREATE VIEW ${quote(name)} AS ${select}`,
  })
  return [
    ...[...TABLES.values()].map(placed => view(`live_${placed.table.name}`, liveRows(placed))),
    view('transcript_words', TRANSCRIPT_WORDS),
    view('sync_status', syncStatus(CATALOG)),
    view('sync_coverage', syncCoverage(CATALOG)),
  ]
}

function liveRows(placed: PlacedTable): string {
  const { table } = placed
  const columns = Object.keys(table.columns).filter(name => !name.startsWith('_'))
  const select = `SELECT ${columns.map(name => `t.${quote(name)}`).join(', ')} FROM ${quote(table.name)} t`
  if (table.kind === 'entity') return `${select} WHERE t._deleted_at IS NULL`
  const owner = table.livesWith ?? livesWithRoot(placed)
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

/** Every table below an entity starts its key with the entity's own, at whatever depth. */
function livesWithRoot({ table, root }: PlacedTable): LivesWith | undefined {
  if (!root) return undefined
  const [first = ''] = table.key
  const inherits = table.columns[first]?.source.from === 'parent'
  return { table: root.name, on: inherits ? { [first]: root.key.at(-1) ?? '' } : {} }
}

const TRANSCRIPT_WORDS = `
SELECT e.meeting_id, e.position AS entry_position, w.key AS position,
  json_extract(w.value, '$[0]') AS text,
  json_extract(w.value, '$[1]') AS start_time,
  json_extract(w.value, '$[2]') AS end_time
FROM transcript_entries e JOIN json_each(e.words) w`.trim()
