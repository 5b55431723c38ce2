import type { Prepare } from '../database/sqlite-types.ts'
import type { RowKey } from '../deletions/suspicions.ts'

/**
 * Answers that are older than the stored row, by the API's own time of its last change. A replica that lags sends such
 * an answer once or for some minutes, and the stored row stays. An API that was restored from a backup sends them from
 * then on: the second such answer, long enough after the first, is believed.
 */
export interface OlderAnswers {
  /** Whether any row of the table had an older answer last. */
  hasAny(table: string): boolean
  /** Notes an older answer. Returns whether the row had one before `since` and none other after it. */
  isBelieved(row: RowKey, times: { now: string; since: string }): boolean
  /** The row had an answer that is not older. */
  end(row: RowKey): void
  /** Removes the notes from before an instant: of rows that no answer has shown since. */
  forget(before: string): void
}

export function createOlderAnswers(prepare: Prepare): OlderAnswers {
  const any = prepare('SELECT 1 FROM sync_older_answers WHERE table_name = ? LIMIT 1')
  const find = prepare<string>(
    'SELECT since FROM sync_older_answers WHERE table_name = ? AND scope = ? AND key = ?',
  ).pluck()
  const note = prepare('INSERT INTO sync_older_answers (table_name, scope, key, since) VALUES (?, ?, ?, ?)')
  const end = prepare('DELETE FROM sync_older_answers WHERE table_name = ? AND scope = ? AND key = ?')
  const forget = prepare('DELETE FROM sync_older_answers WHERE since < ?')
  return {
    hasAny: table => any.get(table) !== undefined,
    isBelieved({ table, scope, key }, { now, since }) {
      const first = find.get(table, scope, key)
      if (first === undefined) note.run(table, scope, key, now)
      return first !== undefined && first <= since
    },
    end: ({ table, scope, key }) => void end.run(table, scope, key),
    forget: before => void forget.run(before),
  }
}
