import { DAY_MS } from '../base/clock.ts'
import type { ExportTable } from '../export/export-tables.ts'
import {
  type ChangedParts,
  type ChangePoint,
  changesSince,
  currentPoint,
} from '../store/changes/changes-since.ts'
import { DIVISIONS, SOURCES_OF_VIEWS } from '../store/changes/divisions.ts'
import { quote } from '../store/database/sql.ts'
import type { Sqlite } from '../store/database/sqlite-types.ts'
import { appliedMigrations } from '../store/migrations/journal.ts'

/**
 * Decides which parts of the tables (months or ranges of keys) a publication compares by their digests: those noted as
 * changed since the last complete publication. Everything is compared once a day, after a migration, by another version
 * of this program, and if the warehouse is not the one that was published, such as a restored copy. This also finds
 * what other programs have changed.
 */

/** What a complete publication compared. The target keeps it. */
export interface Compared {
  /** The state of the warehouse that was published. */
  point: ChangePoint
  /** When everything was last compared. */
  fullAt: string
  version: string
  /** The newest migration of the warehouse. */
  migration: number
}

export interface PartsComparison {
  /** Undefined: everything is compared. */
  changed: ChangedParts | undefined
  /** What the target keeps. Undefined while the warehouse has no `ChangePoint`. */
  compared: Compared | undefined
}

export interface PartsComparisonInput {
  /** What the last complete publication compared. */
  before: Compared | undefined
  /** The instant of this publication. */
  at: string
  version: string
  /** True: compare everything. */
  full: boolean
}

export function comparisonWith(
  db: Sqlite,
  { before, at, version, full }: PartsComparisonInput,
): PartsComparison {
  const point = currentPoint(db)
  const migration = appliedMigrations(db).at(-1) ?? 0
  const isDue = full || before === undefined || isFullDue(before, { at, version, migration })
  const changed = isDue ? undefined : changesSince(db, before.point)
  const fullAt = changed === undefined || before === undefined ? at : before.fullAt
  return { changed, compared: point && { point, fullAt, version, migration } }
}

/** If the clock was set back, a day counts as over. */
function isFullDue(
  before: Compared,
  { at, version, migration }: Pick<Compared, 'version' | 'migration'> & { at: string },
): boolean {
  const age = Date.parse(at) - Date.parse(before.fullAt)
  return !(age >= 0 && age < DAY_MS) || before.version !== version || before.migration !== migration
}

/** The parts of a table to compare, as `sync_changed_parts` names them. */
export type PartsToCompare = 'all' | readonly string[]

/**
 * A view is compared as a whole if a table that it reads has or may have changed. Changes of the tables of parley's
 * state, from which views take the time, are not noted, so a view that reads one of them is always compared.
 */
export function partsToCompare(
  db: Sqlite,
  { name, isView }: Pick<ExportTable, 'name' | 'isView'>,
  changed: ChangedParts,
): PartsToCompare {
  if (!isView) return changed.get(name) ?? []
  const typed = db
    .prepare<unknown[], string>('SELECT table_name FROM crm_objects WHERE table_name IS NOT NULL')
    .pluck()
    .all()
  const noted = new Set([...DIVISIONS.keys(), ...SOURCES_OF_VIEWS, ...typed])
  return tablesReadBy(db, name).some(table => changed.has(table) || !noted.has(table)) ? 'all' : []
}

/** The tables that SQLite opens for a view of the file, through other views too. A copy may have the view's name. */
function tablesReadBy(db: Sqlite, view: string): string[] {
  const tables = new Map(
    db
      .prepare<unknown[], [number, string]>('SELECT rootpage, tbl_name FROM sqlite_master WHERE rootpage > 0')
      .raw()
      .all(),
  )
  const steps = db
    .prepare<unknown[], { opcode: string; p2: number; p3: number }>(
      `EXPLAIN SELECT * FROM main.${quote(view)}`,
    )
    .all()
  // p3 is the number of the database: 0 is the file, 1 has the temporary tables.
  return steps.flatMap(({ opcode, p2, p3 }) =>
    opcode === 'OpenRead' && p3 === 0 ? (tables.get(p2) ?? []) : [],
  )
}
