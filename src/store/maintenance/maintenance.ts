import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { feedNamed, ITEM_FEEDS } from '../../catalog/feeds.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import { runProgram } from '../database/child-program.ts'
import type { Prepare, Sqlite, Statement } from '../database/sqlite-types.ts'
import { createStoredRows } from '../rows/row-state.ts'

/** What may be deleted. The instants have the form in which the warehouse stores them. */
export interface PruneBounds {
  /**
   * Runs and attempts to publish that ended before this instant are deleted. So are requests of other processes that
   * were done before it.
   */
  runsBefore: string
  /** As `runsBefore`, but only for successful runs without changes. The newest run of a resource and lane stays. */
  quietBefore: string
  minutesBefore: string
  /**
   * Notes of older answers that were made before this instant are deleted: no answer has contained their rows since, or
   * it would have removed the note.
   */
  olderAnswersBefore: string
  /** A day, such as `2026-03-04`. */
  daysBefore: string
  /** Rejects that were resolved before this instant are deleted. */
  rejectsBefore: string
  /**
   * The resources that are read. Single reads of another resource wait until it is chosen, unless no row names their
   * key.
   */
  chosen: readonly ResourceName[]
  /** Reads whose key no row names are deleted if they were due and last named before this instant, by the due clock. */
  unnamedBefore: string
  /** Rows examined in one batch. */
  limit: number
  /** Records a purge. Called in the transaction that deletes rejects, since rejects hold content of the workspace. */
  onPurged(): void
}

/** Rows that SQLite samples of each index for its statistics. */
const ANALYSIS_LIMIT = 400

export type Maintenance = ReturnType<typeof createMaintenance>

/** Upkeep of the database file, in short calls. */
export function createMaintenance(db: Sqlite, prepare: Prepare) {
  return {
    /** Updates the statistics of SQLite's query planner where they are stale. Not allowed inside a transaction. */
    optimize() {
      db.pragma(`analysis_limit = ${ANALYSIS_LIMIT}`)
      db.pragma('optimize')
    },
    /** Examines one batch of rows and deletes the old ones. Call it in a transaction until it returns false. */
    prune: createPruner(prepare),
  }
}

type PruneBatch = (bounds: PruneBounds) => boolean

/** The tables that are pruned at once, since they have few rows. */
const REMOVE_OLD = [
  'DELETE FROM sync_requests WHERE done_at < @runsBefore',
  'DELETE FROM sync_minutes WHERE at < @minutesBefore',
  'DELETE FROM sync_older_answers WHERE since < @olderAnswersBefore',
  'DELETE FROM sync_days WHERE day < @daysBefore',
  // The newest complete publication to each target stays.
  `DELETE FROM sync_publications WHERE finished_at < @runsBefore AND id NOT IN (
     SELECT max(id) FROM sync_publications WHERE publication IS NOT NULL GROUP BY target)`,
]

/** Prunes the other tables one after the other, each to its end. */
function createPruner(prepare: Prepare): PruneBatch {
  const tables = [createRunPruner(prepare), createRejectPruner(prepare), createUnnamedPruner(prepare)]
  let current = 0
  return bounds => {
    if (current === 0) for (const sql of REMOVE_OLD) prepare(sql).run(bounds)
    if (!tables[current]?.(bounds)) current += 1
    if (current < tables.length) return true
    current = 0
    return false
  }
}

/** Reads rows in the order of their ids. A batch then costs the same in a table of any size, and needs no index. */
function createBatches<Row extends { id: number }>(next: Statement<Row>) {
  let lastId = 0
  return (limit: number): { rows: Row[]; more: boolean } => {
    const rows = next.all(lastId, limit)
    const more = rows.length === limit
    lastId = more ? (rows.at(-1)?.id ?? 0) : 0
    return { rows, more }
  }
}

interface RunRow {
  id: number
  feed: string
  endedAt: string | null
  quiet: number
}

