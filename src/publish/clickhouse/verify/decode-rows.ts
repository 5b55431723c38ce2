import { DAY_MS } from '../../../clock.ts'
import type { StoredCell } from '../../../export/parquet-types.ts'

/** Decodes rows of the format RowBinary as they arrive. Pure. */

export interface DecodedRow {
  cells: readonly StoredCell[]
  /** As the server sent it. */
  bytes: Uint8Array
}

export interface RowDecoder {
  /** The rows that this piece of the answer completes. They are valid until the next piece. @throws BadRow */
  rows(piece: Buffer): Generator<DecodedRow>
  /** Bytes of a row that is not complete. */
  rest(): Buffer
}

/** The bytes are no row of these types. The server may have ended its answer with the text of an error. */
export class BadRow extends Error {
  constructor(readonly bytes: Buffer) {
    super('The bytes are not a row of these types')
  }
}

/** Undefined for a type that parley never creates. @param types in SQL, as the server names them */
export function createRowDecoder(types: readonly string[]): RowDecoder | undefined {
  const decoders = types.map(decoderOf)
  if (!decoders.every(decode => decode !== undefined)) return undefined
  let rest: Buffer = Buffer.alloc(0)
  return {
    *rows(piece) {
      const bytes = rest.length === 0 ? piece : Buffer.concat([rest, piece])
      const from: ReadingPosition = { bytes, at: 0 }
      let start = 0
      while (start < bytes.length) {
        const cells = decodeRow(decoders, from)
        if (cells === undefined) break
        yield { cells, bytes: bytes.subarray(start, from.at) }
        start = from.at
      }
      rest = bytes.subarray(start)
    },
    rest: () => rest,
  }
}

interface ReadingPosition {
  bytes: Buffer
  at: number
}

/** Undefined: the bytes end before the value does. */
type Decode = (from: ReadingPosition) => StoredCell | undefined

function decodeRow(decoders: readonly Decode[], from: ReadingPosition): StoredCell[] | undefined {
  const cells: StoredCell[] = []
  for (const decode of decoders) {
    const cell = decode(from)
    if (cell === undefined) return undefined
    cells.push(cell)
  }
  return cells
}

const NULLABLE = /^Nullable\((.*)\)$/

function decoderOf(type: string): Decode | undefined {
  const [, inner] = NULLABLE.exec(type) ?? []
  const decode = DECODERS.get(inner ?? type)
  return inner === undefined || decode === undefined ? decode : nullable(decode)
}

const nullable =
  (decode: Decode): Decode =>
  from => {
    const start = claim(from, 1)
    if (start === undefined) return undefined
    const flag = from.bytes[start]
    if (flag !== 0 && flag !== 1) throw new BadRow(from.bytes.subarray(start))
    return flag === 1 ? null : decode(from)
  }

/** Where the next bytes begin; undefined when there are fewer. */
function claim(from: ReadingPosition, size: number): number | undefined {
  const start = from.at
  if (start + size > from.bytes.length) return undefined
  from.at += size
  return start
}

const sized =
  (size: number, read: (bytes: Buffer, at: number) => StoredCell): Decode =>
  from => {
    const start = claim(from, size)
    return start === undefined ? undefined : read(from.bytes, start)
  }

/** Instants and days become the text that the warehouse has for them. */
const DECODERS: ReadonlyMap<string, Decode> = new Map<string, Decode>([
  ['String', decodeText],
  ['Int64', sized(8, (bytes, at) => bytes.readBigInt64LE(at))],
  ['UInt64', sized(8, (bytes, at) => bytes.readBigUInt64LE(at))],
  ['Float64', sized(8, (bytes, at) => bytes.readDoubleLE(at))],
  ['Bool', sized(1, (bytes, at) => BigInt(bytes[at] ?? 0))],
  ['UInt8', sized(1, (bytes, at) => BigInt(bytes[at] ?? 0))],
  ["DateTime64(6, 'UTC')", sized(8, (bytes, at) => instantText(bytes.readBigInt64LE(at)))],
  ['Date32', sized(4, (bytes, at) => isoText(bytes.readInt32LE(at) * DAY_MS).slice(0, 10))],
])

const instantText = (microseconds: bigint): string => isoText(Number(microseconds / 1000n))

/** Someone may have stored an instant that no date of JavaScript has. */
function isoText(ms: number): string {
  const date = new Date(ms)
  return Number.isNaN(date.valueOf()) ? String(ms) : date.toISOString()
}

/** Longer than any text of a warehouse: the length itself is damaged. */
const LONGEST_TEXT = 2 ** 31

function decodeText(from: ReadingPosition): string | undefined {
  let length = 0
  let shift = 1
  let byte = 0
  do {
    const place = claim(from, 1)
    if (place === undefined) return undefined
    byte = from.bytes[place] ?? 0
    length += (byte & 0x7f) * shift
    shift *= 128
    if (length > LONGEST_TEXT) throw new BadRow(from.bytes.subarray(place))
  } while (byte > 0x7f)
  const start = claim(from, length)
  return start === undefined ? undefined : from.bytes.toString('utf8', start, start + length)
}
