import type { Prepare } from '../database/sqlite-types.ts'
import { onlyRow } from '../database/statements.ts'
import type { Denial } from '../deletions/suspicions.ts'
import type { RowWriters } from './payload-writer.ts'

/** `meetings.transcript_state` after each kind of denial. */
export const STATE_AFTER: Readonly<Record<Denial, string>> = {
  absent: 'gone',
  withheld: 'withheld',
  empty: 'empty',
}

/** The state and the stored entries of each meeting's transcript. */
export function createTranscripts(prepare: Prepare, rows: Pick<RowWriters, 'replaceChildren'>) {
  const entry = prepare('SELECT 1 FROM transcript_entries WHERE meeting_id = ? LIMIT 1')
  const set = prepare(
    'UPDATE meetings SET transcript_state = @state, _synced_at = @now WHERE id = @meeting AND transcript_state <> @state',
  )
  const count = prepare<number>(
    "SELECT count(*) FROM meetings WHERE transcript_state = 'present' AND _deleted_at IS NULL",
  ).pluck()
  const setState = (meeting: string, state: string, now: string) => {
    set.run({ meeting, state, now })
  }
  return {
    /** Whether entries are stored, whatever the transcript's state and the meeting's access. */
    hasEntries: (meeting: string) => entry.get(meeting) !== undefined,
    setState,
    /** Removes the entries after the API denied them, and sets the state. Returns 1 when the state changed, else 0. */
    clear(meeting: string, means: Denial, now: string) {
      rows.replaceChildren('transcript_entries', meeting, [], now)
      return set.run({ meeting, state: STATE_AFTER[means], now }).changes
    },
    /** The number of live meetings with a transcript. */
    count: () => onlyRow(count),
  }
}
