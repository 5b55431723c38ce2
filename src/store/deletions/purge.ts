import type { RowOf } from '../../catalog/bookkeeping/table.ts'
import type { PURGE_TABLE } from '../../catalog/bookkeeping/tables.ts'
import { CATALOG, descendants, TABLES, tableNamed } from '../../catalog/catalog.ts'
import type { Feed, Resource, Table } from '../../catalog/resource.ts'
import type { Prepare, Sqlite } from '../database/connection.ts'
import { quote } from '../database/sql.ts'
import { hasTable } from '../database/tables.ts'
import { databaseBytes } from '../file/size.ts'
import type { FileWork } from '../maintenance/checkpoint-order.ts'
import { truncateWal } from '../maintenance/maintenance.ts'
import { META } from '../sync/meta.ts'
import type { State } from '../sync/resource-state.ts'
import { isUnpublished } from './purge-queue.ts'

/** Removes the content of rows that were deleted or withheld a while ago. Their keys, times, states and numbers stay. */
export interface Purger {
  /**
   * Purges a batch of the rows that were deleted or withheld before an instant, oldest first. Call it inside a
   * transaction; `more` says whether another batch waits. After `limit` changed rows of any table, the batch ends: a
   * meeting may have thousands of rows below it. A purged row is not purged again unless it comes back and is deleted
   * again.
   */
  purge(options: { before: string; limit: number; now: string }): { purged: number; more: boolean }
  /**
   * Restarts the wait of rows that were queued under a wrong clock. Call it inside a transaction, under a right clock.
   * `all` restarts every wait, when no earlier clock is known to have been right. Returns the number of rows.
   */
  restartWaits(now: string, options: { all: boolean }): number
  /** Has the files cleaned after content was removed in another way. Call it in the transaction that removes it. */
  notePurged(now: string): void
  /** Where SQLite's files may still hold purged content. Noted in the database until they are cleaned. */
  remains(): Remains
  /**
   * Removes purged content from SQLite's files. Call it outside a transaction, after the last batch. A rebuild writes
   * the whole file again, while nothing else writes it: SQLite leaves copies behind when it moves rows between pages,
   * and purging does not reach these. `in-memory` takes memory of the file's size, `on-disk` twice its size on disk.
   */
  clean(options: CleanOptions): Promise<Cleaned>
}

export interface Remains {
  /** True while the WAL may hold purged content. */
  inLog: boolean
  /** True while free space in the file may hold pieces of it. */
  inFile: boolean
  /** Size of the database without its WAL. */
  bytes: number
}

/** The signal ends a rebuild on disk, which leaves the file as it was. */
export type CleanOptions = { rebuild: 'in-memory' | 'none' } | { rebuild: 'on-disk'; signal: AbortSignal }

export interface Cleaned {
  /** False when no rebuild was requested, or another process wrote: free space may hold pieces. */
  rebuilt: boolean
  /** False while a reader keeps the WAL: try again later. */
  logCleared: boolean
}

type Noted = Pick<RowOf<typeof PURGE_TABLE>, 'table_name' | 'scope' | 'key'>

export interface PurgerDeps {
  db: Sqlite
  prepare: Prepare
  state: Pick<State, 'meta' | 'setMeta' | 'forgetMeta'>
  transaction(work: () => void): Promise<void>
  /** Does it off the event loop; returns false when it was not done. */
  work(what: FileWork): Promise<boolean>
  /** Rebuilds the file on its disk; returns false when it was not done. */
  rebuildOnDisk(signal: AbortSignal): Promise<boolean>
}

