import { openWritableFile } from './database/writable-file.ts'
import type { Writer } from './lock.ts'
import { META } from './state.ts'

/** What a copy notes that is not true any more in the place of the database, and what only the database knew. */

/** What the API was asked and what it allows: newer than any copy can know. Values as they are stored. */
export interface Carried {
  requestsToday: string | undefined
  learnedRate: string | undefined
}

export const NOTHING_CARRIED: Carried = { requestsToday: undefined, learnedRate: undefined }

export interface Claim {
  carried: Carried
  writer: Writer
  now: string
}

/** Of a daemon that ran while the copy was made. */
const OVER = [META.daemonState, META.unreachable]

/** Works on a copy of any earlier version, before it has its name. */
export function claimCopy(file: string, { carried, writer, now }: Claim): void {
  const db = openWritableFile(file, 0o600)
  try {
    db.pragma('synchronous = FULL')
    const meta = db.prepare('SELECT value FROM sync_meta WHERE key = ?').pluck()
    const setMeta = db.prepare('INSERT OR REPLACE INTO sync_meta (key, value) VALUES (?, ?)')
    const forget = db.prepare('DELETE FROM sync_meta WHERE key = ?')
    const end = db.prepare(
      "UPDATE sync_runs SET ended_at = ?, outcome = 'interrupted' WHERE ended_at IS NULL",
    )
    const claim = db.transaction(() => {
      const requests = meta.get(META.requestsToday) as string | undefined
      const values: readonly [key: string, value: string | undefined][] = [
        [META.writer, JSON.stringify(writer)],
        [META.learnedRate, carried.learnedRate],
        [META.requestsToday, mostRequests(requests, carried.requestsToday)],
      ]
      for (const [key, value] of values) if (value !== undefined) setMeta.run(key, value)
      for (const key of OVER) forget.run(key)
      end.run(now)
    })
    claim.immediate()
  } finally {
    db.close()
  }
}

/** Of two notes that of the later day counts, and of one day the larger: the owner's ceiling is never exceeded. Pure. */
export function mostRequests(copy: string | undefined, present: string | undefined): string | undefined {
  const noted = [copy, present].flatMap(text =>
    text === undefined ? [] : [{ text, said: requestsIn(text) }],
  )
  noted.sort((one, other) => one.said.day.localeCompare(other.said.day) || one.said.used - other.said.used)
  return noted.at(-1)?.text
}

const requestsIn = (text: string) => JSON.parse(text) as { day: string; used: number }
