import { resolve } from 'node:path'
import { EXIT_STATUS, StopError } from '../../base/errors.ts'
import { CATALOG } from '../../catalog/catalog.ts'
import { feedsOf } from '../../catalog/feeds.ts'
import { RESOURCE_NAMES, type ResourceName } from '../../declare/resource-names.ts'
import type { ResourceStateName } from '../../dictionary/sync-tables.ts'
import { hasView } from '../database/existing-tables.ts'
import { quote } from '../database/sql.ts'
import { databaseError } from '../database/sqlite-errors.ts'
import type { Sqlite } from '../database/sqlite-types.ts'
import { otherHolders } from '../disk/lock-holders.ts'
import { databaseStats, readDatabase } from '../file/open.ts'
import { META, readMeta, readNote } from '../sync/meta.ts'

/** A row of the view `sync_status`, with counts by state. */
export interface StatusRow {
  resource: ResourceName
  state: ResourceStateName
  reason: string | null
  rows_live: number
  rows_deleted: number
  newest_at: string | null
  fresh_as_of: string | null
  complete_as_of: string | null
  backfill_done: number
  backfill_total: number | null
  pending_tasks: number
  rejected: number
  last_success_at: string | null
  next_run_at: string | null
  /** JSON object: number of rows by the state of their text or transcript; null for other resources. */
  by_state: string | null
}

/** The columns of `StatusRow` for which rows are counted. That takes seconds in a large warehouse. */
export type CountedColumn =
  | 'rows_live'
  | 'rows_deleted'
  | 'backfill_done'
  | 'backfill_total'
  | 'pending_tasks'
  | 'rejected'
  | 'by_state'

/** A row of `sync_status` without its counts. */
export type UncountedRow = Omit<StatusRow, CountedColumn>

/** Reads the columns without counts. SQLite counts nothing for columns that are not selected. */
export function readUncounted(db: Sqlite): UncountedRow[] {
  return db
    .prepare<unknown[], UncountedRow>(
      'SELECT resource, state, reason, newest_at, fresh_as_of, complete_as_of, last_success_at, next_run_at FROM sync_status',
    )
    .all()
}

const COUNTED_BY_STATE = CATALOG.flatMap(({ name, status: { table, byState } }) =>
  byState === undefined
    ? []
    : `WHEN '${name}' THEN (SELECT json_group_object(state, number) FROM (
        SELECT ${byState.state} AS state, count(*) AS number FROM ${quote(table)}
        WHERE _deleted_at IS NULL GROUP BY 1 ORDER BY 1))`,
)

/** The rows come in the order of the catalogue. */
export const STATUS_ROWS = `SELECT *, CASE resource ${COUNTED_BY_STATE.join(' ')} END AS by_state FROM sync_status`

export function readStatus(db: Sqlite): StatusRow[] {
  return db.prepare<unknown[], StatusRow>(STATUS_ROWS).all()
}

export interface StatusInstants {
  /** Everything that the API published before this instant is in the warehouse; null while history is loading. */
  complete_as_of: string | null
  fresh_as_of: string | null
}

/** Up to when the warehouse as a whole is fresh and complete. Pure. */
export function statusInstants(
  resources: readonly Pick<StatusRow, 'state' | 'complete_as_of' | 'fresh_as_of'>[],
): StatusInstants {
  const offered = resources.filter(({ state }) => state !== 'unavailable')
  const complete = offered.map(({ complete_as_of: at }) => at)
  const fresh = offered.flatMap(({ fresh_as_of: at }) => at ?? [])
  return {
    complete_as_of: complete.some(at => at === null) ? null : (complete.toSorted()[0] ?? null),
    fresh_as_of: fresh.toSorted()[0] ?? null,
  }
}

/** Up to when some resources are fresh and complete, and what `sync.since` leaves out of that. */
export interface ReadState extends StatusInstants {
  /** The resources that are not completely read. */
  unread: readonly ResourceName[]
  /** The instant from which on items are read where `sync.since` leaves out earlier ones, else null. */
  since: string | null
}

export interface Completeness extends ReadState {
  /** The resources that `sync.resources`, `--only` or `--skip` chose. */
  chosen: readonly ResourceName[]
}

/** A resource of which the items before an instant were never read, or are not read again because of `sync.since`. */
export interface ReadSince {
  since: string
  /** Up to when its items from `since` on are complete; null while some of them are unread. */
  complete_as_of: string | null
}

const TIMELINE_FEEDS = CATALOG.flatMap(feedsOf).flatMap(({ id, feed }) =>
  feed.mode === 'timeline' ? [`'${id}'`] : [],
)

/**
 * The resources whose first read is over and left out all items before an instant, and timelines of which `sync.since`
 * leaves them out now. Spans that became unread later lie after it, so `complete_as_of` is NULL until they are read.
 */
