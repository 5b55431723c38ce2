import { createHash } from 'node:crypto'
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { PARQUET_TYPES, type StoredCell } from './parquet-types.ts'
import type { ExportColumn } from './tables.ts'

/**
 * What tells whether a file still says what the database says: a digest of every cell of its rows, in their order.
 * Nothing less would do, since what is erased, or a transcript that is read again, moves no time stamp.
 */
export interface Fingerprint {
  add(cells: readonly StoredCell[]): void
  rows(): number
  /** 32 hexadecimal digits. */
  value(): string
}

/** Raised whenever the same rows are to be written in another way. */
const LAYOUT = 1

/** Characters that are gathered before they are hashed: each hashing has a price of its own. */
const GATHERED = 1 << 16

export function createFingerprint(columns: readonly ExportColumn[]): Fingerprint {
  const hash = createHash('sha256')
  const types = columns.map(({ name, kind }) => [name, PARQUET_TYPES[kind].name])
  hash.update(JSON.stringify([LAYOUT, types]))
  let rows = 0
  let text = ''
  return {
    add(cells) {
      rows += 1
      for (const cell of cells) text += written(cell)
      if (text.length < GATHERED) return
      hash.update(text)
      text = ''
    },
    rows: () => rows,
    value: () => hash.copy().update(text).digest('hex').slice(0, 32),
  }
}

/** No two rows of cells give the same text: each says its type, and a text its length. */
function written(cell: StoredCell): string {
  if (cell === null) return '-'
  if (typeof cell === 'string') return `${cell.length}:${cell}`
  return typeof cell === 'bigint' ? `i${cell};` : `r${cell};`
}

export interface Mark {
  fingerprint: string
  rows: number
}

export interface FileMark extends Mark {
  /** Of the table that the file was written for: a copy that lies elsewhere tells itself by it. */
  folder: string
}

/** Under this name a file's own mark stands in its footer. */
export const MARK_KEY = 'parley.fingerprint'

export const markText = ({ folder, fingerprint, rows }: FileMark): string =>
  `<${folder}:${fingerprint}:${rows}>`

const MARKS = /parley\.fingerprint.{1,4}<([\w-]+):([0-9a-f]{32}):(\d+)>/gs

/** Of a whole Parquet file that parley wrote, with its length in bytes; undefined for every other file. */
export function readMark(path: string): (FileMark & { bytes: number }) | undefined {
  const file = openSync(path, 'r')
  try {
    const bytes = fstatSync(file).size
    const end = bytesAt(file, bytes - ENDING, ENDING)
    if (bytes < 2 * ENDING || end.toString('latin1', 4) !== 'PAR1') return undefined
    const length = end.readUInt32LE(0)
    if (length > bytes - ENDING) return undefined
    const footer = bytesAt(file, bytes - ENDING - length, length).toString('latin1')
    // The last one: names of columns and values stand in the footer too, before it, and may look like marks.
    const [, folder, fingerprint, rows] = [...footer.matchAll(MARKS)].at(-1) ?? []
    if (folder === undefined || fingerprint === undefined) return undefined
    return { folder, fingerprint, rows: Number(rows), bytes }
  } finally {
    closeSync(file)
  }
}

/** A Parquet file ends with the length of its footer in four bytes, and `PAR1`. */
const ENDING = 8

function bytesAt(file: number, position: number, length: number): Buffer {
  const buffer = Buffer.alloc(length)
  if (position >= 0) readSync(file, buffer, 0, length, position)
  return buffer
}
