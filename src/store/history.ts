import { decodeJson, encodeJson, exactNumber } from '../json.ts'
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
    const old = fieldsOf(before)
    const fresh = fieldsOf(after)
    for (const field of new Set([...old.keys(), ...fresh.keys()])) {
      // Most fields of a record that changed did not, and writing them as JSON to see it costs more than all else.
      if (isPlainlySame(old.get(field), fresh.get(field))) continue
      const [from, to] = [textOf(old, field), textOf(fresh, field)]
      if (!sameJson(from, to)) insert.run(object, id, field, now, from, to)
    }
  }
}

type Fields = ReadonlyMap<string, unknown>

/** None when the column held no object. */
function fieldsOf(json: string): Fields {
  const { value } = decodeJson(json)
  return new Map(typeof value === 'object' && value !== null ? Object.entries(value) : [])
}

function isPlainlySame(one: unknown, other: unknown): boolean {
  if (one === other) return true
  const digits = exactNumber(one)?.text
  return digits !== undefined && digits === exactNumber(other)?.text
}

/** The value as JSON text; null when the field is absent. */
function textOf(fields: Fields, field: string): string | null {
  return fields.has(field) ? encodeJson(fields.get(field)) : null
}
