import fc from 'fast-check'
import { expect, test } from 'vitest'
import { dialectOf } from '../../../../src/publish/clickhouse/dialect.ts'
import { createRowBinary, type RowBinary } from '../../../../src/publish/clickhouse/row-binary.ts'
import { createRowsChecksum } from '../../../../src/publish/clickhouse/rows-checksum.ts'
import {
  BadRow,
  createRowDecoder,
  type RowDecoder,
} from '../../../../src/publish/clickhouse/verify/decode-rows.ts'

type Cell = string | number | bigint | null

const { types: MODERN } = dialectOf('26.7')

/** A kind of column, the cells that it may have, and how a publication encodes them. */
const KINDS: readonly { type: string; cells: fc.Arbitrary<Cell>; put(out: RowBinary, cell: Cell): void }[] = [
  { type: 'String', cells: fc.string({ unit: 'grapheme', maxLength: 300 }), put: putBy('text') },
  { type: 'Int64', cells: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), put: putBy('integer') },
  { type: 'Float64', cells: fc.double({ noNaN: true }), put: putBy('real') },
  { type: 'Bool', cells: fc.constantFrom(0n, 1n), put: putBy('boolean') },
  {
    type: "DateTime64(6, 'UTC')",
    cells: fc
      .date({ min: new Date('1900-01-01'), max: new Date('2299-12-31'), noInvalidDate: true })
      .map(date => date.toISOString()),
    put: putBy('timestamp'),
  },
  {
    type: 'Date32',
    cells: fc
      .date({ min: new Date('1900-01-01'), max: new Date('2299-12-31'), noInvalidDate: true })
      .map(date => date.toISOString().slice(0, 10)),
    put: putBy('date'),
  },
]

function putBy(kind: keyof typeof MODERN): (out: RowBinary, cell: Cell) => void {
  const { convert, put } = MODERN[kind]
  return (out, cell) => {
    out.isNull(cell === null)
    if (cell !== null) put(out, convert(cell) ?? null)
  }
}

function encode(rows: readonly Cell[][]): Buffer[] {
  const out = createRowBinary()
  return rows.map(row => {
    for (const [place, cell] of row.entries()) KINDS[place]?.put(out, cell)
    return out.take()
  })
}

const decoder = (): RowDecoder => {
  const created = createRowDecoder(KINDS.map(({ type }) => `Nullable(${type})`))
  if (!created) throw new Error('A type is unknown')
  return created
}

const rows = fc.array(
  fc.tuple(...KINDS.map(({ cells }) => fc.option(cells, { nil: null }))) as fc.Arbitrary<Cell[]>,
  { maxLength: 8 },
)

test('rows come back as they were encoded, with their bytes, wherever the answer is cut into pieces', () => {
  fc.assert(
    fc.property(rows, fc.integer({ min: 1, max: 40 }), (expected, size) => {
      const encoded = encode(expected)
      const answer = Buffer.concat(encoded)
      const { rows: decode, rest } = decoder()
      const cells: Cell[][] = []
      const bytes: string[] = []
      for (let from = 0; from < answer.length; from += size)
        for (const row of decode(answer.subarray(from, from + size))) {
          cells.push([...row.cells])
          bytes.push(Buffer.from(row.bytes).toString('hex'))
        }
      expect(cells).toEqual(expected)
      expect(bytes).toEqual(encoded.map(row => row.toString('hex')))
      expect(rest()).toHaveLength(0)
    }),
  )
})

test('an answer that ends in the middle of a row leaves a rest', () => {
  const { rows: decode, rest } = decoder()
  const [row = Buffer.alloc(0)] = encode([['text', 1n, 1.5, 1n, null, null]])
  expect([...decode(row.subarray(0, -1))]).toEqual([])
  expect(rest()).toHaveLength(row.length - 1)
})

test('the text of an error after a row is no row', () => {
  const { rows: decode } = decoder()
  const [row = Buffer.alloc(0)] = encode([['text', 1n, 1.5, 1n, null, null]])
  const answer = Buffer.concat([row, Buffer.from('Code: 241, e.displayText() = DB::Exception: Memory limit')])
  expect(() => [...decode(answer)]).toThrow(BadRow)
})

test('there is no decoder for a type that parley does not create', () => {
  expect(createRowDecoder(['Nullable(String)', 'Array(String)'])).toBeUndefined()
  expect(createRowDecoder(['String', 'UInt64', 'UInt8'])).toBeDefined()
})

test('the checksum depends on every byte of every row, and not on their order', () => {
  const checksumOf = (all: readonly string[]): string => {
    const checksum = createRowsChecksum()
    for (const row of all) checksum.add(Buffer.from(row))
    return checksum.value()
  }
  const sum = checksumOf(['one', 'two', 'three'])
  expect(sum).toMatch(/^[0-9a-f]{32}$/)
  expect(checksumOf(['three', 'one', 'two'])).toBe(sum)
  for (const other of [
    ['one', 'two', 'thref'],
    ['one', 'two'],
    ['one', 'two', 'three', 'three'],
    ['onetwo', 'three'],
    ['one', 'two', 'three', ''],
  ])
    expect(checksumOf(other)).not.toBe(sum)
})
