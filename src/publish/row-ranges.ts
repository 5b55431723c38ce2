import type { StoredCell } from '../export/parquet-types.ts'
import { createRowReader } from '../export/rows.ts'
import { type ExportTable, sourcesOf } from '../export/tables.ts'
import { quote } from '../store/database/sql.ts'
import type { Sqlite } from '../store/database/sqlite-types.ts'

/**
 * Reads a table in parts, each of which becomes one file: months where the rows have a time, else ranges of the key. A
 * range keeps its bounds, so a changed row changes one file.
 */
export interface PartReader {
  /** All rows. The last cell of each row is its part. */
  all(): Iterable<StoredCell[]>
  /** The rows of one part, in the same form. */
  of(part: string | null, parts: readonly (string | null)[]): Iterable<StoredCell[]>
}

export interface RangeLimits {
  /** In a table that was never published, a new range begins after this number of rows. */
  first: number
  /** A range that has grown to this number of rows is cut. */
  grown: number
}

const RANGE_LIMITS: RangeLimits = { first: 10_000, grown: 20_000 }

/** The first range, which has no lower bound. */
export const FIRST_RANGE = '[]'

/** @param known the ranges of the last publication; empty for a table that was never published */
export function createPartReader(
  db: Sqlite,
  table: ExportTable,
  known: readonly string[],
  limits: RangeLimits = RANGE_LIMITS,
): PartReader {
  return table.rows.time ? monthReader(db, table) : rangeReader(db, table, { known, limits })
}

function monthReader(db: Sqlite, table: ExportTable): PartReader {
  const reader = createRowReader(db, table)
  return {
    *all() {
      yield* reader.withTime({})
      yield* reader.withoutTime()
    },
    of: month => (month === null ? reader.withoutTime() : reader.withTime({ from: month, to: month })),
  }
}

/**
 * The name of a range is its lower bound: the key of its first row, as JSON. Keys are unique. No range begins at a key
 * with a NULL, with which SQL cannot compare.
 */
function rangeReader(
  db: Sqlite,
  table: ExportTable,
  { known, limits }: { known: readonly string[]; limits: RangeLimits },
): PartReader {
  const { from, order } = table.rows
  const cells = sourcesOf(table.columns).map(column => `t.${quote(column)}`)
  const width = cells.length
  const select = `SELECT ${cells.join(', ')}, ${order} FROM ${from}`
  const read = (where: string, bound: readonly StoredCell[]) =>
    db
      .prepare<unknown[]>(`${select} ${where} ORDER BY ${order}`)
      .raw()
      .safeIntegers()
      .iterate(...bound) as Iterable<StoredCell[]>
  const most = known.length === 0 ? limits.first : limits.grown
  return {
    *all() {
      const bounds = known
        .filter(bound => bound !== FIRST_RANGE)
        .map(bound => ({ range: bound, lower: keyOf(bound) }))
      let range = FIRST_RANGE
      let rows = 0
      for (const row of read('', [])) {
        const key = row.splice(width)
        while (bounds[0] !== undefined && isAtLeast(key, bounds[0].lower)) {
          range = bounds.shift()?.range ?? range
          rows = 0
        }
        if (rows >= most && !key.includes(null)) {
          range = rangeName(key)
          rows = 0
        }
        rows += 1
        row.push(range)
        yield row
      }
    },
    *of(part, parts) {
      const range = part ?? FIRST_RANGE
      const next = parts[parts.indexOf(part) + 1]
      const lower = range === FIRST_RANGE ? [] : keyOf(range)
      const upper = next == null ? undefined : keyOf(next)
      const where = lower.length === 0 ? '' : `WHERE (${order}) >= (${lower.map(() => '?').join(', ')})`
      for (const row of read(where, lower)) {
        const key = row.splice(width)
        if (upper && isAtLeast(key, upper)) return
        row.push(range)
        yield row
      }
    },
  }
}

/** A number is written as a list, so that it cannot be confused with a text. */
function rangeName(key: readonly StoredCell[]): string {
  return JSON.stringify(key.map(cell => (typeof cell === 'bigint' ? [String(cell)] : cell)))
}

function keyOf(range: string): StoredCell[] {
  const parts = JSON.parse(range) as (string | number | null | [string])[]
  return parts.map(part => (Array.isArray(part) ? BigInt(part[0]) : part))
}

/** In the order of SQLite: NULL, then numbers, then texts by their bytes. */
function isAtLeast(key: readonly StoredCell[], bound: readonly StoredCell[]): boolean {
  for (const [place, cell] of key.entries()) {
    const order = compared(cell, bound[place] ?? null)
    if (order !== 0) return order > 0
  }
  return true
}

const RANKS: Readonly<Record<string, number>> = { object: 0, bigint: 1, number: 1, string: 2 }

function compared(one: StoredCell, other: StoredCell): number {
  const ranks = (RANKS[typeof one] ?? 0) - (RANKS[typeof other] ?? 0)
  if (ranks !== 0 || one === null || other === null) return ranks
  if (typeof one === 'string' && typeof other === 'string')
    return Buffer.compare(Buffer.from(one, 'utf8'), Buffer.from(other, 'utf8'))
  return one < other ? -1 : one > other ? 1 : 0
}
