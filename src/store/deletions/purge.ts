import type { RowOf } from '../../catalog/bookkeeping/table-declaration.ts'
import type { PURGE_TABLE } from '../../catalog/bookkeeping/tables.ts'
import { descendants, TABLES, tableNamed } from '../../catalog/catalog.ts'
import { FEEDS, type FeedName } from '../../catalog/feeds.ts'
import type { Feed } from '../../declare/resource.ts'
import { type Table, valueWhenPurged } from '../../declare/table.ts'
import { hasTable } from '../database/existing-tables.ts'
import { isRow, quote } from '../database/sql.ts'
import type { Prepare, Sqlite } from '../database/sqlite-types.ts'
import { withoutWaiting } from '../database/transaction.ts'
import { databaseBytes } from '../database/whole-copy.ts'
import { blankVersions, versionContents } from '../reporting/version-content.ts'
import { META } from '../sync/meta.ts'
import type { State } from '../sync/resource-state.ts'
import { isUnpublished } from './purge-queue.ts'

interface PurgeOptions {
  before: string
  limit: number
  now: string
  /** Called for each row of a table that exists but that this version does not know. The row's content stays. */
  onUnknown?: (table: string) => void
}

/** The signal ends a rebuild. The file is then unchanged. */
type CleanOptions = { rebuild: false } | { rebuild: true; signal: AbortSignal }

type Noted = Pick<RowOf<typeof PURGE_TABLE>, 'table_name' | 'scope' | 'key'>

interface PurgerDeps {
  db: Sqlite
  prepare: Prepare
  state: Pick<State, 'meta' | 'setMeta' | 'forgetMeta'>
  transaction(work: () => void): Promise<void>
  /** Runs a checkpoint off the event loop. */
  checkpoint(): Promise<void>
  /** Resolves to false when the file was not rebuilt. */
  rebuild(signal: AbortSignal): Promise<boolean>
}

/** Removes the content of rows that were deleted or withheld earlier. Their keys, times, states and numbers stay. */
export function createPurger({ db, prepare, state, transaction, checkpoint, rebuild }: PurgerDeps) {
  const noted = prepare<Noted>(
    `SELECT table_name, scope, key FROM sync_purge_queue WHERE withdrawn_at < ? ORDER BY withdrawn_at LIMIT +?`,
  )
  const forget = prepare('DELETE FROM sync_purge_queue WHERE table_name = ? AND scope = ? AND key = ?')
  const restartWaits = prepare(
    'UPDATE sync_purge_queue SET withdrawn_at = @now WHERE withdrawn_at > @now OR @all',
  )
  const rowPurgers = new Map<string, RowPurger>()
  const rowPurgerOf = (name: string): RowPurger => {
    const purgeRow = rowPurgers.get(name) ?? createRowPurger(db, prepare, tableNamed(name))
    rowPurgers.set(name, purgeRow)
    return purgeRow
  }

  const purgeBatch = (batch: readonly Noted[], { limit, onUnknown }: PurgeOptions) => {
    let purged = 0
    let rows = 0
    for (const { table_name: table, scope, key } of batch) {
      if (rows >= limit) return { purged, more: true }
      forget.run(table, scope, key)
      const isKnown = TABLES.has(table)
      if (!isKnown && hasTable(db, table)) onUnknown?.(table)
      const changed = isKnown ? rowPurgerOf(table)(scope, key) : 0
      if (changed > 0) purged += 1
      rows += Math.max(changed, 1)
    }
    return { purged, more: false }
  }
  const noteRemains = (now: string) => {
    for (const key of REMAINS) if (state.meta(key) === undefined) state.setMeta(key, now)
  }
  const notePurged = (now: string) => {
    state.setMeta(META.purgedAt, now)
    noteRemains(now)
  }

  return {
    /**
     * Purges a batch of the rows that were deleted or withheld before an instant, oldest first. Call it inside a
     * transaction. `more` says whether rows are left for another batch. The batch ends after `limit` changed rows of any
     * table, since a meeting may have thousands of child rows. A purged row is not purged again unless it comes back and
     * is deleted again.
     */
    purge(options: PurgeOptions) {
      const done = purgeBatch(noted.all(options.before, options.limit + 1), options)
      if (done.purged > 0) notePurged(options.now)
      return done
    },
    /**
     * Restarts the wait of rows whose instant is after `now`: a clock that was ahead queued them, or their wait has not
     * started. Call it inside a transaction, while this machine's clock is right. `all` restarts every wait: use it when
     * no earlier clock is known to have been right. Returns the number of rows.
     */
    restartWaits: (now: string, { all }: { all: boolean }) =>
      restartWaits.run({ now, all: Number(all) }).changes,
    /** Records, for `remains`, that content was removed without `purge`. Call it in the same transaction. */
    notePurged,
    /** Records, for `remains`, that the full-text indices lose edited or deleted texts. Call it inside a transaction. */
    noteRemains,
    /** Where SQLite's files may still hold purged content. The database stores this until `clean` removes the content. */
    remains: () => ({
      /** True while the WAL may hold purged content. */
      inLog: state.meta(META.logHoldsPurged) !== undefined,
      /** True while free space in the file may hold pieces of purged content. */
      inFile: state.meta(META.fileHoldsPieces) !== undefined,
      /** Size of the database without its WAL. */
      get bytes() {
        return databaseBytes(db)
      },
    }),
    /**
     * Removes purged content from SQLite's files. Call it outside a transaction, after the last batch. SQLite leaves
     * copies behind when it moves rows between pages, and purging does not reach these copies. A rebuild writes the whole
     * file again without them; nothing can be written meanwhile. Resolves to whether the file was rebuilt.
     */
    async clean(options: CleanOptions) {
      forgetSamples(db)
      // The rebuild opens the database by name. This commit fails if the file was moved or replaced.
      if (options.rebuild) await transaction(() => undefined)
      const rebuilt = options.rebuild && (await rebuild(options.signal))
      await checkpoint()
      const isLogCleared = clearLog(db)
      await transaction(() => {
        if (rebuilt) state.forgetMeta(META.fileHoldsPieces)
        if (isLogCleared) state.forgetMeta(META.logHoldsPurged)
      })
      return rebuilt
    },
  }
}

