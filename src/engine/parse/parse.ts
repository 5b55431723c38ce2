import { isDay, readInstant } from '../../base/instant.ts'
import { encodeJson, exactNumber, isJsonObject } from '../../base/json.ts'
import { canonicalId, withCanonicalIds } from '../../base/uuid.ts'
import type { Cell, ParsedItem, ParsedRow, ReadCell } from '../../declare/parsed-item.ts'
import type { Child, Column, ColumnKind, Table } from '../../declare/table.ts'
import { type ParseReport, unknownFieldName } from './drift.ts'

/**
 * Turns payloads into rows by the declarations alone, without I/O. A field without a column, or with a value that does
 * not fit its column, goes to `_extra`. An item without identity is rejected. Nothing is dropped, except an entry of a
 * list that repeats an earlier one without a difference.
 */

/** Compiled once per table. `requested`: the scope or key that the request named. */
export type ItemParser = (item: unknown, report: ParseReport, requested?: string) => ParsedItem | undefined

interface Leaf {
  index: number
  column: Column
}

/** What the declarations say about one place of a payload. */
interface PayloadNode {
  leaf?: Leaf
  list?: CompiledChild
  taken?: true
  /** Index of a column that is filled from the request. The payload should hold the same value here. */
  requested?: number
  fields: Map<string, PayloadNode>
}

interface CompiledTable {
  table: Table
  columns: readonly (readonly [name: string, column: Column])[]
  fields: Map<string, PayloadNode>
  key: readonly number[]
  /** Columns that follow from other cells of the row. */
  derived: readonly { index: number; value: (cell: ReadCell) => Cell }[]
  children: readonly CompiledChild[]
}

interface CompiledChild extends CompiledTable {
  child: Child
}

interface Work {
  report: ParseReport
  children: Map<string, ParsedRow[]>
  taken: Record<string, unknown>
  requested: string | undefined
  /** The key of the item's own row, once it is known. */
  within: string | undefined
}

interface RowPlace {
  table: CompiledTable
  cells: Cell[]
  work: Work
  path: string
  /**
   * These functions parse the row's lists. They run after all cells are filled: child rows repeat the row's key, which
   * may come after the lists in the payload.
   */
  lists: (() => void)[]
}

export function compileParser(table: Table): ItemParser {
  const compiled = compile(table)
  return (item, report, requested) => {
    const work: Work = { report, children: emptyChildren(compiled), taken: {}, requested, within: undefined }
    const row = parseRow(compiled, item, work, { position: 0 })
    return row && { ...row, children: work.children, feedFields: work.taken }
  }
}

function compile(table: Table): CompiledTable {
  const columns = Object.entries(table.columns)
  const fields = new Map<string, PayloadNode>()
  columns.forEach(([, column], index) => {
    if (column.source.from === 'payload') nodeAt(fields, column.source.path).leaf = { index, column }
    if (column.source.from === 'request' && column.source.path) {
      nodeAt(fields, column.source.path).requested = index
    }
  })
  for (const field of table.feedFields) nodeAt(fields, [field]).taken = true
  const children = table.children.map(child => ({ ...compile(child.table), child }))
  for (const child of children) nodeAt(fields, child.child.list).list = child
  const key = table.key.map(name => columns.findIndex(([column]) => column === name))
  const derived = columns.flatMap(([, { source }], index) =>
    source.from === 'row' ? [{ index, value: source.value }] : [],
  )
  return { table, columns, fields, key, derived, children }
}

function nodeAt(fields: Map<string, PayloadNode>, path: readonly string[]): PayloadNode {
  let node: PayloadNode = { fields }
  for (const step of path) {
    const next: PayloadNode = node.fields.get(step) ?? { fields: new Map() }
    node.fields.set(step, next)
    node = next
  }
  return node
}

function emptyChildren(
  compiled: CompiledTable,
  into = new Map<string, ParsedRow[]>(),
): Map<string, ParsedRow[]> {
  for (const child of compiled.children) {
    into.set(child.table.name, [])
    emptyChildren(child, into)
  }
  return into
}

