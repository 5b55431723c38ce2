import { tableNamed } from '../../../catalog/catalog.ts'
import type { Table } from '../../../declare/table.ts'
import { isLive, quote } from '../../database/sql.ts'
import type { Prepare } from '../../database/sqlite-types.ts'

/** The rows that a list shows: those of one scope, or with an empty scope a whole table, whose key has one column. */
export interface ListedRows {
  table: string
  scope: string
}

/** Keys greater than `after`, up to and including `upTo`. When `upTo` is undefined, up to the last key. */
export interface KeyRange {
  after: string
  upTo: string | undefined
}

/** Stands for items without an id: no key of a row is empty. */
const UNNAMED = ''

/**
 * Keys that a pass over a list has seen, kept until the rows that the pass did not see are known. A list may have a
 * million rows, so every function except `hasAtLeast` handles a bounded number of keys.
 */
export function createSeen(prepare: Prepare) {
  const note = prepare('INSERT OR IGNORE INTO sync_seen (feed, scope, key) VALUES (?, ?, ?)')
  const one = prepare('SELECT 1 FROM sync_seen WHERE feed = ? AND scope = ? AND key = ?')
  const any = prepare('SELECT 1 FROM sync_seen WHERE feed = ? AND scope = ? LIMIT 1')
  const nth = prepare('SELECT 1 FROM sync_seen WHERE feed = ? AND scope = ? LIMIT 1 OFFSET ?')
  const forget = prepare(
    `DELETE FROM sync_seen WHERE feed = @feed AND scope = @scope AND key IN (
       SELECT key FROM sync_seen WHERE feed = @feed AND scope = @scope LIMIT +@atMost)`,
  )
  const has = (feed: string, scope: string, key: string) => one.get(feed, scope, key) !== undefined
  return {
    has,
    /** Returns whether the pass has not seen the key before. */
    note: (feed: string, scope: string, key: string) => note.run(feed, scope, key).changes > 0,
    /** Notes that the pass has seen items without an id: any row that it did not see may be one of them. */
    noteUnnamed: (feed: string, scope: string) => {
      note.run(feed, scope, UNNAMED)
    },
    hasUnnamed: (feed: string, scope: string) => has(feed, scope, UNNAMED),
    hasAny: (feed: string, scope: string) => any.get(feed, scope) !== undefined,
    /** Whether the pass has seen at least `count` keys. */
    hasAtLeast: (feed: string, scope: string, count: number) =>
      count <= 0 || nth.get(feed, scope, count - 1) !== undefined,
    /** Forgets up to `atMost` keys. Returns whether there may be more. */
    forget: (feed: string, scope: string, atMost: number) =>
      forget.run({ feed, scope, atMost }).changes === atMost,
    /** The last key of the range of `size` rows after `after`; undefined when fewer are left. */
    rangeEnd({ table, scope }: ListedRows, after: string, size: number) {
      const { name, key, inScope } = keysOf(tableNamed(table))
      const end = prepare<string>(
        `SELECT ${key} FROM ${name} WHERE ${inScope} AND ${key} > @after ORDER BY ${key} LIMIT 1 OFFSET @rest`,
      )
      return end.pluck().get({ scope, after, rest: size - 1 })
    },
    /** Keys, within a range, of live rows that the pass has not seen. */
    unseen(feed: string, { table, scope }: ListedRows, range: KeyRange) {
      const { name, key, inScope, live } = keysOf(tableNamed(table))
      // Finds the unseen keys through an index in the order of `sync_seen`, and reads only the rows of these keys.
      const unseen = prepare<string>(
        `WITH unseen AS MATERIALIZED (
           SELECT ${key} AS key FROM ${name} t WHERE ${inScope} AND ${inRange(key, range)}
             AND NOT EXISTS (SELECT 1 FROM sync_seen s WHERE s.feed = @feed AND s.scope = @scope AND s.key = t.${key}))
         SELECT u.key FROM unseen u JOIN ${name} ON ${key} = u.key WHERE ${inScope} AND ${live}`,
      )
      return unseen.pluck().all({ feed, scope, ...range })
    },
  }
}

/** SQL condition on a key, with the range's values bound by name. With OR, SQLite would not stop at the range's end. */
export function inRange(key: string, { upTo }: KeyRange): string {
  return upTo === undefined ? `${key} > @after` : `${key} > @after AND ${key} <= @upTo`
}

function keysOf(table: Table) {
  const { name, key } = table
  return {
    name: quote(name),
    key: quote(key.at(-1) ?? ''),
    inScope: key.length > 1 ? `${quote(key[0] ?? '')} = @scope` : "@scope = ''",
    live: isLive(table),
  }
}
