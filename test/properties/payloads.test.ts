import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { decodeJson, encodeJson } from '../../src/base/json.ts'
import { TABLES } from '../../src/catalog/catalog.ts'
import type { Child, Column, Table } from '../../src/declare/table.ts'
import { compileParser } from '../../src/engine/parse/parse.ts'
import { quote } from '../../src/store/database/sql.ts'
import type { Prepare, Sqlite } from '../../src/store/database/sqlite-types.ts'
import { statementCache } from '../../src/store/database/statements.ts'
import { openWarehouse } from '../../src/store/open-warehouse.ts'
import { createRowWriter } from '../../src/store/rows/payload-writer.ts'
import { createShownFields } from '../../src/store/rows/shown-fields.ts'
import { runs } from '../support/effort.ts'
import { type FindRows, isFields, rebuild, type StoredRow } from '../support/rebuild.ts'

/** Every table with a separate payload. */
const PAYLOAD_TABLES = [...TABLES.values()]
  .filter(({ root, table }) => root === undefined && table.kind === 'entity')
  .map(({ table }) => table)
  .filter(({ columns }) => Object.values(columns).some(({ source }) => source.from === 'payload'))

// Numbers are text, since a JavaScript number would lose digits.
const number = fc
  .oneof(fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }))
  .map(value => JSON.stringify(value))
const oddNumber = fc.constantFrom(
  '-0',
  '0.0',
  '1e400',
  '-1e400',
  '1e-400',
  '12345678901234567890',
  '9007199254740993',
  '0.1234567890123456789',
  '123456789012345678901234567890.5',
  '1E5',
  '3.0',
)
const string = fc.oneof(
  fc.string(),
  fc.constantFrom(
    '',
    ' ',
    '\u0000',
    '\ud800',
    'a\udfff',
    'id',
    '日本語',
    '😀',
    '"',
    '12345678901234567890',
    '__proto__',
  ),
  fc.string({ unit: 'binary' }),
)
const pad = (value: number, digits = 2) => String(value).padStart(digits, '0')
const instant = fc
  .record({
    ms: fc.integer({ min: Date.parse('1950-01-01'), max: Date.parse('2099-12-31') }),
    digits: fc.constantFrom('', '.0', '.5', '.12', '.123', '.1239', '.999999', '.123456789123'),
    zone: fc.constantFrom('Z', 'z', '+00:00', '-00:00', '+09:00', '-11:30', '+05:45'),
    separator: fc.constantFrom('T', 't', ' '),
  })
  .map(
    ({ ms, digits, zone, separator }) =>
      `${new Date(ms).toISOString().slice(0, 19).replace('T', separator)}${digits}${zone}`,
  )
const oddInstant = fc.constantFrom(
  'soon',
  '2026-02-30T00:00:00Z',
  '2026-01-01',
  '2026-01-01T00:00:60Z',
  '2026-01-01T24:00:00Z',
)
const day = fc
  .record({
    year: fc.integer({ min: 1, max: 9999 }),
    month: fc.integer({ min: 1, max: 13 }),
    day: fc.integer({ min: 1, max: 31 }),
  })
  .map(({ year, month, day: date }) => `${pad(year, 4)}-${pad(month)}-${pad(date)}`)
const quoted = (arbitrary: fc.Arbitrary<string>) => arbitrary.map(value => JSON.stringify(value))

/** Any JSON text, with hostile names among the fields. */
const { anything } = fc.letrec<{ anything: string; list: string; object: string }>(tie => ({
  anything: fc.oneof(
    { maxDepth: 3, depthSize: 'small' },
    fc.constantFrom('null', 'true', 'false'),
    number,
    oddNumber,
    quoted(string),
    tie('list'),
    tie('object'),
  ),
  list: fc.array(tie('anything'), { maxLength: 3 }).map(items => `[${items.join(',')}]`),
  object: fc
    .uniqueArray(fc.tuple(fieldName(), tie('anything')), { maxLength: 3, selector: ([name]) => name })
    .map(objectText),
}))

