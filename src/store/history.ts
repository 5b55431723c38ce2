import { decodeJson, encodeJson } from '../json.ts'
import type { History } from '../resource.ts'
import { sameJson } from './rows.ts'
import { quote } from './sql.ts'
import type { Prepare } from './statements.ts'

/** Notes every field of a record whose value is another than at the last observation. */
export type NoteChanges = (
  record: { object: string; id: string },
  before: string,
  after: string,
  now: string,
) => void

export function createHistory(prepare: Prepare, { into }: History): NoteChanges {
  const insert = prepare(
    // Two observations within a millisecond are one change, from the first value to the last.
    `INSERT INTO ${quote(into)} (object, record_id, field, observed_at, old_value, new_value)
     VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET new_value = excluded.new_value`,
  )
  return ({ object, id }, before, after, now) => {
    const old = fieldTexts(before)
    const fresh = fieldTexts(after)
    for (const field of new Set([...old.keys(), ...fresh.keys()])) {
      const from = old.get(field) ?? null
      const to = fresh.get(field) ?? null
      if (!sameJson(from, to)) insert.run(object, id, field, now, from, to)
    }
  }
}

/** Each field's value as JSON text; none when the column held no object. */
function fieldTexts(json: string): Map<string, string> {
  const { value } = decodeJson(json)
  const entries = typeof value === 'object' && value !== null ? Object.entries(value) : []
  return new Map(entries.map(([field, content]) => [field, encodeJson(content)]))
}
