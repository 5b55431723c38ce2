import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { CATALOG } from '../catalog.ts'
import { EXIT_STATUS, StopError } from '../errors.ts'
import type { ResourceName } from '../resource.ts'
import { type LagSummary, readArrivals } from './arrivals.ts'
import type { Writer } from './lock.ts'
import { databaseError, openDatabase, type Sqlite } from './open.ts'
import { type Request, readRequests } from './requests.ts'
import { quote } from './sql.ts'
import { META } from './state.ts'

/** What a warehouse says of itself, read without changing anything. */
export interface Status {
  database: { path: string; bytes: number; walBytes: number }
  resources: readonly StatusRow[]
  failing: ReadonlyMap<ResourceName, Failing>
  /** How late rows appeared, of the resources for which that was ever seen. */
  arrivals: ReadonlyMap<ResourceName, LagSummary>
  /** What other processes have asked for and nobody has done yet. */
  requests: readonly Request[]
  /** Runs that no process has ended: those under way, or of one that died. */
  openRuns: number
  /** Values of the database as a whole, as they were stored. */
  meta: ReadonlyMap<string, string>
}

export interface Failing {
  since: string
  /** Runs that have failed since the last one without a fault. */
  inARow: number
}

/** A row of the view `sync_status` (WAREHOUSE: Sync state), and what is counted with it. */
export interface StatusRow {
  resource: ResourceName
  state: 'ok' | 'backfilling' | 'waiting' | 'unavailable' | 'failing'
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
  /** JSON object: rows by what came of reading a part of them; null where the resource is no such part. */
  by_state: string | null
}

const COUNTED_BY_STATE = CATALOG.flatMap(({ name, status: { table, byState } }) =>
  byState === undefined
    ? []
    : `WHEN '${name}' THEN (SELECT json_group_object(state, number) FROM (
        SELECT ${byState.state} AS state, count(*) AS number FROM ${quote(table)}
        WHERE _deleted_at IS NULL GROUP BY 1 ORDER BY 1))`,
)

/** In the order of the catalogue. */
export const STATUS_ROWS = `SELECT *, CASE resource ${COUNTED_BY_STATE.join(' ')} END AS by_state FROM sync_status`

export function readStatus(db: Sqlite): StatusRow[] {
  return db.prepare(STATUS_ROWS).all() as StatusRow[]
}

/**
 * @param rows those of `sync_status`, where they are known already
 * @throws StopError (73) when there is no warehouse at this path, or it cannot be read
 */
export function readWarehouse(path: string, rows?: readonly StatusRow[]): Status {
  const file = resolve(path)
  requireWarehouse(file)
  try {
    const db = openDatabase({ path: file, readonly: true })
    try {
      return readOpenWarehouse(db, file, rows)
    } finally {
      db.close()
    }
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
  try {
    const db = openDatabase({ path: file, readonly: true })
    try {
      if (!isWarehouse(db)) throw nothingThere(file)
      const sql = 'SELECT 1 FROM sync_resources WHERE resource = ? AND held_since IS NOT NULL'
      return db.prepare(sql).get(resource) !== undefined
    } finally {
      db.close()
    }
  } catch (error) {
    throw databaseError(error, file)
  }
}

/** The same of a database that is open, be it for writing; all of it of one moment. */
export function readOpenWarehouse(db: Sqlite, file: string, rows?: readonly StatusRow[]): Status {
  return db.transaction(() => readAll(db, file, rows))()
}

export function isWarehouse(db: Sqlite): boolean {
  return db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'sync_status'").get() !== undefined
}

const FAILING = `SELECT resource, failing_since AS since,
    (SELECT count(*) FROM sync_runs u WHERE u.resource = r.resource AND u.outcome = 'failed'
       AND u.started_at >= coalesce(r.last_success_at, '')) AS inARow
  FROM sync_resources r WHERE failing_since IS NOT NULL`

function readFailing(db: Sqlite): ReadonlyMap<ResourceName, Failing> {
  const rows = db.prepare(FAILING).all() as (Failing & { resource: ResourceName })[]
  return new Map(rows.map(({ resource, ...failing }) => [resource, failing]))
}

function readAll(db: Sqlite, file: string, rows: readonly StatusRow[] | undefined): Status {
  if (!isWarehouse(db)) throw nothingThere(file)
  const noted = db.prepare('SELECT key, value FROM sync_meta').raw().all() as [string, string][]
  const meta = new Map(noted)
  if (isCopy(db, meta.get(META.writer))) for (const key of OF_PROCESSES) meta.delete(key)
  return {
    database: { path: file, ...databaseSizes(file) },
    resources: rows ?? readStatus(db),
    failing: readFailing(db),
    arrivals: readArrivals(db),
    requests: readRequests(db),
    openRuns: db.prepare('SELECT count(*) FROM sync_runs WHERE ended_at IS NULL').pluck().get() as number,
    meta,
  }
}

/** Notes of processes that write the warehouse: they say nothing about a copy of it. */
const OF_PROCESSES = [META.writer, META.daemonState, META.unreachable]

/**
 * A snapshot has no WAL; a warehouse has one from its first opening for writing on. A copy that was restored has none
 * yet, and its notes are true: the restore has made them.
 */
function isCopy(db: Sqlite, writer: string | undefined): boolean {
  const isWithoutWal = db.pragma('journal_mode', { simple: true }) === 'delete'
  return isWithoutWal && (writer === undefined || (JSON.parse(writer) as Writer).command !== 'restore')
}

/** Asked of the file system; the database need not be open. */
export function databaseSizes(file: string): { bytes: number; walBytes: number } {
  return { bytes: sizeOf(file), walBytes: sizeOf(`${file}-wal`) }
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0
}

/** @throws StopError (73) when there is no file, or its folder may not be entered */
export function requireWarehouse(file: string): void {
  try {
    statSync(file)
  } catch (error) {
    const isMissing =
      error instanceof Error && 'code' in error && /^(ENOENT|ENOTDIR)$/.test(String(error.code))
    throw isMissing ? nothingThere(file) : databaseError(error, file)
  }
}

export function nothingThere(file: string): StopError {
  return new StopError(`There is no warehouse at ${file} yet`, {
    code: 'no-database',
    hint: 'parley backfill makes it; if it was here before, put it back instead; --database names another file.',
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}
