import { CATALOG, tableNamed } from '../../catalog/catalog.ts'
import { feedsOf, itemsOf, listsOf } from '../../catalog/feeds.ts'
import type { Feed, Resource, StatusSource } from '../../declare/resource.ts'
import { quote } from '../database/sql.ts'
import { API_GATE, FAILURE_KINDS, GATE_KINDS, ROUTE_GATE } from '../sync/gates.ts'
import { META } from '../sync/meta.ts'
import { SIZE_DIFFERS } from '../sync/segments.ts'

/**
 * The SQL of `sync_status` and `sync_coverage`. The daemon and its operators query them every minute, so every count
 * uses an index and never scans a table of texts.
 */

/**
 * An expression in a view has a declared type only through a cast. Clients that read the file need the declared type.
 */
const asText = (value: string) => `CAST(${value} AS TEXT)`
const asInteger = (value: string) => `CAST(${value} AS INTEGER)`
/** Without this outer SELECT, SQLite declares a cast to INTEGER as NUM under UNION ALL. */
const asArm = (select: string) => `SELECT * FROM (${select})`

/** `sync_status`: one row per resource, in this order. */
export function syncStatus(): string {
  const completing = CATALOG.filter(({ status }) => status.pending !== undefined)
  // The LIMIT and the WHERE together keep SQLite from merging the inner query into the outer one, which would repeat a
  // count for each use.
  return `SELECT ${asText('s.resource')} AS resource, ${asText(STATE)} AS state, ${asText(REASON)} AS reason,
  ${asInteger('s.live')} AS rows_live, ${asInteger('s.deleted')} AS rows_deleted,
  ${asText('s.newest')} AS newest_at, ${asText('s.fresh')} AS fresh_as_of, ${asText('s.complete')} AS complete_as_of,
  ${asInteger('s.live')} AS backfill_done,
  ${asInteger(`CASE WHEN s.first_complete_at IS NOT NULL OR s.resource IN (${namesOf(completing)}) THEN s.live + s.pending END`)} AS backfill_total,
  ${asInteger('s.open + s.pending')} AS pending_tasks, ${asInteger('s.rejected')} AS rejected,
  s.last_success_at, s.next_run_at
FROM (
  SELECT r.*, ${each(({ status }) => liveRowsCounted(status))} AS live,
    ${each(({ status }) => deletedRows(status))} AS deleted,
    ${each(pendingRows)} AS pending,
    ${each(({ status }) => newestOf(status))} AS newest,
    ${each(freshAsOf)} AS fresh,
    ${each(completeAsOf)} AS complete,
    ${each(resource => tasks(resource, WAITING))} AS waiting,
    ${each(({ status }) => `'${status.waitsFor ?? 'answers'}'`)} AS waits_for,
    ${each(resource => tasks(resource, openTasks(resource)))} AS open,
    (SELECT count(*) FROM sync_rejects j WHERE j.resource = r.resource AND j.resolved_at IS NULL) AS rejected,
    ${SIZE_DIFFERS_NOW} AS size_differs,
    ${closedGate('g.kind')} AS gate,
    ${GATE_REASON} AS gate_reason
  FROM json_each('${JSON.stringify(CATALOG.map(({ name }) => name))}') n CROSS JOIN sync_resources r ON r.resource = n.value LIMIT -1
) s WHERE true`
}

const namesOf = (resources: readonly Resource[]): string =>
  resources.map(({ name }) => `'${name}'`).join(', ')

/** SQL of a value that differs by resource. Each different text occurs once, and the one of most resources last. */
function each(expression: (resource: Resource) => string): string {
  const groups = new Map<string, Resource[]>()
  for (const resource of CATALOG) {
    const sql = expression(resource)
    groups.set(sql, [...(groups.get(sql) ?? []), resource])
  }
  const [most, ...others] = [...groups].toSorted(([, some], [, more]) => more.length - some.length)
  if (most === undefined || others.length === 0) return most?.[0] ?? 'NULL'
  const cases = others.map(([sql, of]) => `WHEN r.resource IN (${namesOf(of)}) THEN ${sql}`)
  return `CASE ${cases.join('\n      ')} ELSE ${most[0]} END`
}

