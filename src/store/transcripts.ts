import type { RowWriters } from './rows.ts'
import type { Prepare } from './statements.ts'
import type { Denial } from './suspicions.ts'

/** The state of each meeting's transcript, and what is stored of it. */
export interface Transcripts {
  state(meeting: string): string | undefined
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
  const find = prepare('SELECT transcript_state FROM meetings WHERE id = ?').pluck()
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
    state: meeting => find.get(meeting) as string | undefined,
    setState,
    clear(meeting, means, now) {
      rows.replaceChildren('transcript_entries', meeting, [], now)
      return set.run({ meeting, state: STATE_AFTER[means], now }).changes
    },
    count: () => count.get() as number,
  }
}
