import type { Prepare } from '../database/sqlite-types.ts'
import type { RowKey } from '../deletions/suspicions.ts'

export type OlderAnswers = ReturnType<typeof createOlderAnswers>

/**
 * Answers that are older than the stored row, by the API's own time of the record's last change. A replica that lags
 * sends such an answer once or for some minutes, and the stored row stays. An API that was restored from a backup sends
 * such answers from then on. So a later older answer, long enough after the first, replaces the row.
 */
export function createOlderAnswers(prepare: Prepare) {
  const any = prepare('SELECT 1 FROM sync_older_answers WHERE table_name = ? LIMIT 1')
  const find = prepare<string>(
    'SELECT since FROM sync_older_answers WHERE table_name = ? AND scope = ? AND key = ?',
  ).pluck()
  const note = prepare('INSERT INTO sync_older_answers (table_name, scope, key, since) VALUES (?, ?, ?, ?)')
  const end = prepare('DELETE FROM sync_older_answers WHERE table_name = ? AND scope = ? AND key = ?')
  return {
    /** Whether the last answer for any row of the table was an older one. */
    hasAny: (table: string) => any.get(table) !== undefined,
    /** Notes an older answer. Returns true when the row has had only older answers since an instant up to `since`. */
    isBelieved({ table, scope, key }: RowKey, { now, since }: { now: string; since: string }) {
      const first = find.get(table, scope, key)
      if (first === undefined) note.run(table, scope, key, now)
      return first !== undefined && first <= since
    },
    /** Removes the note of a row whose answer was stored. */
    end: ({ table, scope, key }: RowKey) => void end.run(table, scope, key),
  }
}