/** SQL over the resource's tasks that count. They are few, and have an index. */
const tasks = (resource: Resource, value: string) => `(SELECT ${value} FROM sync_tasks
      WHERE feed >= r.resource || '.' AND feed < r.resource || '/' AND (waiting OR round = 0)${andIsRead(resource, 'sort_at')})`

/**
 * SQL condition that leaves out what happened before `sync.since`: such tasks and rows are stored, and are read by a run
 * without that setting. What has no time is read.
 */
function andIsRead(resource: Resource, time: string): string {
  const isBound = itemsOf(resource).some(({ feed }) => feed.boundBySince)
  const since = `coalesce((SELECT value FROM sync_meta WHERE key = '${META.since}'), '')`
  return isBound ? ` AND coalesce(${time}, '~') >= ${since}` : ''
}

/**
 * SQL of a value of the resource's first closed gate; the gate of the API comes first. NULL when no gate is closed. The
 * gate of a failing feed or route is left out, since the state of the resource shows the failure.
 */
const closedGate = (value: string) => `(SELECT ${value} FROM sync_gates g
    WHERE r.unavailable_since IS NULL AND g.kind NOT IN (${FAILURE_KINDS.map(kind => `'${kind}'`)}) AND r.resource IN (SELECT value FROM json_each(iif(json_valid(g.resources), g.resources, '[]')))
    ORDER BY g.what LIMIT 1)`

/** SQL of an instant as `clockText` writes it. */
const clockTime = (instant: string) =>
  `iif(substr(${instant}, 1, 10) = date('now'), substr(${instant}, 12, 8), replace(substr(${instant}, 1, 16), 'T', ' ')) || ' UTC'`

const GATE_REASON = closedGate(`CASE g.kind
      ${Object.entries(GATE_KINDS)
        .map(([kind, { hasBeen }]) => `WHEN '${kind}' THEN '${hasBeen}'`)
        .join(' ')} END
    || iif(g.what = '${API_GATE}', '', ' for ' || substr(g.what, ${ROUTE_GATE.length + 1})) || ' since ' || ${clockTime('g.since')} || ' (' || g.reason || '); next try at ' || ${clockTime('g.until')}`)

/** Whether the first read goes on. A backfill ends it with its run, which may be hours after the lists were read. */
const IS_BACKFILLING = 's.first_complete_at IS NULL AND s.complete IS NULL'

/**
 * Whether the last run left the resource out. NULL before the first run. The names are found in the text of the JSON
 * list, since a list that another program has damaged must not make the view fail.
 */
const IS_LEFT_OUT = `instr((SELECT value FROM sync_meta WHERE key = '${META.chosenResources}'), '"' || s.resource || '"') = 0`

const STATE = `CASE
    WHEN s.failing_since IS NOT NULL THEN 'failing'
    WHEN s.gate IS NOT NULL THEN 'on hold'
    WHEN s.unavailable_since IS NOT NULL THEN 'unavailable'
    WHEN ${IS_BACKFILLING} THEN 'backfilling'
    WHEN s.waiting > 0 AND ${IS_LEFT_OUT} IS NOT 1 THEN 'waiting'
    ELSE 'ok' END`

const LEFT_OUT = 'Left out by sync.resources, --only or --skip; choose it there to read it'

const SIZE_REASON = 'Deletions are not recognised: the list shows another number of rows than it states'

/** SQL condition: a list of the resource `r` shows another number of rows than it states. */
const SIZE_DIFFERS_NOW = `EXISTS (SELECT 1 FROM sync_meta
      WHERE key >= '${SIZE_DIFFERS}' || r.resource || '.' AND key < '${SIZE_DIFFERS}' || r.resource || '/')`

/**
 * Every state but `ok` has a reason, and `ok` where the resource is left out or deletions are not recognised. A closed
 * gate is the reason unless the resource itself fails.
 */
const REASON = `CASE
    WHEN s.failing_since IS NOT NULL THEN coalesce(s.reason, 'The last run failed')
    WHEN s.gate IS NOT NULL THEN s.gate_reason
    WHEN s.unavailable_since IS NOT NULL THEN coalesce(s.reason, 'This workspace does not offer it')
    WHEN ${IS_LEFT_OUT} THEN '${LEFT_OUT}'
    WHEN ${IS_BACKFILLING} THEN coalesce(s.reason, 'Not completely read yet')
    WHEN s.waiting > 0 THEN 'Not ready in the API yet: ' || s.waits_for || ' (' || s.waiting || ')'
    WHEN s.size_differs THEN '${SIZE_REASON}' END`

