import { openWritableFile } from '../file/writable.ts'
import { clearGates } from '../sync/gates.ts'
import { createMeta, META, readNote } from '../sync/meta.ts'
import type { RequestsToday } from '../sync/requests-today.ts'
import type { Writer } from '../sync/writer-note.ts'

/** Updates the values in `sync_meta` of a copy that replaces the database. */

/** Values of the current database that the copy takes over. The copy has older ones. */
export interface CarriedNotes {
  requestsToday: RequestsToday | undefined
  learnedRate: unknown
}

export const NOTHING_CARRIED: CarriedNotes = { requestsToday: undefined, learnedRate: undefined }

interface NoteUpdate {
  carried: CarriedNotes
  writer: Writer
  now: string
}

/**
 * Keys about the process that wrote the warehouse when it was copied. They do not apply to the restored database.
 * Without openings, no publication counts on the changes that the copy has noted.
 */
const PROCESS_KEYS = [META.daemonState, META.announcedProblems, META.publishing, META.openings]

/** Call this before the copy is renamed. The copy may be of any earlier version. */
export function updateNotes(file: string, { carried, writer, now }: NoteUpdate): void {
  const db = openWritableFile(file, 0o600)
  try {
    db.pragma('synchronous = FULL')
    const meta = createMeta(sql => db.prepare(sql))
    const end = db.prepare(
      "UPDATE sync_runs SET ended_at = ?, outcome = 'interrupted' WHERE ended_at IS NULL",
    )
    const update = db.transaction(() => {
      const requests = readNote<RequestsToday>(meta.get, META.requestsToday)
      const notes: readonly [key: string, note: unknown][] = [
        [META.writer, writer],
        [META.learnedRate, carried.learnedRate],
        [META.requestsToday, laterRequests(requests, carried.requestsToday)],
      ]
      for (const [key, note] of notes) if (note !== undefined) meta.set(key, JSON.stringify(note))
      for (const key of PROCESS_KEYS) meta.remove(key)
      clearGates(db)
      // The note of earlier versions, of which an upgrade makes a gate.
      meta.remove('unreachable')
      end.run(now)
    })
    update.immediate()
  } finally {
    db.close()
  }
}

/** The count of the later day. For the same day: the larger count, so that the daily limit is never exceeded. Pure. */
export function laterRequests(
  copy: RequestsToday | undefined,
  present: RequestsToday | undefined,
): RequestsToday | undefined {
  const noted = [copy, present].filter(note => note !== undefined)
  noted.sort((one, other) => one.day.localeCompare(other.day) || one.used - other.used)
  return noted.at(-1)
}
