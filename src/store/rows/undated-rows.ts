import { tableNamed } from '../../catalog/catalog.ts'
import type { ParsedRow } from '../../declare/parsed-item.ts'
import { quote } from '../database/sql.ts'
import type { Prepare } from '../database/sqlite-types.ts'

/** The rows of a table that have no event time: queries, and ways to complete or remove the rows. */
export interface UndatedRows {
  /** Ids of live rows that have no time and that the pass has not seen. `known` as in `within` of `RowTimes`. */
  undated(column: TimeColumn, feed: string, known: { before: string; now: string }): string[]
  /** Whether a live row has no time. */
  hasUndated(column: TimeColumn): boolean
  /**
   * Gives a stored row without a time the key of the given row that equals it in all other fields. Storing the given
   * row then completes the stored row. Only for tables whose first column is the key, a digest of the fields.
   */
  completeUndated(column: TimeColumn, rows: readonly ParsedRow[]): void
  /**
   * Removes each row without a time that was first stored after an instant, if an earlier stored row with a time equals
   * it in all other fields. Scans the table for each row without a time.
   */
  removeUndatedCopies(column: TimeColumn, since: string): void
}

export interface TimeColumn {
  table: string
  time: string
}

export function createUndatedRows(prepare: Prepare): UndatedRows {
  return {
    undated({ table, time }, feed, { before, now }) {
      const find = prepare<string>(
        `SELECT id FROM ${quote(table)} t WHERE ${quote(time)} IS NULL AND _deleted_at IS NULL
           AND (_first_seen_at < ? OR _first_seen_at > ?)
           AND NOT EXISTS (SELECT 1 FROM sync_seen s WHERE s.feed = ? AND s.scope = '' AND s.key = t.id)`,
      )
      return find.pluck().all(before, now, feed)
    },
    hasUndated({ table, time }) {
      const row = prepare(
        `SELECT 1 FROM ${quote(table)} WHERE ${quote(time)} IS NULL AND _deleted_at IS NULL LIMIT 1`,
      )
      return row.get() !== undefined
    },
    completeUndated({ table, time }, rows) {
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
    removeUndatedCopies({ table, time }, since) {
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
