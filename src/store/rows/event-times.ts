import { tableNamed } from '../../catalog/catalog.ts'
import type { ParsedRow } from '../../declare/parsed-item.ts'
import { quote } from '../database/sql.ts'
import type { Prepare } from '../database/sqlite-types.ts'
import { onlyRow } from '../database/statements.ts'

export interface TimeColumn {
  table: string
  time: string
}

export interface TimedRow {
  key: string
  at: string
}

/** A span of time: `above` is its newer end, `below` its older end; null is unbounded. */
export interface TimeSpan {
  above: string | null
  aboveIncluded: boolean
  below: string | null
  belowIncluded: boolean
}

export interface Unasked {
  /** Inclusive bounds of the time; null is unbounded. */
  from: string | null
  to: string | null
  /** GLOB pattern of the keys. */
  keys: string
  /** Keys to leave out. */
  but: readonly string[]
  /** Only rows first stored before `before`, or after `now`: the clock was ahead when the latter were stored. */
  before: string
  now: string
  limit: number
}

/**
 * Queries about the event times of a table's live rows, and ways to complete or remove rows that have no event time.
 */
export function createRowTimes(prepare: Prepare) {
  return {
    /**
     * Skips the `rows` newest rows before an instant, and returns the time of the next row; undefined when no row is
     * left.
     */
    afterNewest({ table, time }: TimeColumn, rows: number, before: string | null) {
      const at = prepare<string>(
        `SELECT ${quote(time)} FROM ${quote(table)} WHERE _deleted_at IS NULL AND ${quote(time)} < ?
         ORDER BY ${quote(time)} DESC LIMIT 1 OFFSET ?`,
      )
      return at.pluck().get(before ?? '~', rows)
    },
    /** Whether more than `rows` rows have a time of `from` or later and before `to`. Reads at most `rows` + 1 rows. */
    isMoreThan({ table, time }: TimeColumn, rows: number, { from, to }: { from: string; to: string | null }) {
      const next = prepare(
        `SELECT 1 FROM ${quote(table)}
         WHERE _deleted_at IS NULL AND ${quote(time)} >= ? AND ${quote(time)} < ? LIMIT 1 OFFSET ?`,
      )
      return next.get(from, to ?? '~', rows) !== undefined
    },
    /** The number of rows with a time of `from` or later and before `to`. Null is unbounded. */
    count({ table, time }: TimeColumn, { from, to }: { from: string | null; to: string | null }) {
      const rows = prepare<number>(
        `SELECT count(*) FROM ${quote(table)}
         WHERE _deleted_at IS NULL AND ${quote(time)} >= ? AND ${quote(time)} < ?`,
      )
      return onlyRow(rows.pluck(), from ?? '', to ?? '~')
    },
    /** The latest time up to an instant, deleted rows included; null when no row has such a time. */
    newest({ table, time }: TimeColumn, upTo: string) {
      const at = quote(time)
      const newest = prepare<string | null>(`SELECT max(${at}) FROM ${quote(table)} WHERE ${at} <= ?`)
      return onlyRow(newest.pluck(), upTo)
    },
    /**
     * Live rows with a time in the span that were first stored before `before`. Rows first stored after `now` are
     * included too: the clock was ahead when they were stored.
     */
    within({ table, time }: TimeColumn, span: TimeSpan, { before, now }: { before: string; now: string }) {
      const at = quote(time)
      const above = span.aboveIncluded ? '<=' : '<'
      const below = span.belowIncluded ? '>=' : '>'
      const rows = prepare<TimedRow>(
        `SELECT id AS key, ${at} AS at FROM ${quote(table)}
         WHERE ${at} ${above} ? AND ${at} ${below} ? AND _deleted_at IS NULL
           AND (_first_seen_at < ? OR _first_seen_at > ?)`,
      )
      return rows.all(span.above ?? '~', span.below ?? '', before, now)
    },
    /** Live rows with a time in the span that have no task of the feed, in no particular order. */
    unasked({ table, time }: TimeColumn, feed: string, { from, to, but, ...span }: Unasked): TimedRow[] {
      const rows = prepare<{ key: string; at: string }>(
        `SELECT id AS key, ${quote(time)} AS at FROM ${quote(table)} t
         WHERE ${quote(time)} >= @from AND ${quote(time)} <= @to AND _deleted_at IS NULL AND id GLOB @keys
           AND (_first_seen_at < @before OR _first_seen_at > @now)
           AND id NOT IN (SELECT value FROM json_each(@but))
           AND NOT EXISTS (SELECT 1 FROM sync_tasks s WHERE s.feed = @feed AND s.scope = '' AND s.key = t.id)
         LIMIT +@limit`,
      )
      const bounds = { from: from ?? '', to: to ?? '~' }
      return rows.all({ ...span, ...bounds, feed, but: JSON.stringify(but) })
    },
    /** Ids of live rows that have no time and that the pass has not seen. `before` and `now` as in `within`. */
    undated({ table, time }: TimeColumn, feed: string, { before, now }: { before: string; now: string }) {
      const find = prepare<string>(
        `SELECT id FROM ${quote(table)} t WHERE ${quote(time)} IS NULL AND _deleted_at IS NULL
           AND (_first_seen_at < ? OR _first_seen_at > ?)
           AND NOT EXISTS (SELECT 1 FROM sync_seen s WHERE s.feed = ? AND s.scope = '' AND s.key = t.id)`,
      )
      return find.pluck().all(before, now, feed)
    },
    /** Whether a live row has no time. */
    hasUndated({ table, time }: TimeColumn) {
      const row = prepare(
        `SELECT 1 FROM ${quote(table)} WHERE ${quote(time)} IS NULL AND _deleted_at IS NULL LIMIT 1`,
      )
      return row.get() !== undefined
    },
    /**
     * Gives a stored row without a time the key of the given row that equals it in all other fields. Storing the given
     * row then completes the stored row. Only for tables whose first column is the key, a digest of the fields.
     */
    completeUndated({ table, time }: TimeColumn, rows: readonly ParsedRow[]) {
      const [key = '', ...others] = Object.keys(tableNamed(table).columns)
      const isEqual = others.filter(name => name !== time).map(name => `${quote(name)} IS @${name}`)
      // Excludes the keys of the given rows: a stored row that has just got such a key still has no time, and would
      // match again.
      const undated = `SELECT ${quote(key)} FROM ${quote(table)} WHERE ${quote(time)} IS NULL AND _deleted_at IS NULL
         AND ${quote(key)} NOT IN (SELECT value FROM json_each(@keys)) AND _extra IS @_extra
         AND ${isEqual.join(' AND ')} LIMIT 1`
      const update = prepare(
        `UPDATE ${quote(table)} SET ${quote(key)} = @${key} WHERE ${quote(key)} = (${undated})
           AND NOT EXISTS (SELECT 1 FROM ${quote(table)} WHERE ${quote(key)} = @${key})`,
      )
      const keys = JSON.stringify(rows.map(({ cells }) => cells[0]))
      for (const { cells, extra } of rows) {
        const values = Object.fromEntries([key, ...others].map((name, index) => [name, cells[index] ?? null]))
        update.run({ ...values, _extra: extra, keys })
      }
    },
    /**
     * Removes each row without a time that was first stored after an instant, if an earlier stored row with a time equals
     * it in all other fields. Scans the table for each row without a time.
     */
    removeUndatedCopies({ table, time }: TimeColumn, since: string) {
      const [, ...others] = Object.keys(tableNamed(table).columns)
      const compared = [...others.filter(name => name !== time), '_extra'].map(quote)
      const isEqual = compared.map(name => `dated.${name} IS undated.${name}`).join(' AND ')
      prepare(
        `DELETE FROM ${quote(table)} AS undated WHERE ${quote(time)} IS NULL AND _first_seen_at > ?
           AND EXISTS (SELECT 1 FROM ${quote(table)} dated WHERE dated.${quote(time)} IS NOT NULL
             AND dated._first_seen_at < undated._first_seen_at AND ${isEqual})`,
      ).run(since)
    },
  }
}
