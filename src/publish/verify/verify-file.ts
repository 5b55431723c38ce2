import { createHash } from 'node:crypto'
import { errorCode, StopError } from '../../base/errors.ts'
import type { ExportColumn } from '../../export/export-tables.ts'
import { createFingerprint, type Mark } from '../../export/fingerprint.ts'
import { fileChecksum } from '../../export/parquet-file.ts'
import type { ExportKind } from '../../export/parquet-types.ts'
import { nextTurn } from '../../export/partitions.ts'
import type { StoredCell } from '../../store/database/sqlite-types.ts'
import type { PurgedContentTest } from '../../store/deletions/purged-content.ts'
import { countText } from '../../terminal/wording.ts'
import { columnsWithFields, ICEBERG_PARQUET_TYPES, type IcebergSchema } from '../iceberg/iceberg-schema.ts'
import type { DataFile } from '../iceberg/manifest.ts'
import { type PartNote, pathIn } from '../published-state.ts'
import { OWNERS_MONTH } from '../published-tables.ts'
import type { StoredFile, TargetReader } from '../storage/target-reader.ts'
import type { FoundFault } from './fault.ts'
import { openParquet, type ParquetContent } from './parquet-rows.ts'

/** Checks one data file: it must be whole, have the values that were published, and have no content that was purged. */

export interface NamedFile {
  file: DataFile
  /** The schema of the snapshot that names the file. */
  schema: IcebergSchema
  /** What the table's metadata notes about the file; undefined when no kept version of the metadata does. */
  note: PartNote | undefined
}

export interface FileCheck {
  storage: Pick<TargetReader, 'location' | 'open'>
  signal: AbortSignal
  purgedContent: PurgedContentTest | undefined
  onRows(rows: number): void
}

export type FileFault = Pick<FoundFault, 'kind' | 'message'>

/** @returns the first sign of damage, and content that was purged */
export async function fileFaults(check: FileCheck, named: NamedFile): Promise<FileFault[]> {
  const stored = await check.storage.open(pathIn(check.storage, named.file.path))
  if (stored === undefined) return [{ kind: 'missing', message: 'The file is missing' }]
  try {
    return await storedFaults(check, named, stored)
  } finally {
    stored.close()
  }
}

async function storedFaults(check: FileCheck, named: NamedFile, stored: StoredFile): Promise<FileFault[]> {
  const { file, note } = named
  if (stored.bytes !== file.bytes)
    return [{ kind: 'size', message: `The file has ${stored.bytes} bytes instead of ${file.bytes}` }]
  const content = await readContent(check, named, stored)
  if (content === undefined) return [{ kind: 'unreadable', message: 'The file cannot be read as Parquet' }]
  const erased: FileFault[] =
    content.erased === 0
      ? []
      : [{ kind: 'erased', message: `${countText(content.erased, 'row')} with content that was purged` }]
  const damage = damageOf({ file, note, content, checksum: await checksumOf(stored, check.signal) })
  return damage === undefined ? erased : [damage, ...erased]
}

interface Content extends Mark {
  /** Rows with another value in the partition column than the partition of the file. */
  strays: number
  erased: number
}

function damageOf({
  file,
  note,
  content,
  checksum,
}: Pick<NamedFile, 'file' | 'note'> & { content: Content; checksum: string }): FileFault | undefined {
  const { rows, fingerprint, strays } = content
  if (rows !== file.rows)
    return { kind: 'rows', message: `The file has ${countText(rows, 'row')} instead of ${file.rows}` }
  if (strays > 0 || (note !== undefined && fingerprint !== note[1]))
    return { kind: 'values', message: 'The rows of the file are not those that were published' }
  if (note !== undefined && checksum !== note[3])
    return { kind: 'bytes', message: 'The file was changed after it was written, outside its values' }
  return undefined
}

const PIECE_BYTES = 2 ** 20