/**
 * Leaves out first reads that are tried again or have failed: they have a task, but their rows are counted among the
 * pending rows.
 */
function openTasks(resource: Resource): string {
  const pending = itemsOf(resource).flatMap(({ feed }) => feed.pending ?? [])
  const isPending = pending.map(
    ({ table, key, where }) =>
      `EXISTS (SELECT 1 FROM ${quote(table)} p WHERE p.${quote(key)} = sync_tasks.key AND ${where})`,
  )
  if (isPending.length === 0) return 'count(*)'
  return `count(*) FILTER (WHERE (failures = 0 AND tries = 0) OR NOT (${isPending.join(' OR ')}))`
}

/** What the clock of due times shows now (`store/sync/due-clock.ts`). */
const DUE_NOW = `strftime('%Y-%m-%dT%H:%M:%fZ', 'now',
    (coalesce((SELECT value FROM sync_meta WHERE key = '${META.dueAhead}'), 0) / 1000.0) || ' seconds')`

const WAITING = `count(*) FILTER (WHERE waiting AND failures = 0 AND coalesce(deadline, '~') > ${DUE_NOW})`

const counted = (table: string, where?: string) =>
  `(SELECT count(*) FROM ${quote(table)}${where === undefined ? '' : ` WHERE ${where}`})`

/** Without an index of live rows, counts all rows minus the deleted ones: SQLite counts both of these in an index. */
function liveRowsCounted({ table, where }: StatusSource): string {
  if (where !== undefined) return counted(table, `_deleted_at IS NULL AND ${where}`)
  const { kind, livesWith } = tableNamed(table)
  if (kind !== 'entity') return counted(livesWith ? `live_${table}` : table)
  if (hasLiveInIndex(table)) return counted(table, '_deleted_at IS NULL')
  return `${counted(table)} - ${counted(table, '_deleted_at IS NOT NULL')}`
}

/** Whether an index over all rows contains `_deleted_at`. Other counts read that index too, so its pages are cached. */
function hasLiveInIndex(table: string): boolean {
  return tableNamed(table).indices.some(
    ({ columns, where }) => where === undefined && columns.includes('_deleted_at'),
  )
}

function deletedRows({ table, where }: StatusSource): string {
  const isWholeEntity = tableNamed(table).kind === 'entity' && where === undefined
  return isWholeEntity ? counted(table, '_deleted_at IS NOT NULL') : '0'
}

function pendingRows(resource: Resource): string {
  const { table, pending, newest } = resource.status
  if (pending === undefined) return '0'
  const isRead = newest === undefined ? '' : andIsRead(resource, quote(newest))
  return counted(table, `_deleted_at IS NULL AND ${pending}${isRead}`)
}

function newestOf({ table, where, newest }: StatusSource): string {
  if (newest === undefined) return 'NULL'
  const isCounted = where === undefined ? '' : ` AND ${where}`
  return `(SELECT max(${quote(newest)}) FROM ${quote(table)} WHERE _deleted_at IS NULL${isCounted})`
}

/** A resource with one list for each scope is as fresh as the list whose last complete pass is the oldest. */
function freshAsOf(resource: Resource): string {
  const lists = listsOf(resource)
  const isByScope = lists.length > 0 && lists.every(({ feed }) => 'scope' in feed && feed.scope)
  return isByScope ? completeAsOf(resource) : 'r.fresh_as_of'
}

const SEGMENTED: readonly Feed['mode'][] = ['timeline', 'snapshot', 'periodic']

/**
 * The oldest `listed_at` of the resource's available segments. NULL while a segment was never read to its end. Where
 * the lists give only keys, reading them says nothing about the rows, so the last complete round decides. What has no
 * list is read for the rows of its parents, so it is no more complete than they are. Without any
 * scope, there is nothing to read, as of when the list of the scopes was read; before the first round has ended, the
 * scopes may only not be known yet, and a resource that is left out has none.
 */