function createRunPruner(prepare: Prepare): PruneBatch {
  const next = createBatches(
    prepare<RunRow>(
      `SELECT id, resource || ' ' || lane AS feed, ended_at AS endedAt,
         outcome = 'complete' AND rows_changed = 0 AND rows_deleted = 0 AND error IS NULL AS quiet
       FROM sync_runs WHERE id > ? ORDER BY id LIMIT +?`,
    ),
  )
  const remove = prepare('DELETE FROM sync_runs WHERE id = ?')
  /**
   * By resource and lane: the id of the last run examined, if that run is quiet and old. This run is deleted when a
   * later one of the same resource and lane is examined.
   */
  const latestQuiet = new Map<string, number>()
  return ({ runsBefore, quietBefore, limit }) => {
    const { rows: runs, more } = next(limit)
    for (const { id, feed, endedAt, quiet } of runs) {
      const earlier = latestQuiet.get(feed)
      if (earlier !== undefined) remove.run(earlier)
      latestQuiet.delete(feed)
      if (endedAt !== null && endedAt < runsBefore) remove.run(id)
      else if (endedAt !== null && endedAt < quietBefore && quiet) latestQuiet.set(feed, id)
    }
    if (!more) latestQuiet.clear()
    return more
  }
}

/** Examines the rejects in batches too: a rejected item may be large, so to read them all at once could take long. */
function createRejectPruner(prepare: Prepare): PruneBatch {
  const next = createBatches(
    prepare<{ id: number; at: string | null }>(
      'SELECT id, resolved_at AS at FROM sync_rejects WHERE id > ? ORDER BY id LIMIT +?',
    ),
  )
  const remove = prepare('DELETE FROM sync_rejects WHERE id = ?')
  return ({ rejectsBefore, limit, onPurged }) => {
    const { rows: rejects, more } = next(limit)
    const old = rejects.filter(({ at }) => at !== null && at < rejectsBefore)
    for (const { id } of old) remove.run(id)
    if (old.length > 0) onPurged()
    return more
  }
}

/** By feed of single reads: the table of the row that is read, or of the row of which a part is read (`partOf`). */
const TABLE_READ = new Map(
  ITEM_FEEDS.flatMap(({ id, feed }) => {
    const whole = feed.partOf === undefined ? feed : feedNamed(feed.partOf).feed
    const isOfRow = 'stores' in whole && whole.stores === 'row'
    return isOfRow ? [[id, whole.table] as const] : []
  }),
)

/**
 * Deletes reads of resources that are not chosen. A read of a chosen resource ends with its answer; other reads are
 * never sent.
 */
function createUnnamedPruner(prepare: Prepare): PruneBatch {
  const stored = createStoredRows(prepare)
  const first = { feed: '', key: '' }
  let last = first
  const next = prepare<{ feed: string; key: string; isOld: number }>(
    `SELECT feed, key, due_at < @before AND coalesce(named_at, '') < @before AS isOld FROM sync_tasks
     WHERE (feed, scope, key) > (@feed, '', @key) AND feed IN (SELECT value FROM json_each(@feeds)) AND scope = ''
     ORDER BY feed, scope, key LIMIT +@limit`,
  )
  const remove = prepare("DELETE FROM sync_tasks WHERE feed = ? AND scope = '' AND key = ?")
  return ({ chosen, unnamedBefore, limit }) => {
    const unread = ITEM_FEEDS.filter(({ id, resource }) => TABLE_READ.has(id) && !chosen.includes(resource))
    const feeds = JSON.stringify(unread.map(({ id }) => id))
    const tasks = next.all({ ...last, feeds, before: unnamedBefore, limit })
    for (const { feed, key, isOld } of tasks) {
      const row = { table: TABLE_READ.get(feed) ?? '', scope: '', key }
      if (isOld && stored.state(row) === 'unknown' && !stored.isNamed(row)) remove.run(feed, key)
    }
    const more = tasks.length === limit
    last = more ? (tasks.at(-1) ?? first) : first
    return more
  }
}

/** Input of the child process. */
export interface RebuildInput {
  database: string
}

/** The compiled program. It is missing when parley runs from its sources, as in tests. */
const PROGRAM = new URL('./rebuild-worker.js', import.meta.url)

/**
 * Rewrites the whole database (VACUUM) in a child process; from sources, on this thread. The temporary file is in the
 * folder of the database, so the database may be larger than the memory or /tmp. That folder needs free space of about
 * twice the size of the database. No other process may write meanwhile.
 * @returns false when the rebuild failed or the signal aborted it; the database is then unchanged
 */
export async function rebuildFile(db: Sqlite, signal: AbortSignal, program = PROGRAM): Promise<boolean> {
  const input: RebuildInput = { database: db.name }
  const env = { SQLITE_TMPDIR: dirname(db.name) }
  try {
    if (existsSync(program))
      return await runProgram<boolean>({ program, input, env, signal, noAnswerError: how => new Error(how) })
    db.exec('VACUUM')
    return true
  } catch {
    return false
  }
}