function fieldName(): fc.Arbitrary<string> {
  return fc.oneof(
    fc.constantFrom(
      '__proto__',
      'constructor',
      'toString',
      'isLosslessNumber',
      'value',
      'id',
      'x',
      '',
      '\ud800',
      'a.b',
      '"',
    ),
    fc.string({ maxLength: 5 }),
  )
}

function objectText(fields: readonly (readonly [string, string])[]): string {
  return `{${fields.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`
}

const FITTING: Readonly<Record<Column['kind'], fc.Arbitrary<string>>> = {
  text: quoted(string),
  integer: fc.oneof(
    fc.integer().map(String),
    fc.constantFrom('9007199254740991', '-9007199254740991', '3.0', '1E5'),
  ),
  real: fc.oneof(number, oddNumber),
  boolean: fc.constantFrom('true', 'false'),
  timestamp: quoted(instant),
  date: quoted(day),
  json: anything,
}

/** Mostly values of the declared type, and sometimes any other. */
function columnValue(column: Column, isKey: boolean): fc.Arbitrary<string> {
  const fitting = column.tuple
    ? tupleList(column.tuple)
    : isKey
      ? quoted(fc.string({ minLength: 1, maxLength: 3 }))
      : FITTING[column.kind]
  return fc.oneof(
    { arbitrary: fitting, weight: 12 },
    { arbitrary: fc.constant('null'), weight: 2 },
    { arbitrary: quoted(oddInstant), weight: 1 },
    { arbitrary: anything, weight: 2 },
  )
}

function tupleList(names: readonly string[]): fc.Arbitrary<string> {
  const entry = fc.record(Object.fromEntries(names.map(name => [name, anything])), { requiredKeys: [] })
  return fc
    .array(
      fc.oneof(
        {
          arbitrary: entry.map(fields =>
            objectText(Object.entries(fields).map(([name, value]) => [name, value ?? 'null'])),
          ),
          weight: 8,
        },
        anything,
      ),
      { maxLength: 3 },
    )
    .map(items => `[${items.join(',')}]`)
}

/** Fields as a tree of texts, put together in any order. */
function payloadText(table: Table): fc.Arbitrary<string> {
  const tree = new Map<string, fc.Arbitrary<string>>()
  const nested = new Map<string, Map<string, fc.Arbitrary<string>>>()
  const add = ([first = '', second, ...rest]: readonly string[], value: fc.Arbitrary<string>) => {
    if (rest.length > 0) throw new Error('deeper than any declaration')
    if (second === undefined) tree.set(first, value)
    else nested.set(first, (nested.get(first) ?? new Map()).set(second, value))
  }
  for (const [name, column] of Object.entries(table.columns)) {
    if (column.source.from === 'payload')
      add(column.source.path, columnValue(column, table.key.includes(name)))
    if (column.source.from === 'request' && column.source.path) {
      add(column.source.path, fc.oneof(fc.constant(JSON.stringify(REQUESTED)), anything))
    }
  }
  for (const child of table.children) add(child.list, listText(child))
  for (const [name, fields] of nested) {
    tree.set(
      name,
      fc.oneof({ arbitrary: objectOf(fields, 0.8), weight: 8 }, { arbitrary: anything, weight: 1 }),
    )
  }
  return objectOf(tree, 0.85)
}

function listText(child: Child): fc.Arbitrary<string> {
  const item =
    child.items === 'scalar' ? quoted(fc.string({ minLength: 1, maxLength: 2 })) : payloadText(child.table)
  const items = fc.array(fc.oneof({ arbitrary: item, weight: 10 }, { arbitrary: anything, weight: 1 }), {
    maxLength: 4,
  })
  return fc.oneof(
    { arbitrary: items.map(texts => `[${texts.join(',')}]`), weight: 8 },
    { arbitrary: anything, weight: 1 },
  )
}

