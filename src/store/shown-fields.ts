import { META } from './state.ts'
import type { Prepare } from './statements.ts'

/** A list, or the read of one row: each shows fields of its own. */
export type ShownBy = 'list' | 'single'

/**
 * Which fields without a column each endpoint has ever shown. A field that is missing from an answer was dropped by the
 * API where this endpoint used to show it, and is none of its business where it never did.
 */
export interface ShownFields {
  /** Inside a transaction. */
  note(table: string, by: ShownBy, fields: readonly string[]): void
  has(table: string, by: ShownBy, field: string): boolean
}

/** More than an endpoint may reasonably have; beyond it a field is kept as if another endpoint showed it. */
const MOST_FIELDS = 200

type Noted = Readonly<Record<string, readonly string[]>>

export function createShownFields(prepare: Prepare): ShownFields {
  const read = prepare('SELECT value FROM sync_meta WHERE key = ?').pluck()
  const write = prepare(
    'INSERT INTO sync_meta (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value',
  )
  let last: { text: unknown; noted: Noted } = { text: undefined, noted: {} }
  /** Read each time, since a transaction that is rolled back takes its notes with it. */
  const stored = (): Noted => {
    const text = read.get(META.shownFields)
    if (text !== last.text) last = { text, noted: typeof text === 'string' ? JSON.parse(text) : {} }
    return last.noted
  }
  const nameOf = (table: string, by: ShownBy) => `${table}.${by}`

  return {
    note(table, by, fields) {
      if (fields.length === 0) return
      const noted = stored()
      const known = noted[nameOf(table, by)] ?? []
      const all = [...new Set([...known, ...fields])].slice(0, MOST_FIELDS)
      if (all.length === known.length) return
      write.run(META.shownFields, JSON.stringify({ ...noted, [nameOf(table, by)]: all }))
    },
    has: (table, by, field) => stored()[nameOf(table, by)]?.includes(field) ?? false,
  }
}
