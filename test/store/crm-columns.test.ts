import { describe, expect, test } from 'vitest'
import { decodeJson } from '../../src/base/json.ts'
import {
  type CrmField,
  type CrmForm,
  cellOf,
  columnsForFields,
  formOf,
  labelsOf,
  MAX_FIELD_COLUMNS,
} from '../../src/store/crm/columns.ts'

const field = (name: string, more: Partial<CrmField> = {}): CrmField => ({
  name,
  label: name,
  type: 'TEXT',
  isActive: true,
  isRelation: false,
  ...more,
})

const names = (fields: readonly CrmField[], before: Record<string, string> = {}) =>
  columnsForFields(fields, new Map(Object.entries(before))).map(({ column }) => column)

describe('the name of a column', () => {
  test('a column has the name of its field, with a number when that is taken in any letter case', () => {
    expect(names(['amount', 'Amount', 'AMOUNT', 'amount_2'].map(name => field(name)))).toEqual([
      'amount',
      'Amount_2',
      'AMOUNT_3',
      'amount_2_2',
    ])
  })

  test.each([
    [
      ['ı', 'I', 'İ', 'i\u0307'],
      ['ı', 'I_2', 'İ_3', 'i\u0307_4'],
    ],
    [
      ['ſ', 's', 'K', 'k'],
      ['ſ', 's_2', 'K', 'k_2'],
    ],
    [
      ['Σ', 'ς', 'σ'],
      ['Σ', 'ς_2', 'σ_3'],
    ],
    [
      ['ß', 'ss', 'ﬁ', 'fi'],
      ['ß', 'ss', 'ﬁ', 'fi'],
    ],
  ])('of the names %j, those that engines in Java take for the same get a number', (fields, columns) => {
    expect(names(fields.map(name => field(name)))).toEqual(columns)
  })

  test('a column never has the name of one that every typed table has', () => {
    expect(names(['ID', 'created_at', 'updated_at', '_deleted_at'].map(name => field(name)))).toEqual([
      'ID_2',
      'created_at_2',
      'updated_at_2',
      '_deleted_at_2',
    ])
  })

  test('a column name replaces characters that SQL text cannot hold', () => {
    expect(names([field('a\u0000b'), field(''), field('select'), field('"; --')])).toEqual([
      'a\ufffdb',
      'unnamed',
      'select',
      '"; --',
    ])
  })

  test('a column that an earlier version gave a control character gets another name', () => {
    expect(names([field('a\u001bb'), field('c')], { 'a\u001bb': 'a\u001bb', c: 'c' })).toEqual([
      'a\ufffdb',
      'c',
    ])
  })

  test('a column keeps its name when another field comes before it', () => {
    expect(names([field('AMOUNT'), field('amount')], { amount: 'amount' })).toEqual(['AMOUNT_2', 'amount'])
  })
})

test('fields in use get a column before retired ones when there are more than a table can have', () => {
  const fields = Array.from({ length: 3000 }, (_, index) => field(`f${index}`, { isActive: index % 2 === 1 }))
  const columns = names(fields)
  expect(columns).toHaveLength(MAX_FIELD_COLUMNS)
  expect(columns.filter(name => Number(name.slice(1)) % 2 === 1)).toHaveLength(1500)
  expect(columns.slice(0, 3)).toEqual(['f0', 'f1', 'f2'])
})

test('equal labels are numbered, and missing ones are replaced by the name', () => {
  const fields = [
    field('a', { label: 'Amount' }),
    field('b', { label: 'amount' }),
    field('c', { label: null }),
    field('d', { label: 'id' }),
    field('e', { label: '' }),
    field('f', { label: ' \t ' }),
    field('g', { label: 'Created_At' }),
    field('h', { label: 'a\u0000b' }),
  ]
  expect(labelsOf(columnsForFields(fields, new Map()), fields)).toEqual([
    'Amount',
    'amount_2',
    'c',
    'id_2',
    'e',
    'f',
    'Created_At_2',
    'a\ufffdb',
  ])
})

test.each<[string | null, CrmForm]>([
  ['NUMBER', 'number'],
  ['Currency', 'number'],
  ['big_int', 'number'],
  ['BOOLEAN', 'boolean'],
  ['date-time', 'timestamp'],
  ['DATE', 'date'],
  ['something new', 'text'],
  [null, 'text'],
])('a field of the type %s holds %s', (type, form) => {
  expect(formOf(type)).toBe(form)
})

test.each<[CrmForm, string, unknown]>([
  ['text', '"x"', 'x'],
  ['text', '{"a":[1,12345678901234567890]}', '{"a":[1,12345678901234567890]}'],
  ['text', 'true', 'true'],
  ['text', 'null', null],
  ['relation', '"C2A1E6B4-0D8E-4F57-9B3A-5E7F1A2B3C4D"', 'c2a1e6b4-0d8e-4f57-9b3a-5e7f1a2b3c4d'],
  ['relation', '"Won"', 'Won'],
  ['boolean', 'true', 1],
  ['boolean', '0', 0],
  ['boolean', '"true"', 1],
  ['boolean', '"false"', 0],
  ['boolean', '-0', 0],
  ['boolean', '"yes"', null],
  ['boolean', '2', null],
  ['number', '12', 12n],
  ['number', '1.5', 1.5],
  ['number', '9007199254740993', '9007199254740993'],
  ['number', '0.1234567890123456789', '0.1234567890123456789'],
  ['number', '"1200.50"', 1200.5],
  ['number', '1e400', '1e400'],
  ['number', `${'9'.repeat(400)}`, '9'.repeat(400)],
  ['number', `"${'9'.repeat(400)}"`, '9'.repeat(400)],
  ['number', '-0', 0n],
  ['number', '"about ten"', null],
  ['number', '""', null],
  ['number', '[1]', null],
  ['number', '{"value":1}', null],
  ['number', 'true', null],
  ['timestamp', '"2026-03-04T05:06:07+09:00"', '2026-03-03T20:06:07.000Z'],
  ['timestamp', '"2026-03-04"', '2026-03-04'],
  ['timestamp', '"next week"', 'next week'],
  ['timestamp', '1772600767000', '1772600767000'],
])('a %s column has %s as %s', (form, json, cell) => {
  expect(cellOf(form, decodeJson(json).value)).toBe(cell)
})
