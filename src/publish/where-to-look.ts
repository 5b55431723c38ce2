import { DAY_MS } from '../base/clock.ts'
import type { ExportTable } from '../export/tables.ts'
import {
  type ChangedParts,
  type ChangePoint,
  changesSince,
  currentPoint,
} from '../store/changes/changes-since.ts'
import type { Sqlite } from '../store/database/sqlite-types.ts'
import { appliedMigrations } from '../store/migrations/journal.ts'

/**
 * Decides which parts of the tables a publication compares with their digests: those that the writer has noted as
 * changed since the last complete publication. Everything is compared once a day, after a migration, with another version
 * of this program, and where the warehouse is not the one that was published, such as a restored copy. This also finds
 * what other programs have changed.
 */

/** What a complete publication compared. The target keeps it. */
export interface Compared {
  /** The warehouse as it was published. */
  point: ChangePoint
  /** When everything was last compared. */
  fullAt: string
  version: string
  /** The newest migration of the warehouse. */
  migration: number
}

export interface WhereToLook {
  /** Undefined: everything. */
  changed: ChangedParts | undefined
  /** What the target is to keep. Undefined where the warehouse has no point yet. */
  compared: Compared | undefined
}

export interface Look {
  /** What the target has kept. */
  before: Compared | undefined
  /** The instant of this publication. */
  at: string
  version: string
  /** True: compare everything. */
  full: boolean
}

export function whereToLook(db: Sqlite, { before, at, version, full }: Look): WhereToLook {
  const point = currentPoint(db)
  const migration = appliedMigrations(db).at(-1) ?? 0
  const isDue = full || before === undefined || isFullDue(before, { at, version, migration })
  const changed = isDue ? undefined : changesSince(db, before.point)
  const fullAt = changed === undefined || before === undefined ? at : before.fullAt
  return { changed, compared: point && { point, fullAt, version, migration } }
}

/** A clock that was set back counts as a day. */
function isFullDue(
  before: Compared,
  { at, version, migration }: Pick<Compared, 'version' | 'migration'> & { at: string },
): boolean {
  const age = Date.parse(at) - Date.parse(before.fullAt)
  return !(age >= 0 && age < DAY_MS) || before.version !== version || before.migration !== migration
}

/** The parts of a table to compare, as `sync_changed_parts` names them. */
export type Looking = 'all' | readonly string[]

/** @param isShown whether the target has the table as its last complete publication shows it */
export function lookingAt(
  { changed }: Pick<WhereToLook, 'changed'>,
  table: Pick<ExportTable, 'name' | 'view'>,
  isShown: boolean,
): Looking {
  return changed && isShown ? partsToLookAt(table, changed) : 'all'
}

export function partsToLookAt(
  { name, view }: Pick<ExportTable, 'name' | 'view'>,
  changed: ChangedParts,
): Looking {
  if (view === undefined) return changed.get(name) ?? []
  return view.usesClock || changed.size > 0 ? 'all' : []
}