const REMAINS = [META.logHoldsPurged, META.fileHoldsPieces]

/** Purges a row. Returns how many rows were changed: 0 when the row is live again. */
type RowPurger = (scope: string, key: string) => number

function createRowPurger(db: Sqlite, prepare: Prepare, table: Table): RowPurger {
  const isScoped = table.key.length > 1
  const own = isRow(table.key)
  const find = prepare(`SELECT 1 FROM ${quote(table.name)} WHERE ${own} AND ${isUnpublished(table)}`)
  const ofRow = [blank(table, own)].flatMap(sql => (sql === undefined ? [] : [prepare(sql)]))
  const ofKey = descendants(table).flatMap(({ table: child }) => statement(prepare, child, childOf(child)))
  const rejects = rejectsOf(table).map(({ resource, id }) => ({
    names: [resource, id],
    // Removes the whole reject. If its digest stayed, the same item would count as known when it is received again.
    remove: prepare('DELETE FROM sync_rejects WHERE resource = ? AND _feed = ? AND _scope = ?'),
  }))
  const parts = partsOf(table).map(({ part, columns, from }) => ({
    from,
    run: statement(prepare, part, isRow(columns)),
  }))
  const versions = versionContents(db)
    .filter(({ owner }) => owner === table.name)
    .map(content => prepare(blankVersions(content)))

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
    for (const purge of versions) changed += purge.run({ scope, key }).changes
    return changed
  }
}

/** A child row repeats its parent's key in its first key column; otherwise the whole table belongs to the parent. */
function childOf(child: Table): string {
  const [first = ''] = child.key
  return child.columns[first]?.source.from === 'parent' ? isRow([first]) : '? IS NOT NULL'
}

function statement(prepare: Prepare, table: Table, where: string) {
  const sql = table.content ? `DELETE FROM ${quote(table.name)} WHERE ${where}` : blank(table, where)
  return sql === undefined ? [] : [prepare(sql)]
}

/** SQL that empties the content of rows; undefined for a table without content. */
function blank({ name: table, kind, columns }: Table, where: string): string | undefined {
  const sets = Object.entries(columns).flatMap(([name, column]) => {
    const value = valueWhenPurged(column)
    return value === undefined ? [] : [`${quote(name)} = ${value}`]
  })
  if (kind !== 'link') sets.push('_extra = NULL')
  return sets.length === 0 ? undefined : `UPDATE ${quote(table)} SET ${sets.join(', ')} WHERE ${where}`
}

interface PurgedPart {
  part: Table
  /** The part's `columns` repeat the key columns `from` of the row to which the part belongs. */
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

/**
 * Feeds whose rejects have a key of this table as their scope. These feeds read rows of this table, follow-ups of such
 * rows, or a list for each row.
 */
function rejectsOf(table: Table): readonly FeedName[] {
  const key = table.key.at(-1) ?? ''
  const followUpFeeds = new Set(FEEDS.flatMap(({ feed }) => followUpsOf(feed, table.name, key)))
  return FEEDS.filter(({ id, feed }) => isReadFor(feed, table, key) || followUpFeeds.has(id))
}

function followUpsOf(feed: Feed, table: string, key: string): string[] {
  const followUps = 'followUps' in feed && feed.table === table ? (feed.followUps ?? []) : []
  return followUps.flatMap(followUp => ('records' in followUp || followUp.key !== key ? [] : [followUp.feed]))
}

function isReadFor(feed: Feed, { name }: Table, key: string): boolean {
  if (feed.mode === 'item') return feed.pending ? feed.pending.table === name : isReadByKey(feed, name)
  return (
    feed.table === name ||
    (feed.mode === 'snapshot' && feed.scope?.table === name && feed.scope.column === key)
  )
}

/** True for a feed whose reads each return one row of the table. Other feeds read a part of a row of another table. */
function isReadByKey({ stores, table }: Extract<Feed, { mode: 'item' }>, name: string): boolean {
  return table === name && (stores === 'row' || stores === 'setting')
}

/**
 * Removes the samples that an ANALYZE by another program may have copied from the indices, such as e-mail addresses.
 * The planner does not need them: parley's own ANALYZE takes no samples.
 */
function forgetSamples(db: Sqlite): void {
  if (hasTable(db, 'sqlite_stat4')) db.exec('DELETE FROM sqlite_stat4')
}

/**
 * Truncates the WAL, whose pages are all in the database by now. Returns false when a reader needs the WAL. The busy
 * timeout is 0, because SQLite would otherwise block the event loop while it waits for the reader.
 */
function clearLog(db: Sqlite): boolean {
  return withoutWaiting(db, () => db.pragma('wal_checkpoint(TRUNCATE)', { simple: true })) === 0
}
