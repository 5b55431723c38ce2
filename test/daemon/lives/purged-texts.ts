import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { TruthKind } from '../../../src/simulator/world/truth.ts'
import { isFields, type Json } from '../../support/exact-json.ts'
import type { Truth } from '../../support/truth.ts'
import { until } from '../../support/until.ts'
import type { DaemonTrial } from '../daemon-trial.ts'

/** Remains of deleted content in the files after a life, and content that was purged too early. */

/** Items with texts of people, and the field that identifies an item. */
const WITH_TEXTS: readonly (readonly [TruthKind, string])[] = [
  ['messages', 'id'],
  ['meetings', 'meeting_id'],
  ['transcripts', 'meeting_id'],
  ['members', 'id'],
  ['teams', 'id'],
  ['collections', 'id'],
  ['crm_records', 'id'],
]

/** Keys, states and times stay when a row is purged. */
const STAYS = /(^|_)(id|ids|at|time|object|kind|role|status|type|visibility|platform|source)$/

const LEAST_LENGTH = 12

/** Texts of items that are no longer published, and that no other item has or had. */
export function deletedTexts(earlier: readonly Truth[], last: Truth): string[] {
  const published = JSON.stringify(last)
  const speakers = new Map<string, Set<string>>()
  for (const truth of earlier) {
    for (const [kind, field] of WITH_TEXTS) {
      for (const item of truth[kind]) {
        for (const text of textsIn(item)) {
          const of = speakers.get(text) ?? new Set()
          speakers.set(text, of.add(String(item[field])))
        }
      }
    }
  }
  const live = new Set(WITH_TEXTS.flatMap(([kind, field]) => last[kind].map(item => String(item[field]))))
  return [...speakers]
    .filter(([text, of]) => of.size === 1 && !live.has([...of][0] ?? '') && !published.includes(quoted(text)))
    .map(([text]) => text)
}

/** The text as part of JSON, without the quotation marks. */
const quoted = (text: string): string => JSON.stringify(text).slice(1, -1)

function textsIn(value: Json | undefined, name = ''): string[] {
  if (typeof value === 'string') return value.length >= LEAST_LENGTH && !STAYS.test(name) ? [value] : []
  if (Array.isArray(value)) return value.flatMap(one => textsIn(one, name))
  return isFields(value) ? Object.entries(value).flatMap(([field, one]) => textsIn(one, field)) : []
}

/** The places of these texts, plain or as part of JSON, in any file of the warehouse's folder. */
export function placesOf(texts: readonly string[], { database }: Pick<DaemonTrial, 'database'>): string[] {
  const files = readdirSync(dirname(database), { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
  return files.flatMap(file => {
    const bytes = readFileSync(file)
    return texts
      .filter(text => bytes.includes(text) || bytes.includes(quoted(text)))
      .map(text => `${JSON.stringify(text.slice(0, 60))} is left in ${file}`)
  })
}

/** The snapshots of the daemon that still exist. */
export function snapshotsOf({ database }: Pick<DaemonTrial, 'database'>): string[] {
  try {
    return readdirSync(`${database}.snapshots`).filter(name => name.endsWith('.db'))
  } catch {
    return []
  }
}

/** Columns that the API always fills, and that only a purge empties. */
const FILLED = [
  ['members', 'name'],
  ['teams', 'name'],
  ['collections', 'name'],
  ['meetings', 'title'],
  ['crm_records', 'fields'],
] as const

/** Content and snapshots that were removed although they are not old enough. */
export function purgedEarly(trial: DaemonTrial, snapshots: readonly string[]): string[] {
  const left = new Set(snapshotsOf(trial))
  const purged = FILLED.flatMap(([table, column]) =>
    trial
      .rows(`SELECT id FROM ${table} WHERE _deleted_at IS NOT NULL AND ${column} IS NULL`)
      .map(({ id }) => `${table} ${id} was purged`),
  )
  const removed = snapshots.filter(name => !left.has(name)).map(name => `the snapshot ${name} was removed`)
  return [...purged, ...removed]
}

/** Longer than deleted rows, and snapshots with them, are kept. */
const A_MONTH_MS = 31 * 86_400_000

/**
 * Lets enough time pass for the purge of all deleted rows from the warehouse and all snapshots. Returns the remaining
 * places.
 */
export async function leftAfterPurge(trial: DaemonTrial, texts: readonly string[]): Promise<string[]> {
  // The age of deleted rows may start to count in the first month.
  for (let month = 0; month < 2; month++) {
    // The daemon is off all that time: after a maintenance it would only check again minutes later.
    await trial.kill()
    await trial.leap(A_MONTH_MS)
    trial.go()
    const since = new Date(trial.localNow()).toISOString()
    await until(
      () => String(trial.rows("SELECT value FROM sync_meta WHERE key = 'maintained_at'")[0]?.['value'] ?? ''),
      at => at >= since || trial.fallen() !== undefined,
    )
  }
  return placesOf(texts, trial)
}
