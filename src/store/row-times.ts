import { quote } from './sql.ts'
import type { Prepare } from './statements.ts'

/** What is asked of a table's rows by their event time. */
export interface RowTimes {
  /** Time of the live row that so many live rows are newer than, or as new as; undefined where there are fewer. */
  afterNewest(column: TimeColumn, rows: number): string | undefined
  /** Whether more live rows than this are at an instant or newer. Reads no more than it must. */
  isMoreThan(column: TimeColumn, rows: number, from: string): boolean
  /** Live rows without a time that no pass has noted; `known` bounds when they were stored first. */
  undated(column: TimeColumn, feed: string, known: { before: string; now: string }): string[]
}

export interface TimeColumn {
  table: string
  time: string
}

export function createRowTimes(prepare: Prepare): RowTimes {
  return {
    afterNewest({ table, time }, rows) {
      const at = prepare(
        `SELECT ${quote(time)} FROM ${quote(table)} WHERE _deleted_at IS NULL AND ${quote(time)} IS NOT NULL
         ORDER BY ${quote(time)} DESC LIMIT 1 OFFSET ?`,
      )
      return at.pluck().get(rows) as string | undefined
    },
    isMoreThan({ table, time }, rows, from) {
      const next = prepare(
        `SELECT 1 FROM ${quote(table)} WHERE _deleted_at IS NULL AND ${quote(time)} >= ? LIMIT 1 OFFSET ?`,
      )
      return next.get(from, rows) !== undefined
    },
    undated({ table, time }, feed, { before, now }) {
      const unseen = prepare(
        `SELECT id FROM ${quote(table)} t WHERE ${quote(time)} IS NULL AND _deleted_at IS NULL
           AND (_first_seen_at < ? OR _first_seen_at > ?)
           AND NOT EXISTS (SELECT 1 FROM sync_seen s WHERE s.feed = ? AND s.scope = '' AND s.key = t.id)`,
      )
      return unseen.pluck().all(before, now, feed) as string[]
    },
  }
}
