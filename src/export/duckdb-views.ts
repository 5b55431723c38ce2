import { safeMultilineText } from '../base/safe-text.ts'
import { ownerOf, type PlacedTable, TABLES } from '../catalog/catalog.ts'
import { literal, quote } from '../store/database/sql.ts'
import type { View } from '../store/views/replace.ts'
import { liveViewOf } from '../store/views/views.ts'
import type { ManifestTable } from './manifest.ts'

/**
 * `views.sql`: an export as views in DuckDB, in which the questions of `parley_questions` run. No statement of the
 * script fails, since some programs stop at the first failure: a view is created only if all that it reads is exported.
 */

export const VIEWS_SCRIPT = 'views.sql'

/** Settings of a session in which DuckDB answers as SQLite does. */
export const LIKE_SQLITE = [
  '-- The day of a timestamp is that of UTC, as in the warehouse. Days in tables for reports are those of',
  '-- reporting.time_zone.',
  "SET TimeZone = 'UTC';",
  '-- NULL comes first in ascending order, as in SQLite.',
  "SET default_null_order = 'nulls_first_on_asc_last_on_desc';",
]

const PREFACE = [
  '-- A view in DuckDB for each table of this export, its live_ view without deleted rows, and the views of deals.',
  '-- The paths are relative to the folder of this file. Run it there: duckdb -init views.sql',
  "-- Elsewhere, run this first: SET file_search_path = '<folder>';",
  '-- Run it in every session, and again after an export, which may have added and removed files.',
  ...LIKE_SQLITE,
]

/** The views of deals call this function of SQLite. */
const JULIANDAY = 'CREATE OR REPLACE MACRO julianday(t) AS julian(CAST(t AS TIMESTAMP));'

/** @param deals the views of deals; none where the export lacks a table */
export function duckdbViews(tables: readonly ManifestTable[], deals: readonly View[]): string {
  const exported = new Set(tables.map(({ table }) => table))
  const statements = [
    ...tables.map(tableView),
    ...tables.flatMap(table => liveView(table, exported)),
    JULIANDAY,
    ...deals.map(replacing),
  ]
  // parley gives no names with control characters, but earlier versions did.
  const printed = statements.filter(sql => safeMultilineText(sql) === sql)
  return `${[...PREFACE, '', ...printed].join('\n')}\n`
}

/** Files may have different columns: after `--since`, earlier months may lack a column of a later version of parley. */
function tableView({ table, files }: ManifestTable): string {
  const paths = files.map(({ path }) => literal(path)).join(', ')
  const read = `read_parquet([${paths}], hive_partitioning = false, union_by_name = true)`
  return `CREATE OR REPLACE VIEW ${quote(table)} AS SELECT * FROM ${read};`
}

/** For a declared table, the SQL of the warehouse is valid in DuckDB as well. */
function liveView({ table, resource }: ManifestTable, exported: ReadonlySet<string>): string[] {
  const placed = TABLES.get(table)
  if (placed) return isWhole(placed, exported) ? [replacing(liveViewOf(placed))] : []
  if (resource === null) return []
  const rows = `SELECT * EXCLUDE (_deleted_at) FROM ${quote(table)} WHERE _deleted_at IS NULL`
  return [`CREATE OR REPLACE VIEW ${quote(`live_${table}`)} AS ${rows};`]
}

function isWhole(placed: PlacedTable, exported: ReadonlySet<string>): boolean {
  const owner = ownerOf(placed)
  return owner === undefined || exported.has(owner.table)
}

/** The statement of a view of the warehouse whose SQL is valid in DuckDB as well. */
export const replacing = ({ sql }: View): string =>
  `${sql.replace(/^CREATE VIEW/, 'CREATE OR REPLACE VIEW')};`
