import { quote } from '../database/sql.ts'
import type { Prepare } from '../database/sqlite-types.ts'
import { onlyRow } from '../database/statements.ts'
import { createUndatedRows, type TimeColumn, type UndatedRows } from './undated-rows.ts'

/** Queries about the event times of a table's live rows. */
export interface RowTimes extends UndatedRows {
  /**
   * Skips the `rows` newest rows before an instant, and returns the time of the next row; undefined when no row is
   * left.
   */
  afterNewest(column: TimeColumn, rows: number, before: string | null): string | undefined
  /** Whether more than `rows` rows have a time of `from` or later and before `to`. Reads at most `rows` + 1 rows. */
  isMoreThan(column: TimeColumn, rows: number, span: { from: string; to: string | null }): boolean
  /** The number of rows with a time of `from` or later and before `to`. Null is unbounded. */
  count(column: TimeColumn, span: { from: string | null; to: string | null }): number
  /** The latest time up to an instant, deleted rows included; null when no row has such a time. */
  newest(column: TimeColumn, upTo: string): string | null
  /**
   * Live rows with a time in the span that were first stored before `known.before`. Rows first stored after `known.now`
   * are included too: the clock was ahead when they were stored.
   */
  within(column: TimeColumn, span: TimeSpan, known: { before: string; now: string }): TimedRow[]
  /** Live rows with a time in the span that have no task of the feed, in no particular order. */
  unasked(column: TimeColumn, feed: string, span: Unasked): TimedRow[]
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

export function createRowTimes(prepare: Prepare): RowTimes {
  return {
    afterNewest({ table, time }, rows, before) {
      const at = prepare<string>(
        `SELECT ${quote(time)} FROM ${quote(table)} WHERE _deleted_at IS NULL AND ${quote(time)} < ?
         ORDER BY ${quote(time)} DESC LIMIT 1 OFFSET ?`,
      )
      return at.pluck().get(before ?? '~', rows)
    },
    isMoreThan({ table, time }, rows, { from, to }) {
      const next = prepare(
        `SELECT 1 FROM ${quote(table)}
         WHERE _deleted_at IS NULL AND ${quote(time)} >= ? AND ${quote(time)} < ? LIMIT 1 OFFSET ?`,
      )
      return next.get(from, to ?? '~', rows) !== undefined
    },
    count({ table, time }, { from, to }) {
      const rows = prepare<number>(
        `SELECT count(*) FROM ${quote(table)}
         WHERE _deleted_at IS NULL AND ${quote(time)} >= ? AND ${quote(time)} < ?`,
      )
      return onlyRow(rows.pluck(), from ?? '', to ?? '~')
    },
    newest({ table, time }, upTo) {
      const at = quote(time)
      const newest = prepare<string | null>(`SELECT max(${at}) FROM ${quote(table)} WHERE ${at} <= ?`)
      return onlyRow(newest.pluck(), upTo)
    },
    within({ table, time }, span, { before, now }) {
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
    unasked({ table, time }, feed, { from, to, but, ...span }) {
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
    ...createUndatedRows(prepare),
  }
}