const READ_SINCE = `SELECT resource, since, CASE WHEN count(*) = count(listed_at) THEN min(listed_at) END AS complete_as_of
  FROM (
    SELECT substr(feed, 1, instr(feed, '.') - 1) AS resource, to_at, listed_at,
      max(
        min(coalesce(from_at, '')) FILTER (WHERE listed_at IS NOT NULL) OVER (PARTITION BY feed),
        iif(feed IN (${TIMELINE_FEEDS.join(', ')}), coalesce((SELECT value FROM sync_meta WHERE key = '${META.since}'), ''), '')
      ) AS since
    FROM sync_segments WHERE scope = ''
  ) JOIN sync_resources USING (resource)
  WHERE first_complete_at IS NOT NULL AND since <> '' AND (to_at IS NULL OR to_at > since)
  GROUP BY resource, since`

export function readReadSince(db: Sqlite): ReadonlyMap<ResourceName, ReadSince> {
  const rows = db.prepare<unknown[], ReadSince & { resource: ResourceName }>(READ_SINCE).all()
  return new Map(rows.map(({ resource, ...read }) => [resource, read]))
}

export function readCompleteness(db: Sqlite): Completeness {
  const chosen = readNote<ResourceName[]>(key => readMeta(db, key), META.chosenResources) ?? RESOURCE_NAMES
  const readSince = readReadSince(db)
  const rows = readUncounted(db)
    .filter(({ resource }) => chosen.includes(resource))
    .map(row => ({ ...row, read_since: readSince.get(row.resource) ?? null }))
  return { ...readStateOf(rows), chosen }
}

/** Pure. */
export function readStateOf(
  resources: readonly (Pick<UncountedRow, 'resource' | 'state' | keyof StatusInstants> & {
    read_since: ReadSince | null
  })[],
): ReadState {
  const offered = resources
    .filter(({ state }) => state !== 'unavailable')
    .map(row => ({ row, read: row.complete_as_of === null ? row.read_since : null }))
  const rows = offered.map(({ row, read }) => (read ? { ...row, complete_as_of: read.complete_as_of } : row))
  const since =
    offered
      .flatMap(({ read }) => read?.since ?? [])
      .toSorted()
      .at(-1) ?? null
  const unread = rows.flatMap(({ resource, complete_as_of: at }) => (at === null ? resource : []))
  return { ...statusInstants(rows), unread, since }
}

/**
 * Reads a warehouse as of one instant.
 * @param db an open connection. Default: a read-only connection that is closed afterwards
 * @throws StopError (73) when there is no warehouse at this path, or it cannot be read
 */
export function readWarehouse<T>(path: string, read: (db: Sqlite) => T, db?: Sqlite): T {
  const file = resolve(path)
  const readFrom = (open: Sqlite) =>
    inOneRead(open, () => {
      if (!isWarehouse(open)) throw noWarehouseError(file)
      return read(open)
    })
  if (db === undefined) {
    requireWarehouse(file)
    return readDatabase({ path: file }, readFrom)
  }
  try {
    return readFrom(db)
  } catch (error) {
    throw databaseError(error, file)
  }
}

/**
 * Whether the mass-deletion guard holds back deletions of a resource.
 * @throws StopError as `readWarehouse`
 */
export function isHeldBack(path: string, resource: ResourceName): boolean {
  const sql = 'SELECT 1 FROM sync_resources WHERE resource = ? AND held_since IS NOT NULL'
  return readWarehouse(path, db => db.prepare(sql).get(resource) !== undefined)
}

/** Runs several reads on one state of the database. */
export function inOneRead<T>(db: Sqlite, work: () => T): T {
  return db.transaction(work)()
}

export function isWarehouse(db: Sqlite): boolean {
  return hasView(db, 'sync_status')
}

/** @throws StopError (73) when there is no file, or the path cannot be followed */
export function requireWarehouse(file: string): void {
  if (databaseStats(file) === undefined) throw lostFileError(file) ?? noWarehouseError(file)
}

/** The error for a missing file whose lock another process holds: the process waits for the file, or creates it soon. */
export function lostFileError(file: string): StopError | undefined {
  const [holder] = otherHolders(file, 'writer')
  if (holder === undefined) return undefined
  return new StopError(
    `${file} is missing, and process ${holder.pid} holds its lock: it was moved or deleted while that process used it, or is just being created`,
    {
      code: 'no-database',
      hint: `Put the file back. To begin with an empty one, end process ${holder.pid} first.`,
      exitStatus: EXIT_STATUS.databaseUnavailable,
    },
  )
}

export function noWarehouseError(file: string): StopError {
  return new StopError(`There is no warehouse at ${file} yet`, {
    code: 'no-database',
    hint: 'Run parley backfill to create it, or set database.path (--database) to an existing one.',
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}