interface RowContext {
  position: number
  /** The list's item, where it differs from the object that is parsed. */
  received?: unknown
  above?: { table: CompiledTable; cells: readonly Cell[] }
}

function parseRow(
  compiled: CompiledTable,
  item: unknown,
  work: Work,
  setting: RowContext,
): ParsedRow | undefined {
  if (!isJsonObject(item)) {
    reject(compiled, item, 'not an object', work)
    return undefined
  }
  const cells = compiled.columns.map(([, column]) => givenCell(column, work, setting))
  const lists: RowPlace['lists'] = []
  const extra = parseFields(compiled.fields, item, { table: compiled, cells, work, path: '', lists })
  const missing = compiled.key.find(index => !isIdentity(compiled.columns[index]?.[1], cells[index]))
  if (missing !== undefined) {
    const received = 'received' in setting ? setting.received : item
    reject(compiled, received, `no identity: ${compiled.columns[missing]?.[0]} is missing or not text`, work)
    return undefined
  }
  for (const { index, value } of compiled.derived) {
    cells[index] = value(name => cells[compiled.columns.findIndex(([column]) => column === name)] ?? null)
  }
  work.within ??= String(cells[compiled.key.at(-1) ?? 0])
  for (const parse of lists) parse()
  return { cells, extra: extra && encodeJson(extra) }
}

/** The reason of an entry of a list names its row: the entry alone, such as `null`, does not say where it was. */
function reject(
  { table, child }: CompiledTable & Partial<CompiledChild>,
  item: unknown,
  reason: string,
  { report, within }: Work,
): void {
  const place = child && within !== undefined ? ` (in ${child.list.join('.')} of ${within})` : ''
  report.reject(table.name, item, `${reason}${place}`, within)
}

/** The value of a cell that does not come from the payload; null for all other cells. */
function givenCell({ source }: Column, work: Work, { position, above }: RowContext): Cell {
  if (source.from === 'position') return position
  if (source.from === 'request') return work.requested ?? null
  if (source.from !== 'parent' || !above) return null
  const index = above.table.columns.findIndex(([name]) => name === source.column)
  return above.cells[index] ?? null
}

/** Identity is a non-empty string or a number. A key that parley makes is filled in later. */
function isIdentity(column: Column | undefined, cell: Cell | undefined): boolean {
  if (column?.source.from === 'parley') return true
  return typeof cell === 'number' || (typeof cell === 'string' && cell !== '')
}

/** Fills the cells. Returns the fields that are left over, or null when there are none. */
function parseFields(
  fields: Map<string, PayloadNode>,
  item: Record<string, unknown>,
  place: RowPlace,
): Record<string, unknown> | null {
  let extra: Record<string, unknown> | null = null
  for (const name of Object.keys(item)) {
    const value = item[name]
    const node = fields.get(name)
    const rest = node ? parseValue(node, name, value, place) : value
    if (rest === PLACED) continue
    // Without a prototype, a field called __proto__ is a field like any other.
    extra ??= Object.create(null) as Record<string, unknown>
    extra[name] = rest
    // When only some fields of an object are left over, they were already reported one by one.
    if (!node || rest === value) {
      place.work.report.drift(
        place.table.table.name,
        node ? place.path + name : unknownFieldName(place.path, name),
        node ? 'unexpected type' : 'unknown field',
      )
    }
  }
  return extra
}

/** Means that nothing of a value is left over. */
const PLACED = Symbol('placed')

function parseValue(node: PayloadNode, name: string, value: unknown, place: RowPlace): unknown {
  if (node.taken) {
    place.work.taken[name] = value
    return PLACED
  }
  if (value === null || value === undefined) return PLACED
  if (node.leaf) return fillCell(node.leaf, value, place)
  if (node.list) {
    const { list } = node
    if (!Array.isArray(value)) return value
    place.lists.push(() => parseList(list, value, place))
    return PLACED
  }
  if (node.requested !== undefined) return isSameId(value, place.cells[node.requested]) ? PLACED : value
  if (!isJsonObject(value)) return value
  return parseFields(node.fields, value, { ...place, path: `${place.path}${name}.` }) ?? PLACED
}

