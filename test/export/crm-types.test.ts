import { join } from 'node:path'
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { decodeJson } from '../../src/base/json.ts'
import { readCrmTablesAt } from '../../src/store/dictionary/fill-dictionary.ts'
import { openDatabase } from '../../src/store/file/open.ts'
import { type TemporaryStore, temporaryStore } from '../store/temporary-store.ts'
import { makeDuckdbViews } from '../support/duckdb-views.ts'
import { share } from '../support/effort.ts'
import { emptyTarget, exportTo } from './exporting.ts'

/** The types of CRM columns in Parquet files and in DuckDB's views. They depend on the field's type alone. */

const FIELDS = [
  ['amount', 'CURRENCY'],
  // A custom field with the name that parley gives to the column of digits.
  ['AMOUNT_exact', 'TEXT'],
  ['closes', 'DATE'],
  ['seen', 'DATETIME'],
  ['won', 'BOOLEAN'],
  ['note', 'TEXT'],
  ['owner', 'RELATION'],
  ['orders', 'NUMBER', 'ONE_TO_MANY'],
] as const

const TYPES = {
  id: 'VARCHAR',
  amount: 'DOUBLE',
  amount_exact_2: 'VARCHAR',
  AMOUNT_exact: 'VARCHAR',
  closes: 'DATE',
  seen: 'TIMESTAMP WITH TIME ZONE',
  won: 'BOOLEAN',
  note: 'VARCHAR',
  owner: 'VARCHAR',
  orders: 'DOUBLE',
  orders_exact: 'VARCHAR',
  created_at: 'TIMESTAMP WITH TIME ZONE',
  updated_at: 'TIMESTAMP WITH TIME ZONE',
  _deleted_at: 'TIMESTAMP WITH TIME ZONE',
}

let instance: DuckDBInstance
let connection: DuckDBConnection

beforeAll(async () => {
  instance = await DuckDBInstance.create(':memory:')
  connection = await instance.connect()
  await connection.run("SET TimeZone = 'UTC'")
})

afterAll(() => {
  connection.closeSync()
  instance.closeSync()
})

type Fields = readonly (readonly [name: string, type: string, relation?: string])[]

/** A warehouse with deals, each the JSON text of an object with its fields. */
async function deals(fields: readonly string[], having: Fields = FIELDS): Promise<TemporaryStore> {
  const store = temporaryStore()
  const metadata = having.map(([name, type, relation = type === 'RELATION' && 'MANY_TO_ONE']) => ({
    name,
    label: name,
    type,
    ...(relation && { relation: { type: relation, target_object: 'user' } }),
  }))
  store.put('crm_objects', [{ name: 'deal', label: 'Deal', fields: metadata }], { requested: 'deal' })
  const payloads = fields.map((json, index) => ({
    id: String(index).padStart(5, '0'),
    object: 'deal',
    fields: decodeJson(json).value,
    created_at: '2026-01-01T00:00:00.000Z',
  }))
  store.put('crm_records', payloads, { requested: 'deal' })
  await store.crmTables.finish()
  return store
}

interface Found {
  types: Record<string, string>
  rows: Record<string, unknown>[]
}

async function read(sql: string): Promise<Found> {
  const result = await connection.runAndReadAll(sql)
  const names = result.columnNames()
  return {
    types: Object.fromEntries(result.columnTypes().map((type, at) => [names[at], String(type)])),
    rows: result.getRowObjectsJson(),
  }
}

async function fromParquet({ path }: TemporaryStore): Promise<Found> {
  const target = emptyTarget()
  await exportTo(path, target, { tables: ['crm_deal'] })
  return read(`SELECT * FROM read_parquet('${join(target, 'crm_deal/*.parquet')}') ORDER BY id`)
}

async function fromViews({ path }: TemporaryStore): Promise<Found> {
  const sqlite = openDatabase({ path, readonly: true })
  const other = await DuckDBInstance.create(':memory:')
  const before = connection
  connection = await other.connect()
  try {
    await makeDuckdbViews(connection, sqlite, readCrmTablesAt(path))
    return await read('SELECT * FROM crm_deal ORDER BY id')
  } finally {
    connection.closeSync()
    connection = before
    sqlite.close()
  }
}

const READERS = [
  ['a Parquet export', fromParquet],
  ["DuckDB's views", fromViews],
] as const