async function checksumOf(stored: StoredFile, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256')
  for (let from = 0; from < stored.bytes; from += PIECE_BYTES) {
    hash.update(await stored.read(from, Math.min(from + PIECE_BYTES, stored.bytes)))
    if (signal.aborted) throw signal.reason
  }
  return fileChecksum(hash.digest('hex'))
}

/** @returns undefined when the file cannot be decoded */
function readContent(
  check: FileCheck,
  { file, schema }: NamedFile,
  stored: StoredFile,
): Promise<Content | undefined> {
  const columns = columnsWithFields(schema.fields)
  // The digest covers the columns of the warehouse. The month of the owner is only in the file.
  const monthAt = columns.findIndex(({ name }) => name === OWNERS_MONTH)
  return decoded(check, async () => {
    const digest = createFingerprint(columns.filter((_, place) => place !== monthAt))
    const content = { strays: 0, erased: 0 }
    const parquet = await openParquet(stored)
    const names = new Map(parquet.columns.map(({ id, name }) => [id, name]))
    const read = columns.map(({ kind }, place) => ({ name: names.get(schema.fields[place]?.id), kind }))
    for await (const group of rowGroups(check, parquet, read)) {
      for (const cells of group) {
        if (check.purgedContent?.(cells)) content.erased += 1
        if (monthAt >= 0 && cells.splice(monthAt, 1)[0] !== file.partition) content.strays += 1
        digest.add(cells)
      }
    }
    return { ...content, ...digest.finish() }
  })
}

/** A file that no snapshot names. It may be gone, or still being written. */
export interface UnnamedFile {
  path: string
  /** The columns of the table. Other columns of the file are read as text, because only their NULLs matter. */
  columns: readonly ExportColumn[]
  /** @param columns the names of the file's columns */
  purgedContent(columns: readonly string[]): PurgedContentTest | undefined
}

/** How many rows have content that was purged; 0 for a file that is missing or cannot be decoded. */
export async function erasedRows(
  check: Omit<FileCheck, 'purgedContent'>,
  { path, columns, purgedContent }: UnnamedFile,
): Promise<number> {
  const stored = await check.storage.open(path)
  if (stored === undefined) return 0
  try {
    const kinds = new Map(columns.map(({ name, kind }) => [name, kind]))
    const erased = await decoded(check, async () => {
      const parquet = await openParquet(stored)
      const read = parquet.columns.map(({ name }) => ({ name, kind: kinds.get(name) ?? ('text' as const) }))
      const isPurged = purgedContent(read.map(({ name }) => name))
      let rows = 0
      if (isPurged)
        for await (const group of rowGroups(check, parquet, read)) rows += group.filter(isPurged).length
      return rows
    })
    return erased ?? 0
  } finally {
    stored.close()
  }
}

/** @returns undefined when the file cannot be decoded @throws errors of the target and of the warehouse */
async function decoded<Result>(
  { signal }: Pick<FileCheck, 'signal'>,
  decode: () => Promise<Result>,
): Promise<Result | undefined> {
  try {
    return await decode()
  } catch (error) {
    if (signal.aborted || error instanceof StopError || errorCode(error)?.startsWith('SQLITE_')) throw error
    return undefined
  }
}

interface ReadColumn {
  /** Undefined where the file does not have the column. */
  name: string | undefined
  kind: ExportKind
}

/** Groups of rows, with cells as the warehouse has them. */
async function* rowGroups(
  { signal, onRows }: Pick<FileCheck, 'signal' | 'onRows'>,
  parquet: ParquetContent,
  columns: readonly ReadColumn[],
): AsyncGenerator<StoredCell[][]> {
  const restored = columns.map(({ kind }) => ICEBERG_PARQUET_TYPES[kind].restore)
  for await (const group of parquet.groups(columns.map(({ name }) => name))) {
    yield group.map(row =>
      row.map((value, place) => (value === null ? null : (restored[place]?.(value) ?? null))),
    )
    onRows(group.length)
    await nextTurn()
    if (signal.aborted) throw signal.reason
  }
}
