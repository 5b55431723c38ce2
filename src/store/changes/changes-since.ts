import type { Sqlite } from '../database/sqlite-types.ts'
import { onlyRow } from '../database/statements.ts'
import { readMeta } from '../sync/meta.ts'
import { type ChangePoint, isInHistory, readOpenings } from './openings.ts'

/**
 * Which parts of the tables may have changed since a point in the history of the warehouse. Changes by other programs
 * and by migrations are not noted.
 */

/** By table: its parts, as `part-notes.ts` names them. A table that is not in it has not changed. */
export type ChangedParts = ReadonlyMap<string, readonly string[]>

/** The present point. Undefined while no writer has opened the warehouse since it was created, upgraded or restored. */
export function currentPoint(db: Sqlite): ChangePoint | undefined {
  const [opening] = readOpenings(key => readMeta(db, key)).at(-1) ?? []
  return opening === undefined ? undefined : { opening, change: lastChange(db) }
}

/** Undefined when everything may have changed, since the point is not in the history of this warehouse. */
export function changesSince(db: Sqlite, point: ChangePoint): ChangedParts | undefined {
  const openings = readOpenings(key => readMeta(db, key))
  if (!isInHistory(point, openings, lastChange(db))) return undefined
  const noted = db
    .prepare<unknown[], [table: string, part: string]>(
      'SELECT table_name, part FROM sync_changed_parts WHERE change > ? ORDER BY table_name, part',
    )
    .raw()
    .all(point.change)
  const parts = new Map<string, string[]>()
  for (const [table, part] of noted) parts.set(table, [...(parts.get(table) ?? []), part])
  return parts
}

/** The number of the last change; 0 before the first. */
export const lastChange = (db: Sqlite): number =>
  onlyRow(db.prepare<unknown[], number>('SELECT coalesce(max(change), 0) FROM sync_changed_parts').pluck())
