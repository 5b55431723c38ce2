import { hash } from 'node:crypto'

/**
 * A checksum of rows in any order, since a server returns them in any order: the sum of the digests of the single rows,
 * as bytes of the format RowBinary. Pure.
 */
export interface RowsChecksum {
  /** @param row the bytes of one row */
  add(row: Uint8Array): void
  /** 32 hexadecimal digits. */
  value(): string
}

/** Sums of 32 bits, which leave out what overflows. */
const SUMS = 4

export function createRowsChecksum(): RowsChecksum {
  const sums = new Uint32Array(SUMS)
  return {
    add(row) {
      const digest = hash('sha256', row, 'buffer')
      for (let place = 0; place < SUMS; place += 1)
        sums[place] = (sums[place] ?? 0) + digest.readUInt32LE(place * 4)
    },
    value: () => [...sums].map(sum => sum.toString(16).padStart(8, '0')).join(''),
  }
}
