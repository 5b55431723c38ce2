import { describe, expect, test } from 'vitest'
import { type ClickHouseType, dialectOf } from '../../../src/publish/clickhouse/dialect.ts'
import { createRowBinary } from '../../../src/publish/clickhouse/row-binary.ts'

const MODERN = dialectOf('26.7.2.1')
const CLASSIC = dialectOf('18.16.1')

test.each([
  ['18.16.1', false],
  ['22.2.3.1', false],
  ['22.3.1.1', true],
  ['26.7.2.1', true],
  ['100.1', true],
  ['', false],
])('version %s is modern: %s', (version, isModern) => {
  expect(dialectOf(version).isModern).toBe(isModern)
})

/** The bytes of a value in hex; what `convert` returned when there is no value. */
function bytesOf(
  { convert, put }: ClickHouseType,
  cell: string | number | bigint,
): string | null | undefined {
  const value = convert(cell)
  if (value == null) return value
  const out = createRowBinary()
  put(out, value)
  return out.take().toString('hex')
}

const hex64 = (value: bigint) => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigInt64LE(value)
  return bytes.toString('hex')
}

describe('servers since 22.3', () => {
  test('an instant has microseconds since 1970', () => {
    expect(MODERN.types.timestamp.name).toBe("DateTime64(6, 'UTC')")
    expect(bytesOf(MODERN.types.timestamp, '1970-01-01T00:00:01.234Z')).toBe(hex64(1_234_000n))
    expect(bytesOf(MODERN.types.timestamp, '1900-01-01T00:00:00.000Z')).toBe(
      hex64(BigInt(Date.UTC(1900, 0, 1)) * 1000n),
    )
  })

  test('instants and days that the types do not have are NULL', () => {
    for (const instant of [
      '0001-01-01T00:00:00.000Z',
      '1899-12-31T23:59:59.999Z',
      '2300-01-01T00:00:00.000Z',
    ])
      expect(MODERN.types.timestamp.convert(instant)).toBeNull()
    for (const day of ['1845-01-01', '1899-12-31', '2300-01-01'])
      expect(MODERN.types.day.convert(day)).toBeNull()
    expect(MODERN.types.date.convert('2299-12-31')).not.toBeNull()
    expect(bytesOf(MODERN.types.date, '1970-01-03')).toBe('02000000')
  })

  test('a value that does not fit the kind is another case than one that ClickHouse cannot have', () => {
    expect(MODERN.types.timestamp.convert('soon')).toBeUndefined()
    expect(MODERN.types.day.convert('soon')).toBeUndefined()
  })
})

describe('older servers', () => {
  test('instants and days of any year are text as in the warehouse', () => {
    for (const kind of ['timestamp', 'instant', 'date', 'day'] as const)
      expect(CLASSIC.types[kind].name).toBe('String')
    expect(CLASSIC.types.instant.convert('0001-01-01T00:00:00.000Z')).toBe('0001-01-01T00:00:00.000Z')
    expect(CLASSIC.types.day.convert('1845-01-01T10:00:00')).toBe('1845-01-01')
    expect(CLASSIC.types.instant.convert('soon')).toBeUndefined()
  })
})

test.each([MODERN, CLASSIC])('numbers are exact', ({ types }) => {
  expect(bytesOf(types.integer, 9_223_372_036_854_775_807n)).toBe('ffffffffffffff7f')
  expect(bytesOf(types.real, 0.1)).toBe('9a9999999999b93f')
  expect(bytesOf(types.boolean, 1n)).toBe('01')
})
