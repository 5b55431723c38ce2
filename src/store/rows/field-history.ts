import { decodeJson, encodeJson, exactNumber, isJsonObject } from '../../base/json.ts'
import type { History } from '../../declare/resource.ts'
import { quote } from '../database/sql.ts'
import type { Prepare } from '../database/sqlite-types.ts'
import { sameJson } from './payload-writer.ts'

/** Stores a row for each field of a record whose value differs between the JSON objects `before` and `after`. */
export type NoteChanges = (
  record: { object: string; id: string },
  before: string,
  after: string,
  now: string,
) => void

export function createHistory(prepare: Prepare, { into }: History): NoteChanges {
  const insert = prepare(
    // Two changes of a field in one millisecond have the same key. They become one change, from first to last value.
    `INSERT INTO ${quote(into)} (object, record_id, field, observed_at, old_value, new_value)
     VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET new_value = excluded.new_value`,
  )
  return ({ object, id }, before, after, now) => {
    const old = fieldsOf(before)
    const fresh = fieldsOf(after)
    for (const field of new Set([...old.keys(), ...fresh.keys()])) {
      // Most fields of a changed record did not change. Skipping them here saves encoding their values as JSON.
      if (isIdentical(old.get(field), fresh.get(field))) continue
      const [from, to] = [jsonTextOf(old, field), jsonTextOf(fresh, field)]
      if (!sameJson(from, to)) insert.run(object, id, field, now, from, to)
    }
  }
}

type FieldValues = ReadonlyMap<string, unknown>

/** Empty when the JSON is not an object. */
function fieldsOf(json: string): FieldValues {
  const { value } = decodeJson(json)
  return new Map(isJsonObject(value) ? Object.entries(value) : [])
}

function isIdentical(one: unknown, other: unknown): boolean {
  if (one === other) return true
  const digits = exactNumber(one)?.text
  return digits !== undefined && digits === exactNumber(other)?.text
}

/** The value as JSON text; null when the field is absent. */
function jsonTextOf(fields: FieldValues, field: string): string | null {
  return fields.has(field) ? encodeJson(fields.get(field)) : null
}