function objectOf(fields: ReadonlyMap<string, fc.Arbitrary<string>>, present: number): fc.Arbitrary<string> {
  const declared = [...fields].map(([name, value]) =>
    fc.tuple(
      fc.constant(name),
      value,
      fc.integer({ min: 1, max: 100 }).map(die => die <= present * 100),
      fc.nat(),
    ),
  )
  const unknown = fc.array(fc.tuple(fieldName(), anything, fc.constant(true), fc.nat()), { maxLength: 2 })
  return fc.tuple(fc.tuple(...declared), unknown).map(([known, others]) => {
    const names = new Set(fields.keys())
    const distinct = new Map(
      [...known, ...others.filter(([name]) => !names.has(name))].map(entry => [entry[0], entry]),
    )
    const chosen = [...distinct.values()].filter(([, , isThere]) => isThere)
    return objectText(chosen.sort((one, other) => one[3] - other[3]).map(([name, value]) => [name, value]))
  })
}

const REQUESTED = 'what was asked for'

// ------------------------------------------------------------------------------------------ comparison

/** Items that were not stored: the table and the item as text. */
interface Rejected {
  nameless: Set<string>
  repeated: Set<string>
}

const NOTHING_REJECTED: Rejected = { nameless: new Set(), repeated: new Set() }

/**
 * A payload without what the contract lets go: null is missing, lists and objects without content are missing, a
 * timestamp is the instant cut to the millisecond, and items that were rejected are not there.
 */
function essence(table: Table, payload: Record<string, unknown>, rejected: Rejected): unknown {
  const copy = copied(payload) as Record<string, unknown>
  for (const { source, kind } of Object.values(table.columns)) {
    if (source.from === 'payload' && kind === 'timestamp') alter(copy, source.path, toInstant)
    if (source.from === 'request' && source.path)
      alter(copy, source.path, value => (value === REQUESTED ? null : value))
  }
  for (const child of table.children) {
    alter(copy, child.list, list => {
      if (!Array.isArray(list)) return list
      const seen = new Set<string>()
      const kept = list.filter(item => {
        const received = `${child.table.name} ${encodeJson(item)}`
        if (rejected.nameless.has(received)) return false
        const key = keyText(child, item)
        const repeated = seen.has(key) && rejected.repeated.has(received)
        seen.add(key)
        return !repeated
      })
      const items = kept.map(item => (isFields(item) ? essence(child.table, item, rejected) : item))
      return child.table.key.some(name => child.table.columns[name]?.source.from === 'position')
        ? items
        : sorted(items)
    })
  }
  return withoutNulls(copy, pathsOf(table))
}

/** Paths of objects that only hold columns. */
function pathsOf(table: Table): ReadonlySet<string> {
  const columns = Object.values(table.columns).flatMap(({ source }) =>
    source.from === 'payload' ? [source.path] : [],
  )
  return new Set(
    [...columns, ...table.children.map(({ list }) => list)]
      .filter(path => path.length > 1)
      .map(([first = '']) => first),
  )
}

/** The identity of an item within its list. */
function keyText({ table, items }: Child, item: unknown): string {
  if (items === 'scalar' && typeof item === 'string') return item
  const parts = table.key.map(name => {
    const source = table.columns[name]?.source
    return isFields(item) && source?.from === 'payload'
      ? String(item[source.path[0] ?? '']).toWellFormed()
      : ''
  })
  return JSON.stringify(parts)
}

function sorted(items: readonly unknown[]): unknown[] {
  return [...items].sort((one, other) =>
    encodeJson(sortedFields(one)) < encodeJson(sortedFields(other)) ? -1 : 1,
  )
}

function sortedFields(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortedFields)
  if (!isFields(value)) return value
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map(name => [name, sortedFields(value[name])]),
  )
}

function alter(
  payload: Record<string, unknown>,
  [step = '', ...rest]: readonly string[],
  change: (value: unknown) => unknown,
): void {
  if (!Object.hasOwn(payload, step)) return
  const value = payload[step]
  if (rest.length === 0) payload[step] = change(value)
  else if (isFields(value)) alter(value, rest, change)
}

