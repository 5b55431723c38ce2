import type { RowWriters } from './rows.ts'
import type { Prepare } from './statements.ts'
import type { Denial } from './suspicions.ts'

/** The state of each meeting's transcript, and what is stored of it. */
export interface Transcripts {
  /** Also while the meeting is withheld, or a later state says that there are none. */
  hasEntries(meeting: string): boolean
  setState(meeting: string, state: string, now: string): void
  /** Removes the entries, since the API has denied them; the state tells how. Returns how many transcripts changed. */
  clear(meeting: string, means: Denial, now: string): number
  /** How many meetings have a transcript. */
  count(): number
}

/** `meetings.transcript_state` by what the API answers. */
export const STATE_AFTER: Readonly<Record<Denial, string>> = {
  absent: 'gone',
  withheld: 'withheld',
  empty: 'empty',
}

export function createTranscripts(prepare: Prepare, rows: Pick<RowWriters, 'replaceChildren'>): Transcripts {
  const entry = prepare('SELECT 1 FROM transcript_entries WHERE meeting_id = ? LIMIT 1')
  const set = prepare(
    'UPDATE meetings SET transcript_state = @state, _synced_at = @now WHERE id = @meeting AND transcript_state <> @state',
  )
  const count = prepare(
    "SELECT count(*) FROM meetings WHERE transcript_state = 'present' AND _deleted_at IS NULL",
  ).pluck()
  const setState: Transcripts['setState'] = (meeting, state, now) => {
    set.run({ meeting, state, now })
  }
  return {
    hasEntries: meeting => entry.get(meeting) !== undefined,
    setState,
    clear(meeting, means, now) {
      rows.replaceChildren('transcript_entries', meeting, [], now)
      return set.run({ meeting, state: STATE_AFTER[means], now }).changes
    },
    count: () => count.get() as number,
  }
}
