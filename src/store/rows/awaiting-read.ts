import type { ItemFeed } from '../../declare/resource.ts'
import { quote } from '../database/sql.ts'
import type { Prepare } from '../database/sqlite-types.ts'
import { onlyRow } from '../database/statements.ts'

/** Rows whose first single read is outstanding, as an item feed declares them. */
export type PendingRule = NonNullable<ItemFeed['pending']>

export interface PendingRow {
  key: string
  /** The row's event time. */
  at: string | null
}

export interface PendingRange {
  /** Rows with a task of this feed are left out. */
  feed: string
  /** Only rows with an event time after this instant; null for all rows. */
  after: string | null
  /** Only rows with this event time, with a later one or without any; null for all rows. */
  since: string | null
  limit: number
}

export function createPendingRows(prepare: Prepare) {
  return {
    /** The newest pending rows. Rows with a task are left out: the task has its own due time. */
    newest({ table, key, where, time }: PendingRule, range: PendingRange) {
      const rowTime = `t.${quote(time)}`
      const rows = prepare<PendingRow>(
        `SELECT t.${quote(key)} AS key, ${rowTime} AS at FROM ${quote(table)} t
         WHERE ${where} AND (@after IS NULL OR ${rowTime} > @after)
           AND (@since IS NULL OR ${rowTime} IS NULL OR ${rowTime} >= @since)
           AND NOT EXISTS (
             SELECT 1 FROM sync_tasks s WHERE s.feed = @feed AND s.scope = '' AND s.key = t.${quote(key)})
         ORDER BY ${rowTime} DESC LIMIT +@limit`,
      )
      return rows.all(range)
    },
    /** The row with this key, if its first read is outstanding. */
    find({ table, key, where, time }: PendingRule, value: string) {
      const row = prepare<PendingRow>(
        `SELECT ${quote(key)} AS key, ${quote(time)} AS at FROM ${quote(table)} WHERE ${quote(key)} = ? AND ${where}`,
      )
      return row.get(value)
    },
    /** The rows that meet the condition `mayChange` and whose `_id` is above `after` and at most `upTo`. */
    read({ table, key, time, mayChange = 'false' }: PendingRule, range: { after: number; upTo: number }) {
      const rows = prepare<PendingRow>(
        `SELECT ${quote(key)} AS key, ${quote(time)} AS at FROM ${quote(table)}
         WHERE _id > @after AND _id <= @upTo AND ${mayChange}`,
      )
      return rows.all(range)
    },
    /** The number of pending rows, including rows with a task. */
    count({ table, where }: PendingRule) {
      return onlyRow(prepare<number>(`SELECT count(*) FROM ${quote(table)} WHERE ${where}`).pluck())
    },
  }
}
