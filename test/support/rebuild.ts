import { decodeJson, exactNumber } from '../../src/base/json.ts'
import type { Child, Column, Table } from '../../src/declare/table.ts'

/**
 * The warehouse contract promises that columns and `_extra` together lose no part of a payload. `rebuild` converts a
 * row back to its payload by the declaration alone. Tests compare it with the payload that was sent.
 */

export type StoredRow = Readonly<Record<string, string | number | null>>

/** The rows of a table that have the given values in some columns. */
export type FindRows = (table: string, where: Readonly<Record<string, unknown>>) => readonly StoredRow[]

type Fields = Record<string, unknown>

export function rebuild(table: Table, row: StoredRow, find: FindRows): Fields {
  const payload: Fields = Object.create(null)
  for (const [name, column] of Object.entries(table.columns)) {
    const value = row[name] ?? null
    if (value !== null) putColumn(payload, column, value)
  }
  for (const child of table.children) putList(payload, child, row, find)
  const extra = row['_extra']
  if (typeof extra === 'string') overlay(payload, decodeJson(extra).value as Fields)
  return payload
}

function putColumn(payload: Fields, column: Column, value: string | number): void {
  if (column.source.from === 'request' && column.source.path) put(payload, column.source.path, value)
  if (column.source.from === 'payload') put(payload, column.source.path, fromCell(column, value))
}

function fromCell({ kind, tuple }: Column, value: string | number): unknown {
  if (kind === 'boolean') return value === 1
  if (kind !== 'json') return value
  const json = decodeJson(String(value)).value
  if (!tuple || !Array.isArray(json)) return json
  return json.map(cells => Object.fromEntries(tuple.map((name, index) => [name, cells[index]])))
}

function putList(payload: Fields, child: Child, row: StoredRow, find: FindRows): void {
  const inherited = Object.entries(child.table.columns).flatMap(([name, { source }]) =>
    source.from === 'parent' ? [[name, row[source.column]] as const] : [],
  )
  const rows = find(child.table.name, Object.fromEntries(inherited))
  if (rows.length === 0) return
  const position = Object.entries(child.table.columns).find(
    ([, { source }]) => source.from === 'position',
  )?.[0]
  const ordered = position ? [...rows].sort((a, b) => Number(a[position]) - Number(b[position])) : rows
  const items = ordered.map(stored => {
    const item = rebuild(child.table, stored, find)
    return child.items === 'scalar' && Object.keys(item).length === 1 ? item['value'] : item
  })
  put(payload, child.list, items)
}

function put(payload: Fields, path: readonly string[], value: unknown): void {
  const [step = '', ...rest] = path
  if (rest.length === 0) {
    payload[step] = value
    return
  }
  const inner = (payload[step] ?? Object.create(null)) as Fields
  payload[step] = inner
  put(inner, rest, value)
}

/** Values in `_extra` win, field by field when both sides are objects. */
function overlay(payload: Fields, extra: Fields): void {
  for (const name of Object.keys(extra)) {
    const value = extra[name]
    const known = payload[name]
    if (isFields(known) && isFields(value)) overlay(known, value)
    else payload[name] = value
  }
}

export function isFields(value: unknown): value is Fields {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && exactNumber(value) === undefined
  )
}
