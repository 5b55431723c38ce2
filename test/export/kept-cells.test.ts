import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isoInstant } from '../../src/base/clock.ts'
import { type ExportKind, keptCell, PARQUET_TYPES, type ParquetType } from '../../src/export/parquet-types.ts'
import { ICEBERG_PARQUET_TYPES } from '../../src/publish/iceberg/iceberg-schema.ts'
import type { StoredCell } from '../../src/store/database/sqlite-types.ts'
import { runs } from '../support/effort.ts'

const KINDS = Object.keys(PARQUET_TYPES) as ExportKind[]

const instants = fc.date({ min: new Date('0001-01-01'), max: new Date('9999-12-31'), noInvalidDate: true })
const cells: fc.Arbitrary<StoredCell> = fc.oneof(
  fc.string(),
  fc.double(),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.constantFrom(null, 0n, 1n, -0, '1e400', '12345678901234567890.5', '2026-02-30', '2026-03-04 is no day'),
  instants.map(at => isoInstant(at.getTime())),
  instants.map(at => isoInstant(at.getTime()).slice(0, 10)),
  instants.map(at => at.toISOString().replace('.', ',')),
)

/** What a reader of a file gets back of a cell; undefined where the cell does not fit. */
function readBack({ convert, restore }: ParquetType, cell: StoredCell): StoredCell | undefined {
  const value = cell === null ? null : convert(cell)
  return value === null || value === undefined ? value : restore(value)
}

test('the digest has of every cell exactly what a reader gets back from a file of an export or a publication', () => {
  fc.assert(
    fc.property(fc.constantFrom(...KINDS), cells, (kind, cell) => {
      for (const types of [PARQUET_TYPES, ICEBERG_PARQUET_TYPES]) {
        const back = readBack(types[kind], cell)
        fc.pre(back !== undefined)
        expect(textOf(keptCell({ kind })(cell))).toBe(textOf(back))
      }
    }),
    { numRuns: runs(3000) },
  )
})

test('a value that does not fit a column of the CRM is NULL in the file and in the digest', () => {
  expect(keptCell({ kind: 'number', mayMisfit: true })('many')).toBeNull()
  expect(keptCell({ kind: 'instant', mayMisfit: true })('soon')).toBeNull()
  expect(keptCell({ kind: 'boolean', mayMisfit: true })('yes')).toBeNull()
})

test('an instant with digits below the millisecond stands for no cell of the warehouse', () => {
  const { restore } = ICEBERG_PARQUET_TYPES.timestamp
  expect(restore(1_000n)).toBe('1970-01-01T00:00:00.001Z')
  expect(restore(1_001n)).not.toBe('1970-01-01T00:00:00.001Z')
})

/** Zero has no sign in a digest. */
const textOf = (cell: StoredCell): string => `${typeof cell} ${cell}`
