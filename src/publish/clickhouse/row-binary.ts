/** Encodes values as ClickHouse's format RowBinary, which is exact for every type. Pure. */
export interface RowBinary {
  isNull(isNull: boolean): void
  text(value: string): void
  byte(value: number): void
  int32(value: number): void
  int64(value: bigint): void
  float64(value: number): void
  /** Bytes since the last `take`. */
  size(): number
  /** The bytes from this position on. They change with the next value. */
  from(position: number): Uint8Array
  /** A copy of the bytes, and begins again. */
  take(): Buffer
}

const FIRST_SIZE = 1 << 16

export function createRowBinary(firstSize = FIRST_SIZE): RowBinary {
  let buffer = Buffer.allocUnsafe(firstSize)
  let end = 0
  /** Makes room for `size` bytes and returns where they begin. */
  const claim = (size: number): number => {
    if (end + size > buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(buffer.length * 2, end + size))
      buffer.copy(larger, 0, 0, end)
      buffer = larger
    }
    const start = end
    end += size
    return start
  }
  const byte = (value: number) => {
    // Before the buffer is read: it may be replaced.
    const start = claim(1)
    buffer[start] = value
  }
  /** A length in groups of seven bits, the lowest first. */
  const length = (value: number) => {
    let left = value
    for (; left > 0x7f; left = Math.floor(left / 128)) byte((left % 128) + 128)
    byte(left)
  }
  return {
    byte,
    isNull: isNull => byte(isNull ? 1 : 0),
    text(value) {
      const bytes = Buffer.byteLength(value)
      length(bytes)
      const start = claim(bytes)
      buffer.write(value, start)
    },
    int32(value) {
      const start = claim(4)
      buffer.writeInt32LE(value, start)
    },
    int64(value) {
      const start = claim(8)
      buffer.writeBigInt64LE(value, start)
    },
    float64(value) {
      const start = claim(8)
      buffer.writeDoubleLE(value, start)
    },
    size: () => end,
    from: position => buffer.subarray(position, end),
    take() {
      const bytes = Buffer.from(buffer.subarray(0, end))
      end = 0
      return bytes
    },
  }
}
