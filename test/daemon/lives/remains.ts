import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { TruthKind } from '../../../src/simulator/world/truth.ts'
import { isFields, type Json } from '../../support/exact-json.ts'
import type { Truth } from '../../support/truth.ts'
import { until } from '../../support/until.ts'
import type { DaemonTrial } from '../daemon-trial.ts'

/** What a life leaves in the files of what was withdrawn in it, and what is destroyed before its time. */

/** Items with texts of people, and the field by which one is told from the others. */
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

/** Texts of items that were published once and are no more, and that nothing else says or said. */
export function withdrawnTexts(earlier: readonly Truth[], last: Truth): string[] {
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

/** As part of JSON, without the quotation marks. */
const quoted = (text: string): string => JSON.stringify(text).slice(1, -1)

function textsIn(value: Json | undefined, name = ''): string[] {
  if (typeof value === 'string') return value.length >= LEAST_LENGTH && !STAYS.test(name) ? [value] : []
  if (Array.isArray(value)) return value.flatMap(one => textsIn(one, name))
  return isFields(value) ? Object.entries(value).flatMap(([field, one]) => textsIn(one, field)) : []
}

/** Where these texts stand, as they are or as part of JSON, in any file of the warehouse's folder. */
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

/** Snapshots that the daemon has made and that still lie there. */
export function snapshotsOf({ database }: Pick<DaemonTrial, 'database'>): string[] {
  try {
    return readdirSync(`${database}.snapshots`).filter(name => name.endsWith('.db'))
  } catch {
    return []
  }
}

/** Columns that the API always fills, and that only purging empties. */
const FILLED = [
  ['members', 'name'],
  ['teams', 'name'],
  ['collections', 'name'],
  ['meetings', 'title'],
  ['crm_records', 'fields'],
] as const

/** What was purged or removed although nothing is as old as that. */
export function destroyedEarly(trial: DaemonTrial, snapshots: readonly string[]): string[] {
  const left = new Set(snapshotsOf(trial))
  const purged = FILLED.flatMap(([table, column]) =>
    trial
      .rows(`SELECT id FROM ${table} WHERE _deleted_at IS NOT NULL AND ${column} IS NULL`)
      .map(({ id }) => `${table} ${id} was purged`),
  )
  const removed = snapshots.filter(name => !left.has(name)).map(name => `the snapshot ${name} was removed`)
  return [...purged, ...removed]
}

/** Longer than what was withdrawn is kept, and than a snapshot that may hold it is. */
const A_MONTH_MS = 31 * 86_400_000

/**
 * Lets so much time pass that everything withdrawn must be purged, from the warehouse and from all snapshots. Gives
 * where it still is.
 */
export async function leftAfterPurge(trial: DaemonTrial, texts: readonly string[]): Promise<string[]> {
  // In the first month the age of what was withdrawn may begin to count.
  for (let month = 0; month < 2; month++) {
    // Off all that time: after a maintenance a daemon would only look again minutes later.
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
