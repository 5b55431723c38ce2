import { resolve } from 'node:path'
import { EXIT_STATUS, errorCode, StopError } from '../../base/errors.ts'
import { CATALOG } from '../../catalog/catalog.ts'
import { RESOURCE_NAMES, type ResourceName } from '../../declare/resource-names.ts'
import type { ResourceStateName } from '../../dictionary/sync-tables.ts'
import { hasView } from '../database/existing-tables.ts'
import { quote } from '../database/sql.ts'
import { databaseError } from '../database/sqlite-errors.ts'
import type { Sqlite } from '../database/sqlite-types.ts'
import { onlyRow } from '../database/statements.ts'
import { databaseSizes } from '../disk/disk-space.ts'
import { otherHolders } from '../disk/lock-holders.ts'
import { type Request, readRequests } from '../file/handed-over.ts'
import { isLocked } from '../file/lock.ts'
import { databaseStats, readDatabase } from '../file/open.ts'
import { type LagReport, readArrivals } from '../sync/arrivals.ts'
import { type Gate, readGates } from '../sync/gates.ts'
import { META, readMeta, readNote } from '../sync/meta.ts'
import { type PublicationHistory, type PublishingNote, readPublications } from '../sync/publications.ts'
import type { Writer } from '../sync/writer-note.ts'

/** The status of a warehouse, read without writing. */
export interface Status<Row = StatusRow> {
  database: { path: string; bytes: number; walBytes: number }
  resources: readonly Row[]
  troubles: ReadonlyMap<ResourceName, ResourceTroubles>
  /** For the resources of which `sync.since` left out the beginning. */
  readSince: ReadonlyMap<ResourceName, ReadSince>
  /** How late rows appeared, for the resources that ever had late rows. */
  arrivals: ReadonlyMap<ResourceName, LagReport>
  /** Pending requests of other processes. */
  requests: readonly Request[]
  /** The daemon's publications; undefined when it does not publish. */
  publishing: (PublicationHistory & { note: PublishingNote }) | undefined
  /** Runs without an end: running now, or of a process that died. */
  openRuns: number
  /** The closed gates; empty for a copy of a warehouse. */
  gates: readonly Gate[]
  /** Keys and values of `sync_meta`, as stored. For a copy of a warehouse, PROCESS_KEYS are left out. */
  meta: ReadonlyMap<string, string>
}

/** What the last runs of a resource could not do. */
export interface ResourceTroubles {
  /** Null unless this resource itself fails. When the API is unreachable as a whole, `api` has the instant. */
  failing_since: string | null
  /** Failed runs since the last successful one; null unless this resource itself fails. */
  failed_in_a_row: number | null
  /** Since when the mass-deletion guard holds deletions back; null when it holds none. */
  deletions_held_since: string | null
  /** Since when the resource has items that could not be stored; null when there are none. */
  rejected_since: string | null
}

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

/** A resource of which all items before an instant were left out. */
export interface ReadSince {
  since: string
  /** Up to when its items from `since` on are complete; null while some of them are unread. */
  complete_as_of: string | null
}

/**
 * The resources whose first read is over and left out all items before an instant. Spans that became unread later lie
 * after it, so `complete_as_of` is NULL until they are read.
 */
const READ_SINCE = `SELECT resource, since, CASE WHEN count(*) = count(listed_at) THEN min(listed_at) END AS complete_as_of
  FROM (
    SELECT substr(feed, 1, instr(feed, '.') - 1) AS resource, to_at, listed_at,
      min(coalesce(from_at, '')) FILTER (WHERE listed_at IS NOT NULL) OVER (PARTITION BY feed) AS since
    FROM sync_segments WHERE scope = ''
  ) JOIN sync_resources USING (resource)
  WHERE first_complete_at IS NOT NULL AND since <> '' AND (to_at IS NULL OR to_at > since)
  GROUP BY resource, since`

