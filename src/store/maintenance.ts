import { statSync } from 'node:fs'
import { brokenReferences } from './database/references.ts'
import { ownObjects } from './migrate.ts'
import type { Sqlite } from './open.ts'
import { createRequests } from './requests.ts'
import type { Prepare } from './statements.ts'

/** What keeps the file fit for years. Each call is short but for `checkIntegrity`, which reads the whole file. */
export interface Maintenance {
  /**
   * Moves what is in the WAL into the database as far as readers let it, and shortens a large WAL once none needs
   * it. Waits for no reader. Not inside a transaction.
   */
  checkpoint(): Promise<Checkpoint>
  /** Lets SQLite learn how its indices are filled, where that changed. Not inside a transaction. */
  optimize(): void
  /** One lot of pruning, inside a transaction; true while there is more to do. The next call goes on from there. */
  prune(bounds: PruneBounds): boolean
  /** What is wrong with the file, one sentence each; nothing when it is whole. */
  checkIntegrity(): string[]
}

/** All in bytes. */
export interface Checkpoint {
  moved: number
  /** What a reader's snapshot keeps from being moved. */
  held: number
  /** Size of the WAL's file after it. */
  wal: number
}

/** Instants, as the warehouse writes them. */
export interface PruneBounds {
  /** Runs that ended before it go, and requests that were done before it. */
  runsBefore: string
  /** Runs that ended well and had nothing to tell go before it, but for the newest of each resource and lane. */
  quietBefore: string
  /** Rejects that were resolved before it go. */
  rejectsBefore: string
  /** How many rows are looked at in one lot. */
  limit: number
  /** Told, inside the transaction, when rejects were removed: they hold content. */
  onErased(): void
}

/** A WAL that grew beyond it behind a reader is shortened; below it, it is written over from its start. */
const LARGE_WAL_BYTES = 64 * 1024 * 1024

/** Rows of an index that are looked at to learn how it is filled. */
const ANALYSIS_LIMIT = 400

const FAULTS_SHOWN = 20

/** @param move has what is in the WAL moved, off the event loop */
export function createMaintenance(db: Sqlite, prepare: Prepare, move: () => Promise<unknown>): Maintenance {
  return {
    checkpoint: () => checkpoint(db, move),
    optimize() {
      db.pragma(`analysis_limit = ${ANALYSIS_LIMIT}`)
      db.pragma('optimize')
      forgetComputedColumns(db)
    },
    prune: createPruning(prepare),
    checkIntegrity: () => [...damages(db), ...orphans(db)],
  }
}

/**
 * SQLite 3.40, which Debian 12 has, drops rows from a join on an indexed virtual column when it filters the join by a
 * Bloom filter. It uses none for a table of whose indices it knows nothing.
 */
