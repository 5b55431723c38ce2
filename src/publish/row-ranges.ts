import { type ExportTable, sourcesOf } from '../export/export-tables.ts'
import type { Partition } from '../export/partitions.ts'
import { createRowReader, readRows } from '../export/row-queries.ts'
import { cellsOfNote, NO_TIME, standsFor, WHOLE } from '../store/changes/changes-since.ts'
import { quote } from '../store/database/sql.ts'
import type { Sqlite, StoredCell } from '../store/database/sqlite-types.ts'

/**
 * Reads a table in parts, each of which becomes one file: months where the rows have a time, else ranges of the key. A
 * range keeps its bounds while they are keys of rows, so a changed row changes one file.
 */
export interface PartReader {
  /**
   * The rows of `parts`, which are in order. The last cell of each row names its part, which is new after a range was
   * cut or has lost its first row.
   */
  rows(parts: Parts): Iterable<StoredCell[]>
  /** The rows of one part. `parts`: all parts in order, since the next one ends a range. */
  of(part: Partition, parts: readonly Partition[]): Iterable<StoredCell[]>
  /** The parts in which rows may have changed, in their order. @param notes as in `sync_changed_parts` */
  noted(notes: readonly string[]): Parts
  compare(one: Partition, other: Partition): number
}

export type Parts = 'all' | readonly Partition[]

export interface RangeLimits {
  /** In a table that was never published, a new range begins after this number of rows. */
  first: number
  /** A range that has grown to this number of rows is cut. */
  grown: number
}

const RANGE_LIMITS: RangeLimits = { first: 10_000, grown: 20_000 }

/** The first range, which has no lower bound. */
export const FIRST_RANGE = '[]'

/** @param known the parts of the last publication; none for a table that was never published */
export function createPartReader(
  db: Sqlite,
  table: ExportTable,
  known: readonly Partition[],
  limits: RangeLimits = RANGE_LIMITS,
): PartReader {
  return table.rows.time ? monthReader(db, table, known) : rangeReader(db, table, { known, limits })
}

function monthReader(db: Sqlite, table: ExportTable, known: readonly Partition[]): PartReader {
  const { from, of } = createRowReader(db, table)
  return {
    of,
    *rows(parts) {
      if (parts === 'all') yield* from()
      else for (const part of parts) yield* of(part)
    },
    noted(notes) {
      if (notes.length === 0) return []
      if (notes.includes(WHOLE)) return 'all'
      const months = notes.map(note => (note === NO_TIME ? null : note))
      // A row stored before its owner has no time. The new owner gives it one, but only the month of that time is
      // noted.
      const parts = new Set(known.includes(null) ? [...months, null] : months)
      return [...parts].toSorted(compareMonths)
    },
    compare: compareMonths,
  }
}

/** Rows without a time come last. */
function compareMonths(one: Partition, other: Partition): number {
  if (one === null || other === null) return Number(one === null) - Number(other === null)
  return one < other ? -1 : one > other ? 1 : 0
}

/**
 * The name of a range is its lower bound: the key of its first row, as JSON. Keys are unique. Without that row the range
 * gets another name, because a key may be an address and metadata keeps the names. SQL cannot compare with NULL, so no
 * range is cut at a key with a NULL, and a name has the cells before the first NULL.
 */
function rangeReader(
  db: Sqlite,
  table: ExportTable,
  { known, limits }: { known: readonly Partition[]; limits: RangeLimits },
): PartReader {
  const ranges = [FIRST_RANGE, ...known.flatMap(range => (range === FIRST_RANGE ? [] : (range ?? [])))]
  const most = known.length === 0 ? limits.first : limits.grown
  const between = createKeyReader(db, table)
  const rowsOf = (range: Partition, parts: readonly Partition[]) =>
    between(lowerOf(range ?? FIRST_RANGE), lowerOf(parts[parts.indexOf(range) + 1]))
  /** Names the range of each row. The rows and the ranges are in order. */
  function* inRanges(keyed: Iterable<KeyedRow>, of: readonly Partition[]) {
    let current: Partition = of[0] ?? FIRST_RANGE
    let rows = 0
    let place = 0
    for (const { row, key } of keyed) {
      const before = place
      for (; isReached(of[place + 1], key); place += 1) current = of[place + 1] ?? current
      if (rows === 0 || place > before) {
        current = nameByFirst(current, key)
        rows = 0
      }
      if (rows >= most && !key.includes(null)) {
        current = rangeName(key)
        rows = 0
      }
      rows += 1
      row.push(current)
      yield row
    }
  }
  return {
    *rows(parts) {
      // One query for all ranges, since a view is computed for each query.
      if (parts === 'all') yield* inRanges(between(undefined, undefined), ranges)
      else for (const range of parts) yield* inRanges(rowsOf(range, ranges), [range])
    },
    *of(part, parts) {
      for (const { row } of rowsOf(part, parts)) {
        row.push(part)
        yield row
      }
    },
    noted(notes) {
      if (notes.includes(WHOLE)) return 'all'
      const prefixes = notes.map(cellsOfNote)
      return ranges.filter((range, place) => {
        const bounds = [lowerOf(range), lowerOf(ranges[place + 1])] as const
        return prefixes.some(prefix => mayHold(bounds, prefix))
      })
    },
    compare: (one, other) => compareKeys(lowerOf(one) ?? [], lowerOf(other) ?? []),
  }
}