export function createPurger({ db, prepare, state, transaction, work, rebuildOnDisk }: PurgerDeps): Purger {
  const noted = prepare<Noted>(
    `SELECT table_name, scope, key FROM sync_erasures WHERE withdrawn_at < ? ORDER BY withdrawn_at LIMIT ?`,
  )
  const forget = prepare('DELETE FROM sync_erasures WHERE table_name = ? AND scope = ? AND key = ?')
  const restartWaits = prepare(
    'UPDATE sync_erasures SET withdrawn_at = @now WHERE withdrawn_at > @now OR @all',
  )
  const rowPurgers = new Map<string, RowPurger>()
  const rowPurgerOf = (name: string): RowPurger => {
    const purgeRow = rowPurgers.get(name) ?? createRowPurger(prepare, tableNamed(name))
    rowPurgers.set(name, purgeRow)
    return purgeRow
  }

  const purgeBatch = (batch: readonly Noted[], limit: number) => {
    let purged = 0
    let rows = 0
    for (const { table_name: table, scope, key } of batch) {
      if (rows >= limit) return { purged, more: true }
      forget.run(table, scope, key)
      // A table of another version of parley is unknown here, so nothing of it can be purged.
      const changed = TABLES.has(table) ? rowPurgerOf(table)(scope, key) : 0
      if (changed > 0) purged += 1
      rows += Math.max(changed, 1)
    }
    return { purged, more: false }
  }
  const notePurged = (now: string) => {
    state.setMeta(META.purgedAt, now)
    for (const key of REMAINS) if (state.meta(key) === undefined) state.setMeta(key, now)
  }
  const isRebuilt = async (options: CleanOptions): Promise<boolean> => {
    if (options.rebuild === 'on-disk') return rebuildOnDisk(options.signal)
    return options.rebuild === 'in-memory' && (await work('rebuild'))
  }

  return {
    purge({ before, limit, now }) {
      const done = purgeBatch(noted.all(before, limit + 1), limit)
      if (done.purged > 0) notePurged(now)
      return done
    },
    restartWaits: (now, { all }) => restartWaits.run({ now, all: Number(all) }).changes,
    notePurged,
    remains: () => ({
      inLog: state.meta(META.logHoldsPurged) !== undefined,
      inFile: state.meta(META.fileHoldsPieces) !== undefined,
      bytes: databaseBytes(db),
    }),
    async clean(options) {
      forgetSamples(db)
      const rebuilt = await isRebuilt(options)
      await work('move')
      const logCleared = clearLog(db)
      await transaction(() => {
        if (rebuilt) state.forgetMeta(META.fileHoldsPieces)
        if (logCleared) state.forgetMeta(META.logHoldsPurged)
      })
      return { rebuilt, logCleared }
    },
  }
}

const REMAINS = [META.logHoldsPurged, META.fileHoldsPieces]

/** Returns how many rows it changed: 0 when the row is live again. */
type RowPurger = (scope: string, key: string) => number

function createRowPurger(prepare: Prepare, table: Table): RowPurger {
  const isScoped = table.key.length > 1
  const own = condition(table.key)
  const find = prepare(`SELECT 1 FROM ${quote(table.name)} WHERE ${own} AND ${isUnpublished(table)}`)
  const ofRow = [blank(table, own)].flatMap(sql => (sql === undefined ? [] : [prepare(sql)]))
  const ofKey = descendants(table).flatMap(({ table: child }) => statement(prepare, child, childOf(child)))
  const rejects = rejectsOf(table).map(({ resource, feed }) => ({
    names: [resource, feed],
    // Nothing of them may stay, not even the digest: with it, the same item would count as known when it comes again.
    remove: prepare('DELETE FROM sync_rejects WHERE resource = ? AND _feed = ? AND _scope = ?'),
  }))
  const parts = partsOf(table).map(({ part, columns, from }) => ({
    from,
    run: statement(prepare, part, condition(columns)),
  }))

  return (scope, key) => {
    const values = isScoped ? [scope, key] : [key]
    if (find.get(...values) === undefined) return 0
    let changed = 0
    for (const purge of ofRow) changed += purge.run(...values).changes
    for (const purge of ofKey) changed += purge.run(key).changes
    for (const { names, remove } of rejects) changed += remove.run(...names, key).changes
    for (const { from, run } of parts) {
      const cells = from.map(column => values[table.key.indexOf(column)])
      for (const purge of run) changed += purge.run(...cells).changes
    }
    return changed
  }
}