function completeAsOf(resource: Resource): string {
  const listed = feedsOf(resource).filter(({ feed }) => SEGMENTED.includes(feed.mode))
  const isOfKeys = listed.some(({ feed }) => feed.mode === 'snapshot' && feed.lists === 'keys')
  if (isOfKeys) return 'r.complete_as_of'
  if (listed.length === 0) {
    const parents = CATALOG.filter(({ name }) => resource.parents.includes(name)).map(
      parent =>
        `(SELECT iif(r.unavailable_since IS NULL, ${completeAsOf(parent)}, '~') FROM sync_resources r WHERE r.resource = '${parent.name}')`,
    )
    return parents.length === 0 ? 'r.complete_as_of' : `min(r.complete_as_of, ${parents.join(', ')})`
  }
  const isPeriodic = listed.every(({ feed }) => feed.mode === 'periodic')
  // A new period that is not read yet: everything before its start was read, so the start stands for `listed_at`.
  const listedAt = isPeriodic
    ? 'coalesce(g.listed_at, iif(r.first_complete_at IS NULL, NULL, g.from_at))'
    : 'g.listed_at'
  // A closed period is final. Nothing after the end of the newest period has been requested yet.
  const oldest = isPeriodic
    ? `min(coalesce(min(${listedAt}) FILTER (WHERE NOT g.closed), max(g.to_at)), max(g.to_at))`
    : `min(${listedAt})`
  const scopes = listed.flatMap(({ feed }) => ('scope' in feed && feed.scope ? [feed.scope.table] : []))
  const ofScopes = scopes.map(table => {
    const owner = CATALOG.find(({ tables }) => tables.some(({ name }) => name === table))
    return owner
      ? `(SELECT ${completeAsOf(owner)} FROM sync_resources r WHERE r.resource = '${owner.name}')`
      : 'NULL'
  })
  return `(SELECT CASE WHEN count(*) = 0 THEN ${ofScopes[0] === undefined ? 'NULL' : `iif(r.first_complete_at IS NULL, NULL, ${ofScopes[0]})`} WHEN count(*) = count(${listedAt}) THEN ${oldest} END
      FROM sync_segments g WHERE g.feed >= r.resource || '.' AND g.feed < r.resource || '/' AND g.unavailable_since IS NULL)`
}

interface CoverageSource {
  resource: Resource
  feed: string
  mode: 'timeline' | 'periodic'
  table: string
  time: string
}

/** `sync_coverage`: one row per segment of the time-ordered resources. */
export function syncCoverage(): string {
  const parts = CATALOG.flatMap(resource =>
    feedsOf(resource).flatMap(({ id, feed }): CoverageSource[] => {
      if (feed.mode !== 'timeline' && feed.mode !== 'periodic') return []
      const { mode, table, time } = feed
      return [{ resource, feed: id, mode, table, time }]
    }),
  )
  return parts.map(coverageOf).map(asArm).join('\nUNION ALL\n')
}

function coverageOf(covered: CoverageSource): string {
  const { resource, feed, table } = covered
  const bodies = (state: string) =>
    resource.name === 'messages'
      ? within(covered, 'messages', `_deleted_at IS NULL AND text_state = '${state}'`)
      : 'NULL'
  return `SELECT ${asText(`'${resource.name}'`)} AS resource, g.from_at, g.to_at, g.listed_at,
  ${asInteger(within(covered, quote(table), '_deleted_at IS NULL'))} AS rows_live,
  ${asInteger(bodies('present'))} AS bodies_present, ${asInteger(bodies('pending'))} AS bodies_pending
FROM sync_segments g WHERE g.feed = '${feed}'`
}

/** Counts the rows within a segment. Rows without a time count in the oldest segment. */
function within({ feed, mode, time }: CoverageSource, table: string, where: string): string {
  const column = quote(time)
  const rows = (when: string) => `(SELECT count(*) FROM ${table} WHERE ${when} AND ${where})`
  const isOldest = {
    timeline: 'g.from_at IS NULL',
    periodic: `g.from_at = (SELECT min(from_at) FROM sync_segments WHERE feed = '${feed}')`,
  }[mode]
  const timed = rows(`${column} >= coalesce(g.from_at, '') AND ${column} < coalesce(g.to_at, '~')`)
  return `(${timed} + iif(${isOldest}, ${rows(`${column} IS NULL`)}, 0))`
}