function forgetComputedColumns(db: Sqlite): void {
  if (db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'sqlite_stat1'").get() === undefined) return
  db.exec(`DELETE FROM sqlite_stat1 WHERE tbl IN (
    SELECT t.name FROM sqlite_master t, pragma_table_xinfo(t.name) c WHERE t.type = 'table' AND c.hidden = 2)`)
}

async function checkpoint(db: Sqlite, move: () => Promise<unknown>): Promise<Checkpoint> {
  const pageSize = Number(db.pragma('page_size', { simple: true }))
  const before = logOf(db)
  await move()
  const after = logOf(db)
  const held = after.log - after.checkpointed
  if (held === 0 && walBytes(db) > LARGE_WAL_BYTES) truncateLog(db)
  return {
    moved: (after.checkpointed - before.checkpointed) * pageSize,
    held: held * pageSize,
    wal: walBytes(db),
  }
}

/** Pages in the WAL, and how many of them are in the database as well; `busy` where a reader was in the way. */
interface WalState {
  busy: number
  log: number
  checkpointed: number
}

const NOTHING: WalState = { busy: 0, log: 0, checkpointed: 0 }

function logOf(db: Sqlite): WalState {
  const [state] = db.pragma('wal_checkpoint(NOOP)') as WalState[]
  return state ?? NOTHING
}

/**
 * Empties the WAL's file, where all of it is in the database and nobody reads it. Such a reader would be waited for on
 * the event loop; it is left for the next time instead.
 */
export function truncateLog(db: Sqlite): WalState {
  const patience = db.pragma('busy_timeout', { simple: true })
  db.pragma('busy_timeout = 0')
  try {
    const [state] = db.pragma('wal_checkpoint(TRUNCATE)') as WalState[]
    return state ?? NOTHING
  } finally {
    db.pragma(`busy_timeout = ${patience}`)
  }
}

function walBytes(db: Sqlite): number {
  return statSync(`${db.name}-wal`, { throwIfNoEntry: false })?.size ?? 0
}

type PruneLot = (bounds: PruneBounds) => boolean

/** One table after the other, each to its end. */
function createPruning(prepare: Prepare): PruneLot {
  const requests = createRequests(prepare)
  const tables: readonly PruneLot[] = [createRunPruning(prepare), createRejectPruning(prepare)]
  let current = 0
  return bounds => {
    if (current === 0) requests.forget(bounds.runsBefore)
    if (!tables[current]?.(bounds)) current += 1
    if (current < tables.length) return true
    current = 0
    return false
  }
}

interface Run {
  id: number
  feed: string
  endedAt: string | null
  quiet: number
}

/**
 * Walks through the runs by their number, so that a lot costs the same however many there are, and no index is
 * needed for it.
 */
function createRunPruning(prepare: Prepare): PruneLot {
  const next = prepare(
    `SELECT id, resource || ' ' || lane AS feed, ended_at AS endedAt,
       outcome = 'complete' AND rows_changed = 0 AND rows_deleted = 0 AND error IS NULL AS quiet
     FROM sync_runs WHERE id > ? ORDER BY id LIMIT ?`,
  )
  const remove = prepare('DELETE FROM sync_runs WHERE id = ?')
  let reached = 0
  /** Quiet runs that go as soon as a later one of the same resource and lane is met, by these. */
  const newest = new Map<string, number>()
  return ({ runsBefore, quietBefore, limit }) => {
    const runs = next.all(reached, limit) as Run[]
    for (const { id, feed, endedAt, quiet } of runs) {
      const earlier = newest.get(feed)
      if (earlier !== undefined) remove.run(earlier)
      newest.delete(feed)
      if (endedAt !== null && endedAt < runsBefore) remove.run(id)
      else if (endedAt !== null && endedAt < quietBefore && quiet) newest.set(feed, id)
    }
    const more = runs.length === limit
    reached = more ? (runs.at(-1)?.id ?? 0) : 0
    if (!more) newest.clear()
    return more
  }
}

/** As the runs: a reject may be long, so that looking at all of them at once could take long. */
function createRejectPruning(prepare: Prepare): PruneLot {
  const next = prepare('SELECT id, resolved_at AS at FROM sync_rejects WHERE id > ? ORDER BY id LIMIT ?')
  const remove = prepare('DELETE FROM sync_rejects WHERE id = ?')
  let reached = 0
  return ({ rejectsBefore, limit, onErased }) => {
    const rejects = next.all(reached, limit) as { id: number; at: string | null }[]
    const old = rejects.filter(({ at }) => at !== null && at < rejectsBefore)
    for (const { id } of old) remove.run(id)
    if (old.length > 0) onErased()
    const more = rejects.length === limit
    reached = more ? (rejects.at(-1)?.id ?? 0) : 0
    return more
  }
}

function damages(db: Sqlite): string[] {
  const said = db.prepare(`PRAGMA quick_check(${FAULTS_SHOWN})`).pluck().all() as string[]
  return said.filter(line => line !== 'ok').map(line => `The file is damaged: ${line}.`)
}

function orphans(db: Sqlite): string[] {
  return brokenReferences(db, ownObjects())
    .filter(({ isOwn }) => isOwn)
    .map(({ table, rows }) => `${rows} rows of ${table} refer to rows that are not there.`)
}
