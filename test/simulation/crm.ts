import type { IdleSimulator } from '../../src/simulator/server.ts'
import type { Sqlite } from '../../src/store/database/sqlite-types.ts'
import { canonicalJson, type Fields, fieldsOf, type Json, parseExact } from '../support/exact-json.ts'

/** What a life knows of the CRM records and each of their values. */
export interface Records {
  /** Call it after each change of the workspace. */
  look(): void
  /** @param followedSince since when activities, which tell of changes, could be read; undefined where they are not */
  lies(db: Sqlite, followedSince?: number): string[]
}

interface Version {
  at: number
  updatedAt: string
  /** Each as canonical JSON. */
  fields: Readonly<Record<string, string>>
}

/** An activity tells of a change: it may be late, and be read a little before the change is. */
const FOLLOWED_WITHIN_MS = 3 * 3_600_000

/** The objects whose changes are activities. */
const TOLD = ['deal', 'company', 'contact']

export function watchRecords({ world }: IdleSimulator, now: () => number): Records {
  const versions = new Map<string, Version[]>()
  return {
    look() {
      for (const line of world.truth().lines('crm_records')) {
        const record = fieldsOf(parseExact(line))
        const key = JSON.stringify([record['object'], record['id']])
        const known = versions.get(key) ?? []
        versions.set(key, known)
        const fields = valuesOf(fieldsOf(record['fields']))
        if (JSON.stringify(known.at(-1)?.fields) === JSON.stringify(fields)) continue
        known.push({ at: now(), updatedAt: String(record['updated_at']), fields })
      }
    },
    lies: (db, followedSince = now()) => [
      ...invented(db, versions),
      ...(followedSince < now() - FOLLOWED_WITHIN_MS ? stale(db, versions, now() - FOLLOWED_WITHIN_MS) : []),
    ],
  }
}

const valuesOf = (fields: Fields) =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, canonicalJson(value ?? null)]))

/**
 * Changes from a value to one that the API has published only before it. A purge leaves neither value, and what is nested
 * ten thousand deep is a wrong answer.
 */
function invented(db: Sqlite, versions: ReadonlyMap<string, readonly Version[]>): string[] {
  const rows = db
    .prepare(
      `SELECT object, record_id, field, old_value, new_value, observed_at FROM crm_record_changes
       WHERE old_value IS NOT new_value AND length(coalesce(old_value, '') || coalesce(new_value, '')) < 10000`,
    )
    .raw()
    .all() as [
    object: string,
    id: string,
    field: string,
    before: string | null,
    after: string | null,
    at: string,
  ][]
  return rows.flatMap(([object, id, field, before, after, at]) => {
    const known = versions.get(JSON.stringify([object, id])) ?? []
    const placesOf = (value: string | null) => {
      const wanted = value === null ? undefined : canonicalJson(parseExact(value) as Json)
      return known.flatMap(({ fields }, place) => (fields[field] === wanted ? [place] : []))
    }
    const [from, to] = [placesOf(before), placesOf(after)]
    const isTold = from.length === 0 || to.length === 0 || Math.min(...from) < Math.max(...to)
    const what = `${field} of ${object} ${id} from ${before} to ${after} at ${at}`
    return isTold ? [] : [`crm_record_changes tells of ${what}, which has never happened`]
  })
}

/** Records whose last change is not stored although an activity has told of it long ago. */
function stale(db: Sqlite, versions: ReadonlyMap<string, readonly Version[]>, before: number): string[] {
  const stored = new Map(
    db
      .prepare('SELECT json_array(object, id), updated_at FROM crm_records WHERE _deleted_at IS NULL')
      .raw()
      .all() as [key: string, updatedAt: string][],
  )
  return [...versions].flatMap(([key, known]) => {
    const last = known.at(-1)
    const found = stored.get(key)
    if (known.length < 2 || last === undefined || found === undefined || last.at > before) return []
    if (!TOLD.some(object => key.startsWith(`["${object}"`))) return []
    return Date.parse(found) < Math.floor(Date.parse(last.updatedAt))
      ? [`crm_records ${key} is as of ${found}, and an activity has told of its change at ${last.updatedAt}`]
      : []
  })
}