const condition = (columns: readonly string[]): string =>
  columns.map(column => `${quote(column)} = ?`).join(' AND ')

/** A child row repeats its parent's key in its first key column; otherwise the whole table belongs to the parent. */
function childOf(child: Table): string {
  const [first = ''] = child.key
  return child.columns[first]?.source.from === 'parent' ? condition([first]) : '? IS NOT NULL'
}

function statement(prepare: Prepare, table: Table, where: string) {
  const sql = table.content ? `DELETE FROM ${quote(table.name)} WHERE ${where}` : blank(table, where)
  return sql === undefined ? [] : [prepare(sql)]
}

/** Undefined for a table of keys only. */
function blank({ name, kind, columns }: Table, where: string): string | undefined {
  const sets = Object.entries(columns).flatMap(([column, { content, whenPurged }]) =>
    content || whenPurged !== undefined ? [`${quote(column)} = ${whenPurged ?? 'NULL'}`] : [],
  )
  if (kind !== 'link') sets.push('_extra = NULL')
  return sets.length === 0 ? undefined : `UPDATE ${quote(name)} SET ${sets.join(', ')} WHERE ${where}`
}

interface PurgedPart {
  part: Table
  /** Columns of the part that name its row, and the columns of the row's key that they repeat. */
  columns: readonly string[]
  from: readonly string[]
}

/** Tables whose rows belong to a row of this table but come in a separate answer. */
function partsOf({ name }: Table): PurgedPart[] {
  return [...TABLES.values()].flatMap(({ table: part }) =>
    part.livesWith?.table === name
      ? [{ part, columns: Object.keys(part.livesWith.on), from: Object.values(part.livesWith.on) }]
      : [],
  )
}

interface NamedFeed {
  resource: string
  feed: string
}

/** Feeds whose rejects are noted under a key of this table: those of its rows, of its follow-ups, and of its scopes. */
function rejectsOf(table: Table): NamedFeed[] {
  const key = table.key.at(-1) ?? ''
  const followUpFeeds = new Set(CATALOG.flatMap(resource => followUpsOf(resource, table.name, key)))
  return CATALOG.flatMap(({ name, feeds }) =>
    Object.entries(feeds)
      .filter(([feed, declared]) => isReadFor(declared, table, key) || followUpFeeds.has(`${name}.${feed}`))
      .map(([feed]) => ({ resource: name, feed: `${name}.${feed}` })),
  )
}

function followUpsOf({ feeds }: Resource, table: string, key: string): string[] {
  return Object.values(feeds).flatMap(feed => {
    const followUps = 'followUps' in feed && feed.table === table ? (feed.followUps ?? []) : []
    return followUps.flatMap(followUp =>
      'records' in followUp || followUp.key !== key ? [] : [followUp.feed],
    )
  })
}

function isReadFor(feed: Feed, { name }: Table, key: string): boolean {
  if (feed.mode === 'item') return feed.pending ? feed.pending.table === name : isReadByKey(feed, name)
  return (
    feed.table === name ||
    (feed.mode === 'snapshot' && feed.scope?.table === name && feed.scope.column === key)
  )
}

/** True for a feed that reads the row itself, and not one of several parts of another row. */
function isReadByKey({ stores, table }: Extract<Feed, { mode: 'item' }>, name: string): boolean {
  return table === name && (stores === 'row' || stores === 'setting')
}

/**
 * An ANALYZE that a person runs by hand copies values from the indices, mail addresses among them. The planner works
 * without them: parley's own ANALYZE takes no samples.
 */
function forgetSamples(db: Sqlite): void {
  if (hasTable(db, 'sqlite_stat4')) db.exec('DELETE FROM sqlite_stat4')
}

/** Truncates the WAL, whose pages are all in the database by now. False when a reader keeps it. */
function clearLog(db: Sqlite): boolean {
  return truncateWal(db).busy === 0
}