function fillCell({ index, column }: Leaf, value: unknown, place: RowPlace): unknown {
  const converted = column.tuple ? toTuples(column.tuple, value) : CONVERT[column.kind](value)
  if (converted === undefined) return value
  place.cells[index] = column.hasIds ? canonical(column.kind, converted.cell) : converted.cell
  return converted.exact ? PLACED : value
}

function canonical(kind: ColumnKind, cell: Cell): Cell {
  if (typeof cell !== 'string') return cell
  return kind === 'json' ? withCanonicalIds(cell) : canonicalId(cell)
}

function isSameId(value: unknown, requested: Cell | undefined): boolean {
  return typeof value === 'string' && canonicalId(value) === requested
}

function parseList(compiled: CompiledChild, list: readonly unknown[], place: RowPlace): void {
  const rows = place.work.children.get(compiled.table.name) ?? []
  const seen = new Map<string, ParsedRow>()
  list.forEach((item, position) => {
    const fields = compiled.child.items === 'scalar' && !isJsonObject(item) ? { value: item } : item
    const row = parseRow(compiled, fields, place.work, { position, above: place, received: item })
    if (!row) return
    const key = compiled.key.map(index => row.cells[index]).join('\u0000')
    const stored = seen.get(key)
    if (stored === undefined) {
      seen.set(key, row)
      rows.push(row)
    } else if (!isEqual(stored, row)) {
      reject(compiled, item, 'repeated within its parent', place.work)
    }
  })
}

const isEqual = (one: ParsedRow, other: ParsedRow): boolean =>
  one.extra === other.extra && one.cells.every((cell, index) => cell === other.cells[index])

/** `exact` is false when the cell only approximates the value, which then goes to `_extra` too. */
interface Converted {
  cell: Cell
  exact: boolean
}

const exactly = (cell: Cell): Converted => ({ cell, exact: true })

const CONVERT: Readonly<Record<ColumnKind, (value: unknown) => Converted | undefined>> = {
  text: value => {
    if (typeof value !== 'string') return undefined
    // Half a surrogate pair has no UTF-8 form: the database would return another string.
    return value.isWellFormed() ? exactly(value) : { cell: value.toWellFormed(), exact: false }
  },
  integer: value => (Number.isSafeInteger(value) ? exactly(value as number) : undefined),
  real: value => {
    if (typeof value === 'number' && Number.isFinite(value)) return exactly(value)
    const near = Number(exactNumber(value)?.text ?? Number.NaN)
    return Number.isFinite(near) ? { cell: near, exact: false } : undefined
  },
  boolean: value => (typeof value === 'boolean' ? exactly(value ? 1 : 0) : undefined),
  timestamp: value => {
    if (typeof value !== 'string') return undefined
    // A day without a time is stored as its midnight, so that it sorts among instants.
    if (isDay(value)) return { cell: `${value}T00:00:00.000Z`, exact: false }
    const instant = readInstant(value)
    return instant && { cell: instant.text, exact: instant.exact }
  },
  date: value => (typeof value === 'string' && isDay(value) ? exactly(value) : undefined),
  json: value => exactly(encodeJson(value)),
}

/**
 * Objects as arrays of their plain values in a fixed order; inexact when an object has other fields or nested values. A
 * view unfolds the arrays in SQL, where a single value that is nested too deep would fail the whole query.
 */
function toTuples(names: readonly string[], value: unknown): Converted | undefined {
  if (!Array.isArray(value)) return undefined
  const exact = value.every(
    item =>
      isJsonObject(item) &&
      Object.entries(item).every(([name, inner]) => names.includes(name) && isPlain(inner)),
  )
  const plain = (inner: unknown) => (isPlain(inner) ? (inner ?? null) : null)
  const tuples = value.map(item => names.map(name => (isJsonObject(item) ? plain(item[name]) : null)))
  return { cell: encodeJson(tuples), exact }
}

function isPlain(value: unknown): boolean {
  return typeof value !== 'object' || value === null || exactNumber(value) !== undefined
}
