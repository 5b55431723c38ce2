import { CATALOG, type PlacedTable, TABLES, tableNamed } from '../catalog.ts'
import type { Feed, LivesWith, Resource } from '../resource.ts'
import type { Sqlite } from './open.ts'
import { quote } from './sql.ts'

/** The views of the warehouse contract, made from the catalogue, so that they are always those of this version. */

/** Makes every view that is missing or differs; touches nothing else. */
export function ensureViews(db: Sqlite): void {
  const present = new Map(
    db.prepare("SELECT name, sql FROM sqlite_master WHERE type = 'view'").raw().all() as [string, string][],
  )
  const outdated = viewStatements().filter(({ name, sql }) => present.get(name) !== sql)
  if (outdated.length === 0) return
  db.transaction(() => {
    for (const { name, sql } of outdated) {
      db.exec(`DROP VIEW IF EXISTS ${quote(name)}`)
      db.exec(sql)
    }
  }).immediate()
}

export interface View {
  name: string
  sql: string
}

export function viewStatements(): readonly View[] {
  const view = (name: string, select: string): View => ({
    name,
    sql: `CREATE VIEW ${quote(name)} AS ${select}`,
  })
  return [
    ...[...TABLES.values()].map(placed => view(`live_${placed.table.name}`, liveRows(placed))),
    view('message_participants', MESSAGE_PARTICIPANTS),
    view('live_message_participants', 'SELECT * FROM message_participants'),
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

/**
 * The union over the live copies by role and address. The least of `time, id, separator, value` is the value of the
 * first copy in canonical order that has one.
 */
const MESSAGE_PARTICIPANTS = `
SELECT header_message_id, role, handle,
  substr(display_name, instr(display_name, char(31)) + 1) AS display_name,
  substr(contact_id, instr(contact_id, char(31)) + 1) AS contact_id
FROM (
  SELECT coalesce(nullif(c.header_message_id, ''), 'id:' || c.id) AS header_message_id, p.role, p.handle,
    min(coalesce(c.received_at, '~') || c.id || char(31) || p.display_name) AS display_name,
    min(coalesce(c.received_at, '~') || c.id || char(31) || p.contact_id) AS contact_id
  FROM message_copies c JOIN message_copy_participants p ON p.message_id = c.id
  WHERE c._deleted_at IS NULL AND p.role IS NOT NULL AND p.handle IS NOT NULL
  GROUP BY 1, 2, 3
)`.trim()

const TRANSCRIPT_WORDS = `
SELECT e.meeting_id, e.position AS entry_position, w.key AS position,
  json_extract(w.value, '$[0]') AS text,
  json_extract(w.value, '$[1]') AS start_time,
  json_extract(w.value, '$[2]') AS end_time
FROM transcript_entries e JOIN json_each(e.words) w`.trim()

function syncStatus(resources: readonly Resource[]): string {
  return resources.map(statusOf).join('\nUNION ALL\n')
}

const STATE = `CASE
    WHEN s.failing_since IS NOT NULL THEN 'failing'
    WHEN s.unavailable_since IS NOT NULL THEN 'unavailable'
    WHEN s.first_complete_at IS NULL THEN 'backfilling'
    WHEN w.waiting > 0 THEN 'waiting'
    ELSE 'ok' END`

function statusOf(resource: Resource): string {
  const { name, status } = resource
  const table = quote(status.table)
  const entity = tableNamed(status.table).kind === 'entity'
  const live = entity ? ' WHERE _deleted_at IS NULL' : ''
  const counted = status.where ? `${live} AND ${status.where}` : live
  const rows = `(SELECT count(*) FROM ${table}${counted})`
  const deleted =
    entity && !status.where ? `(SELECT count(*) FROM ${table} WHERE _deleted_at IS NOT NULL)` : '0'
  const pending = status.pending ? `(SELECT count(*) FROM ${table}${live} AND ${status.pending})` : '0'
  const total = status.pending
    ? `${rows} + ${pending}`
    : `CASE WHEN s.first_complete_at IS NOT NULL THEN ${rows} END`
  const newest = status.newest ? `(SELECT max(${quote(status.newest)}) FROM ${table}${counted})` : 'NULL'
  return `SELECT '${name}' AS resource, ${STATE} AS state, s.reason, ${rows} AS rows_live,
  ${deleted} AS rows_deleted, ${newest} AS newest_at, s.fresh_as_of, ${completeAsOf(resource)} AS complete_as_of,
  ${rows} AS backfill_done, ${total} AS backfill_total, w.open + ${pending} AS pending_tasks,
  (SELECT count(*) FROM sync_rejects j WHERE j.resource = '${name}' AND j.resolved_at IS NULL) AS rejected,
  s.last_success_at, s.next_run_at
FROM sync_resources s JOIN (
  SELECT coalesce(sum(waiting AND coalesce(deadline, '~') > strftime('%Y-%m-%dT%H:%M:%fZ', 'now')), 0) AS waiting,
     coalesce(sum(waiting OR round = 0), 0) AS open
  FROM sync_tasks WHERE feed >= '${name}.' AND feed < '${name}/'
) w WHERE s.resource = '${name}'`
}

const SEGMENTED: readonly Feed['mode'][] = ['timeline', 'snapshot', 'periodic']

/** The oldest listing of what makes up the whole; unknown while a part was never listed. */
function completeAsOf({ feeds }: Resource): string {
  const listed = Object.entries(feeds).filter(([, feed]) => SEGMENTED.includes(feed.mode))
  if (listed.length === 0) return 's.complete_as_of'
  return `(SELECT CASE WHEN count(*) = count(g.listed_at) THEN min(g.listed_at) END
    FROM sync_segments g WHERE g.feed >= s.resource || '.' AND g.feed < s.resource || '/')`
}

function syncCoverage(resources: readonly Resource[]): string {
  const parts = resources.flatMap(resource =>
    Object.entries(resource.feeds).flatMap(([name, feed]) =>
      feed.mode === 'timeline' || feed.mode === 'periodic'
        ? [coverageOf(`${resource.name}.${name}`, resource, feed.table, feed.time)]
        : [],
    ),
  )
  return parts.join('\nUNION ALL\n')
}

function coverageOf(feed: string, resource: Resource, table: string, time: string): string {
  const derived = resource.derivation && tableNamed(resource.derivation.into)
  const bodies = (state: string) =>
    derived
      ? `(SELECT count(*) FROM ${quote(derived.name)} t WHERE ${within(time)} AND t.text_state = '${state}')`
      : 'NULL'
  return `SELECT '${resource.name}' AS resource, g.from_at, g.to_at, g.listed_at,
  (SELECT count(*) FROM ${quote(table)} t WHERE ${within(time)}) AS rows_live,
  ${bodies('present')} AS bodies_present, ${bodies('pending')} AS bodies_pending
FROM sync_segments g WHERE g.feed = '${feed}'`
}

function within(time: string): string {
  const column = `t.${quote(time)}`
  return `t._deleted_at IS NULL AND ${column} >= coalesce(g.from_at, '') AND ${column} < coalesce(g.to_at, '~')`
}