function readReadSince(db: Sqlite): ReadonlyMap<ResourceName, ReadSince> {
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
 * Reads the status in one read transaction.
 * @param read the rows of `sync_status`
 * @param db an open connection. Default: a read-only connection that is closed afterwards
 * @throws StopError (73) when there is no warehouse at this path, or it cannot be read
 */
export function readWarehouse<Row>(
  path: string,
  read: (db: Sqlite) => readonly Row[],
  db?: Sqlite,
): Status<Row> {
  const file = resolve(path)
  const readFrom = (open: Sqlite) => inOneRead(open, () => readAll(open, file, read))
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
 * @throws StopError (73) when the database cannot be read
 */
export function isHeldBack(path: string, resource: ResourceName): boolean {
  const file = resolve(path)
  return readDatabase({ path: file }, db => {
    if (!isWarehouse(db)) throw noWarehouseError(file)
    const sql = 'SELECT 1 FROM sync_resources WHERE resource = ? AND held_since IS NOT NULL'
    return db.prepare(sql).get(resource) !== undefined
  })
}

/** Runs several reads on one state of the database. */
export function inOneRead<T>(db: Sqlite, work: () => T): T {
  return db.transaction(work)()
}

export function isWarehouse(db: Sqlite): boolean {
  return hasView(db, 'sync_status')
}

const OPEN_RUNS = 'SELECT count(*) FROM sync_runs WHERE ended_at IS NULL'

function readTroubles(db: Sqlite): ReadonlyMap<ResourceName, ResourceTroubles> {
  const rows = db
    .prepare<unknown[], ResourceTroubles & { resource: ResourceName }>(
      `SELECT resource, held_since AS deletions_held_since, rejected_since, failing_since,
         iif(failing_since IS NULL, NULL, (SELECT count(*) FROM sync_runs u
           WHERE u.resource = r.resource AND u.outcome = 'failed'
             AND u.started_at >= coalesce(r.last_success_at, ''))) AS failed_in_a_row
       FROM sync_resources r LEFT JOIN (
         SELECT resource, min(first_seen_at) AS rejected_since FROM sync_rejects
         WHERE resolved_at IS NULL GROUP BY resource) USING (resource)`,
    )
    .all()
  return new Map(rows.map(({ resource, ...troubles }) => [resource, troubles]))
}

function readAll<Row>(db: Sqlite, file: string, read: (db: Sqlite) => readonly Row[]): Status<Row> {
  if (!isWarehouse(db)) throw noWarehouseError(file)
  const values = db.prepare<unknown[], [string, string]>('SELECT key, value FROM sync_meta').raw().all()
  const meta = new Map(values)
  const isOfCopy = isCopy(db, meta)
  if (isOfCopy) for (const key of KEYS_OF_RUNNING_PROCESSES) meta.delete(key)
  return {
    database: { path: file, ...databaseSizes(file) },
    resources: read(db),
    troubles: readTroubles(db),
    readSince: readReadSince(db),
    arrivals: readArrivals(db),
    requests: readRequests(db),
    publishing: readPublishing(db, meta),
    gates: isOfCopy ? [] : readGates(db),
    openRuns: onlyRow(db.prepare<unknown[], number>(OPEN_RUNS).pluck()),
    meta,
  }
}

function readPublishing(db: Sqlite, meta: ReadonlyMap<string, string>): Status['publishing'] {
  const note = readNote<PublishingNote>(key => meta.get(key), META.publishing)
  return note && { note, ...readPublications(db, note.target) }
}

/** Keys about the processes that update a warehouse. No process updates a copy, so its values are meaningless. */
const KEYS_OF_RUNNING_PROCESSES = [META.writer, META.daemonState, META.publishing]

/**
 * A snapshot is not in WAL mode; a warehouse is, from its first opening for writing. A database that was just restored
 * is not in WAL mode yet either, but the restore has updated its keys.
 */
function isCopy(db: Sqlite, meta: ReadonlyMap<string, string>): boolean {
  const isWithoutWal = db.pragma('journal_mode', { simple: true }) === 'delete'
  return isWithoutWal && readNote<Writer>(key => meta.get(key), META.writer)?.command !== 'restore'
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

/** The process that writes a warehouse, or the last one that did. */
export interface WriterState extends Writer {
  /** True while the process holds the lock. */
  running: boolean
  /** True when the process is gone and left open runs: it was killed, or the machine went down. */
  died: boolean
}

/**
 * The writer recorded in `sync_meta`, checked against the lock. When the lock cannot be checked, the writer counts as
 * running while a process with its PID exists.
 */
export function writerOf({
  database,
  meta,
  openRuns,
}: Pick<Status, 'database' | 'meta' | 'openRuns'>): WriterState | undefined {
  const writer = readNote<Writer>(key => meta.get(key), META.writer)
  if (writer === undefined) return undefined
  const running = isLocked(database.path) ?? isAlive(writer.pid)
  return { ...writer, running, died: !running && openRuns > 0 }
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return errorCode(error) === 'EPERM'
  }
}
