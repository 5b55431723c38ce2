import type { Prepare } from '../database/sqlite-types.ts'
import { createMeta, META, readNote } from '../sync/meta.ts'

/** The kind of endpoint: a list, or the read of a single row. The two return different fields. */
export type ShownBy = 'list' | 'single'

/** More fields than an endpoint has in practice. Any further field counts as never returned by this endpoint. */
const MAX_FIELDS = 200

type FieldsByEndpoint = Readonly<Record<string, readonly string[]>>

export type ShownFields = ReturnType<typeof createShownFields>

/**
 * Remembers which fields without a column each endpoint has ever returned. When a field is missing from an answer of an
 * endpoint that returned it before, the API has dropped the field. Otherwise its absence means nothing.
 */
export function createShownFields(prepare: Prepare) {
  const meta = createMeta(prepare)
  let last: { text: string | undefined; noted: FieldsByEndpoint } = { text: undefined, noted: {} }
  /** Reads the database each time, since a rollback may have removed fields. Caches only the parsed JSON. */
  const stored = (): FieldsByEndpoint => {
    const text = meta.get(META.shownFields)
    if (text !== last.text)
      last = { text, noted: readNote<FieldsByEndpoint>(() => text, META.shownFields) ?? {} }
    return last.noted
  }
  const nameOf = (table: string, by: ShownBy) => `${table}.${by}`

  return {
    /** Adds fields. Call inside a transaction. */
    note(table: string, by: ShownBy, fields: readonly string[]) {
      if (fields.length === 0) return
      const noted = stored()
      const known = noted[nameOf(table, by)] ?? []
      const all = [...new Set([...known, ...fields])].slice(0, MAX_FIELDS)
      if (all.length === known.length) return
      meta.set(META.shownFields, JSON.stringify({ ...noted, [nameOf(table, by)]: all }))
    },
    has: (table: string, by: ShownBy, field: string) => stored()[nameOf(table, by)]?.includes(field) ?? false,
  }
}