function toInstant(value: unknown): unknown {
  if (typeof value !== 'string') return value
  const match = /^(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}:\d{2})(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$/.exec(value)
  const [, date = '', time = '', digits = '', zone = ''] = match ?? []
  const whole = Date.parse(`${date}T${time}${zone.toUpperCase()}`)
  const calendar = new Date(`${date}T00:00:00Z`)
  if (!match || Number.isNaN(whole) || !calendar.toISOString().startsWith(date)) return value
  return new Date(whole + Math.floor(Number(`0${digits.slice(0, 4)}`) * 1000 + 1e-6)).toISOString()
}

/** A copy without prototypes, and without the sign of zero. */
function copied(value: unknown): unknown {
  if (value === 0) return 0
  if (Array.isArray(value)) return value.map(copied)
  if (!isFields(value)) return value
  const copy: Record<string, unknown> = Object.create(null)
  for (const name of Object.keys(value)) copy[name] = copied(value[name])
  return copy
}

/** Without fields that are null at the places of columns; values within a column are its own business. */
function withoutNulls(
  payload: Record<string, unknown>,
  flattened: ReadonlySet<string>,
): Record<string, unknown> {
  const copy: Record<string, unknown> = Object.create(null)
  for (const name of Object.keys(payload)) {
    const value = payload[name]
    const inner = flattened.has(name) && isFields(value) ? withoutNulls(value, new Set()) : value
    const empty =
      inner === null || (flattened.has(name) && isFields(inner) && Object.keys(inner).length === 0)
    if (!empty && !(Array.isArray(inner) && inner.length === 0)) copy[name] = inner
  }
  return copy
}

let folder: string
let db: Sqlite
let prepare: Prepare

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'parley-payloads-'))
  db = openWarehouse({ path: join(folder, 'parley.db') })
  db.pragma('synchronous = OFF')
  prepare = statementCache(db)
})

afterAll(() => {
  db.close()
  rmSync(folder, { recursive: true })
})

const find: FindRows = (table, where) => {
  const names = Object.keys(where)
  const condition = names.map(name => `${quote(name)} IS ?`).join(' AND ') || '1'
  return prepare(`SELECT * FROM ${quote(table)} WHERE ${condition}`).all(
    ...Object.values(where),
  ) as StoredRow[]
}

/** Key columns that parley fills must not be empty. */
function fillOwnKey(table: Table, cells: (string | number | null)[]): string[] {
  return Object.entries(table.columns).flatMap(([name, { source, kind }], index) => {
    if (source.from !== 'parley' || !table.key.includes(name)) return []
    cells[index] = kind === 'integer' ? 1 : '1'
    return [name]
  })
}

describe('no part of a payload is lost', () => {
  for (const table of PAYLOAD_TABLES) {
    test(`columns and _extra together keep every payload of ${table.name}`, () => {
      const parse = compileParser(table)
      fc.assert(
        fc.property(payloadText(table), text => {
          db.exec('BEGIN')
          try {
            const payload = decodeJson(text).value as Record<string, unknown>
            const rejected: Rejected = { nameless: new Set(), repeated: new Set() }
            const report = {
              drift: () => undefined,
              reject: (name: string, item: unknown, reason: string) => {
                const kind = reason.startsWith('repeated') ? 'repeated' : 'nameless'
                rejected[kind].add(`${name} ${encodeJson(item)}`)
              },
            }
            const item = parse(payload, report, REQUESTED)
            if (!item) {
              expect(rejected.nameless).toContain(`${table.name} ${encodeJson(payload)}`)
              return
            }
            const filled = fillOwnKey(table, item.cells)
            const write = createRowWriter(prepare, table, createShownFields(prepare), { filled })
            expect(write(item, '2026-01-01T00:00:00.000Z')?.status).toBe('inserted')
            expect(write(item, '2026-01-02T00:00:00.000Z')?.status).toBe('unchanged')
            const [row] = find(table.name, {})
            if (!row) throw new Error('no row')
            const taken = Object.fromEntries(
              Object.entries(item.feedFields).filter(([, value]) => value !== null),
            )
            const back = { ...rebuild(table, row, find), ...taken }
            expect(essence(table, back, NOTHING_REJECTED)).toEqual(essence(table, payload, rejected))
          } finally {
            db.exec('ROLLBACK')
          }
        }),
        { numRuns: runs(150) },
      )
    })
  }
})
