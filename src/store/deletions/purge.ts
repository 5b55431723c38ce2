import { CATALOG, descendants, TABLES, tableNamed } from '../../catalog/catalog.ts'
import type { Feed, Resource, Table } from '../../catalog/resource.ts'
import type { Prepare, Sqlite } from '../database/connection.ts'
import { quote } from '../database/sql.ts'
import type { FileWork } from '../maintenance/checkpoint-order.ts'
import { truncateWal } from '../maintenance/maintenance.ts'
import { META } from '../sync/meta.ts'
import type { State } from '../sync/state.ts'
import { isUnpublished } from './purge-queue.ts'

/**
 * Removes the content of rows that were deleted or withheld a while ago. Their keys, times, states and numbers stay.
 */
export interface Purger {
  /**
   * Purges a batch of the rows that were deleted or withheld before an instant, oldest first. Inside a transaction;
   * `more` says whether another batch waits. After `limit` rows of whatever table no further one is begun: a meeting
   * may have thousands below it. A row that was purged is not looked at again unless it comes back and is deleted
   * again.
   */
  purge(options: { before: string; limit: number; now: string }): { purged: number; more: boolean }
  /**
   * Inside a transaction, under a clock that is right: rows that were queued under a clock that was ahead or
   * behind count from now on. `all` where no earlier clock is known to have been right. Returns how many there were.
   */
  recount(now: string, options: { all: boolean }): number
  /**
   * Inside the transaction that removes content in another way: the files are cleaned of it as of what `purge` takes.
   */
  notePurged(now: string): void
  /** What SQLite's own files may still hold; it is kept in the database until it is cleaned. */
  remains(): Remains
  /**
   * Clears what SQLite itself has kept of it; outside a transaction, after the last batch. On request the file is
   * written anew, with nothing else written meanwhile: moving rows from page to page leaves copies behind that purging
   * does not reach. `in-memory` takes as much memory as the file is large, `on-disk` twice its size on its disk.
   */
  clean(options: CleanOptions): Promise<Cleaned>
}

export interface Remains {
  /** True while the WAL may hold what was purged. */
  inLog: boolean
  /** True while free space in the file may hold pieces of it. */
  inFile: boolean
  /** Of the database, without its WAL. */
  bytes: number
}

/** The signal ends a rebuild on the disk: the file is then as it was. */
export type CleanOptions = { rebuild: 'in-memory' | 'none' } | { rebuild: 'on-disk'; signal: AbortSignal }

export interface Cleaned {
  /** False where it was not asked for, or another process wrote: pieces may be left in free space. */
  rebuilt: boolean
  /** False while a reader keeps the log: to be tried again. */
  logCleared: boolean
}

interface Noted {
  table_name: string
  scope: string
  key: string
}

export interface PurgerDeps {
  db: Sqlite
  prepare: Prepare
  state: Pick<State, 'meta' | 'setMeta' | 'forgetMeta'>
  transaction(work: () => void): Promise<void>
  /** Has it done off the event loop; false where it was not. */
  work(what: FileWork): Promise<boolean>
  /** Has the file written anew on its disk; false where it was not. */
  rebuildOnDisk(signal: AbortSignal): Promise<boolean>
}

export function createPurger({ db, prepare, state, transaction, work, rebuildOnDisk }: PurgerDeps): Purger {
  const noted = prepare(
    `SELECT table_name, scope, key FROM sync_erasures WHERE withdrawn_at < ? ORDER BY withdrawn_at LIMIT ?`,
  )
  const forget = prepare('DELETE FROM sync_erasures WHERE table_name = ? AND scope = ? AND key = ?')
  const recount = prepare('UPDATE sync_erasures SET withdrawn_at = @now WHERE withdrawn_at > @now OR @all')
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
      // A table of a version to come or gone by has nothing that could be purged by name.
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
      const done = purgeBatch(noted.all(before, limit + 1) as Noted[], limit)
      if (done.purged > 0) notePurged(now)
      return done
    },
    recount: (now, { all }) => recount.run({ now, all: Number(all) }).changes,
    notePurged,
    remains: () => ({
      inLog: state.meta(META.logHoldsPurged) !== undefined,
      inFile: state.meta(META.fileHoldsPieces) !== undefined,
      bytes: sizeOf(db),
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

/** Returns how many rows it changed: none where the row is live again. */
type RowPurger = (scope: string, key: string) => number

function createRowPurger(prepare: Prepare, table: Table): RowPurger {
  const isScoped = table.key.length > 1
  const own = condition(table.key)
  const find = prepare(`SELECT 1 FROM ${quote(table.name)} WHERE ${own} AND ${isUnpublished(table)}`)
  const ofRow = [blank(table, own)].flatMap(sql => (sql === undefined ? [] : [prepare(sql)]))
  const ofKey = descendants(table).flatMap(({ table: child }) => statement(prepare, child, childOf(child)))
  const rejects = rejectsOf(table).map(({ resource, feed }) => ({
    names: [resource, feed],
    // Nothing of them may stay, their digest included: it would have the same item, seen again, pass for known.
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

/** Rows below another one repeat its key in the first column of their own; else the whole table belongs to it. */
function childOf(child: Table): string {
  const [first = ''] = child.key
  return child.columns[first]?.source.from === 'parent' ? condition([first]) : '? IS NOT NULL'
}

function statement(prepare: Prepare, table: Table, where: string) {
  const sql = table.content ? `DELETE FROM ${quote(table.name)} WHERE ${where}` : blank(table, where)
  return sql === undefined ? [] : [prepare(sql)]
}

/** Undefined for a table that holds nothing but keys. */
function blank({ name, kind, columns }: Table, where: string): string | undefined {
  const sets = Object.entries(columns).flatMap(([column, { content, whenPurged }]) =>
    content || whenPurged !== undefined ? [`${quote(column)} = ${whenPurged ?? 'NULL'}`] : [],
  )
  if (kind !== 'link') sets.push('_extra = NULL')
  return sets.length === 0 ? undefined : `UPDATE ${quote(name)} SET ${sets.join(', ')} WHERE ${where}`
}

interface Part {
  part: Table
  /** Its columns that name the row, and the columns of the row's key that they repeat. */
  columns: readonly string[]
  from: readonly string[]
}

/** Tables with rows that belong to a row though they come in an answer of their own. */
function partsOf({ name }: Table): Part[] {
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

/**
 * Feeds whose rejects are noted under a key of this table: those of its rows, what is read for each, lists inside of one.
 */
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

/** What is read as the row itself, and not as one of several that another row has. */
function isReadByKey({ stores, table }: Extract<Feed, { mode: 'item' }>, name: string): boolean {
  return table === name && (stores === 'row' || stores === 'setting')
}

function sizeOf(db: Sqlite): number {
  const number = (pragma: string) => db.pragma(pragma, { simple: true }) as number
  return number('page_count') * number('page_size')
}

/**
 * An ANALYZE that a person runs by hand copies values out of the indices, mail addresses among them. The planner does
 * without: parley's own never takes any.
 */
function forgetSamples(db: Sqlite): void {
  const sampled = db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'sqlite_stat4'").get()
  if (sampled) db.exec('DELETE FROM sqlite_stat4')
}

/** All of it is in the database already, unless a reader keeps it. */
function clearLog(db: Sqlite): boolean {
  return truncateWal(db).busy === 0
}