/** Values of every kind for every field. Most of them do not fit the field's type. */
const HOSTILE = [
  'null',
  'true',
  '0',
  '-0.0',
  '12',
  '0.1',
  '1250000.000000000000000000001',
  '-98765432109876543210',
  '1e400',
  '5e-324',
  '"12.50"',
  '"00012"',
  '""',
  '" 7"',
  '"0x10"',
  '"Infinity"',
  '"2026-02-28"',
  '"2026-02-30"',
  '"2026-02-03T04:05:06.7891+09:00"',
  '"2026-02-03 late"',
  '"2026"',
  '"next week"',
  '"March 7"',
  '["a"]',
  '{"amount": 12345678901234567890}',
]

const deal = (values: Readonly<Record<string, string>>): string =>
  `{${Object.entries(values)
    .map(([name, json]) => `${JSON.stringify(name)}: ${json}`)
    .join(', ')}}`

const everywhere = (json: string): string => deal(Object.fromEntries(FIELDS.map(([name]) => [name, json])))

describe.each(READERS)('%s', (_, reader) => {
  test('the export has the same types without rows, with values that fit and with values that do not', async () => {
    const fitting = deal({ amount: '1', closes: '"2026-01-01"', seen: '"2026-01-01T00:00:00Z"', won: 'true' })
    for (const fields of [[], [fitting], [fitting, ...HOSTILE.map(everywhere)]]) {
      expect((await reader(await deals(fields))).types).toEqual(TYPES)
    }
  })

  test('the export has fitting values in their type, the digits that a double loses, and NULL for the rest', async () => {
    const { rows } = await reader(await deals(HOSTILE.map(everywhere)))
    const of = (column: string, isKept: (value: unknown) => boolean = value => value !== null) =>
      Object.fromEntries(
        rows.flatMap((row, at) => (isKept(row[column]) ? [[HOSTILE[at] ?? '', row[column]]] : [])),
      )
    expect(of('amount')).toEqual({
      '0': 0,
      '-0.0': 0,
      '12': 12,
      '0.1': 0.1,
      '1250000.000000000000000000001': 1_250_000,
      '-98765432109876543210': -98_765_432_109_876_540_000,
      '5e-324': 5e-324,
      '"12.50"': 12.5,
      '"2026"': 2026,
    })
    expect(of('amount_exact_2')).toEqual({
      '1250000.000000000000000000001': '1250000.000000000000000000001',
      '-98765432109876543210': '-98765432109876543210',
      '1e400': '1e400',
    })
    expect(of('closes')).toEqual({
      '"2026-02-28"': '2026-02-28',
      '"2026-02-03T04:05:06.7891+09:00"': '2026-02-03',
      '"2026-02-03 late"': '2026-02-03',
    })
    expect(of('seen')).toEqual({ '"2026-02-03T04:05:06.7891+09:00"': '2026-02-02 19:05:06.789+00' })
    expect(of('won')).toEqual({ true: true, '0': false, '-0.0': false })
  })

  test('the export keeps the digits of as many numbers as a table has columns', async () => {
    const names = share(Array.from({ length: 1900 }, (_, index) => `f${index}`))
    const json = `{${names.map((name, index) => `"${name}": ${index + 1}0000000000000000000001`).join(', ')}}`
    const store = await deals(
      [json],
      names.map(name => [name, 'NUMBER']),
    )
    const { rows } = await reader(store)
    expect(names.map(name => rows[0]?.[`${name}_exact`])).toEqual(
      names.map((_, index) => `${index + 1}0000000000000000000001`),
    )
  })

  test('any number has the nearest double, and its digits exactly when the double differs', async () => {
    const kept = fc.sample(fc.double({ noNaN: true, noDefaultInfinity: true }), { seed: 7, numRuns: 60 })
    const digits = fc.stringMatching(/^[1-9]\d{19,40}[1-9]$/)
    const lost = fc.sample(
      fc.tuple(digits, fc.constantFrom('', '-'), fc.constantFrom('', '.5', 'e-30', 'e+9')),
      { seed: 7, numRuns: 60 },
    )
    const literals = [
      ...kept.map(value => String(value)),
      ...lost.map(([number, sign, end]) => `${sign}${number}${end}`),
    ]
    const { rows } = await reader(await deals(literals.map(amount => deal({ amount }))))
    expect(rows.map(({ amount }) => amount)).toEqual(literals.map(literal => Number(literal) + 0))
    expect(rows.map(({ amount_exact_2: exact }) => exact)).toEqual([
      ...kept.map(() => null),
      ...literals.slice(kept.length),
    ])
  })
})