/** Whether a row with this key belongs to the range or to a later one. */
function isReached(range: Partition | undefined, key: readonly StoredCell[]): boolean {
  const lower = lowerOf(range)
  return lower !== undefined && compareKeys(key, lower) >= 0
}

/** @param key the key of the first row */
function nameByFirst(range: Partition, key: readonly StoredCell[]): Partition {
  const lower = lowerOf(range ?? FIRST_RANGE)
  if (lower === undefined || compareKeys(lower, key.slice(0, lower.length)) === 0) return range
  const end = key.indexOf(null)
  return rangeName(end < 0 ? key : key.slice(0, end))
}

/** The ranges whose names are keys that no row has. */
export function rangesOfLostKeys(
  db: Sqlite,
  { rows: { from, order, time } }: Pick<ExportTable, 'rows'>,
  ranges: readonly Partition[],
): readonly Partition[] {
  if (time) return []
  return ranges.filter(range => {
    const key = lowerOf(range ?? FIRST_RANGE)
    if (key === undefined) return false
    const where = comparison(order, '=', key)
    return db.prepare<unknown[]>(`SELECT 1 FROM ${from} WHERE ${where} LIMIT 1`).get(...key) === undefined
  })
}

/** SQL that compares the beginning of a row's key with parameters. */
const comparison = (order: string, operator: '>=' | '=', { length }: readonly StoredCell[]): string =>
  `(${order.split(', ').slice(0, length).join(', ')}) ${operator} (${Array(length).fill('?').join(', ')})`

interface KeyedRow {
  row: StoredCell[]
  key: readonly StoredCell[]
}

/** Reads the rows from the key `lower`, included, to the key `upper`, excluded. */
function createKeyReader(db: Sqlite, table: ExportTable) {
  const { from, order } = table.rows
  const cells = sourcesOf(table.columns).map(column => `t.${quote(column)}`)
  const select = `SELECT ${cells.join(', ')}, ${order} FROM ${from}`
  return function* (lower: Bound, upper: Bound): Iterable<KeyedRow> {
    const where = lower ? `WHERE ${comparison(order, '>=', lower)}` : ''
    for (const row of readRows(db, `${select} ${where} ORDER BY ${order}`, lower)) {
      const key = row.splice(cells.length)
      if (upper && compareKeys(key, upper) >= 0) return
      yield { row, key }
    }
  }
}

/**
 * The key at which a range begins or ends. Undefined: the first range has no lower bound, and the last no upper bound.
 */
type Bound = readonly StoredCell[] | undefined

const lowerOf = (range: Partition | undefined): Bound =>
  range == null || range === FIRST_RANGE ? undefined : keyOf(range)

/** Whether a range may hold keys that begin with a note. */
function mayHold(
  [lower, upper]: readonly [lower: Bound, upper: Bound],
  noted: readonly NotedCell[],
): boolean {
  return (!lower || placeOf(lower, noted) <= 0) && (!upper || placeOf(upper, noted) >= 0)
}

type NotedCell = string | number

/** Where a key is: before all keys that begin with the note (-1), after all of them (1), or neither (0). */
function placeOf(key: readonly StoredCell[], noted: readonly NotedCell[]): number {
  for (const [place, cell] of noted.entries()) {
    const mine = key[place] ?? null
    if (place === noted.length - 1 && standsFor(cell, mine)) return 0
    const order = compared(mine, cell)
    if (order !== 0) return order
  }
  return 0
}

/** An integer is written as a list, so that it cannot be confused with a text. */
function rangeName(key: readonly StoredCell[]): string {
  return JSON.stringify(key.map(cell => (typeof cell === 'bigint' ? [String(cell)] : cell)))
}

function keyOf(range: string): StoredCell[] {
  const parts = JSON.parse(range) as (string | number | null | [string])[]
  return parts.map(part => (Array.isArray(part) ? BigInt(part[0]) : part))
}

/** Compares two keys in the order of SQLite: NULL, then numbers, then texts by their bytes. */
function compareKeys(key: readonly StoredCell[], other: readonly StoredCell[]): number {
  for (const [place, cell] of key.entries()) {
    const order = compared(cell, other[place] ?? null)
    if (order !== 0) return order
  }
  return key.length - other.length
}

const RANKS: Readonly<Record<string, number>> = { object: 0, bigint: 1, number: 1, string: 2 }

function compared(one: StoredCell, other: StoredCell): number {
  const ranks = (RANKS[typeof one] ?? 0) - (RANKS[typeof other] ?? 0)
  if (ranks !== 0 || one === null || other === null) return ranks
  if (typeof one === 'string' && typeof other === 'string')
    return Buffer.compare(Buffer.from(one, 'utf8'), Buffer.from(other, 'utf8'))
  return one < other ? -1 : one > other ? 1 : 0
}
