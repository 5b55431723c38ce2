import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createRowBinary } from '../../../src/publish/clickhouse/row-binary.ts'

type Value = string | number | bigint | null

/** Reads values of these types back: the format is that of ClickHouse's documentation. */
function decode(bytes: Buffer, values: readonly Value[]): Value[] {
  let at = 0
  const read = (value: Value): Value => {
    if (bytes[at++] === 1) return null
    if (typeof value === 'bigint') {
      at += 8
      return bytes.readBigInt64LE(at - 8)
    }
    if (typeof value === 'number') {
      at += 8
      return bytes.readDoubleLE(at - 8)
    }
    let length = 0
    let shift = 1
    for (; (bytes[at] ?? 0) > 127; at++, shift *= 128) length += ((bytes[at] ?? 0) - 128) * shift
    length += (bytes[at++] ?? 0) * shift
    at += length
    return bytes.toString('utf8', at - length, at)
  }
  const decoded = values.map(read)
  expect(at).toBe(bytes.length)
  return decoded
}

const values = fc.array(
  fc.oneof(
    fc.string({ unit: 'grapheme', maxLength: 300 }),
    fc.double({ noNaN: true }),
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
    fc.constant(null),
  ),
)

test('every value comes back as it was, wherever the buffer has to grow', () => {
  fc.assert(
    fc.property(values, fc.integer({ min: 1, max: 64 }), (row, firstSize) => {
      const out = createRowBinary(firstSize)
      for (const value of row) {
        out.isNull(value === null)
        if (typeof value === 'string') out.text(value)
        else if (typeof value === 'number') out.float64(value)
        else if (typeof value === 'bigint') out.int64(value)
      }
      const size = out.size()
      const bytes = out.take()
      expect(bytes).toHaveLength(size)
      expect(out.size()).toBe(0)
      expect(decode(bytes, row)).toEqual(row)
    }),
  )
})

test('bytes, days and long texts have the form of ClickHouse', () => {
  const out = createRowBinary(1)
  out.byte(1)
  out.int32(-1)
  out.text('é'.repeat(100))
  expect(out.take().toString('hex')).toBe(`01ffffffffc801${'c3a9'.repeat(100)}`)
})
