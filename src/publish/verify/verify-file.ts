import { errorCode } from '../../error-code.ts'
import { StopError } from '../../errors.ts'
import { createFingerprint } from '../../export/fingerprint.ts'
import { fileChecksum } from '../../export/parquet-file.ts'
import { nextTurn } from '../../export/partitions.ts'
import type { PurgedContentTest } from '../../store/deletions/purged-content.ts'
import { countText } from '../../terminal/wording.ts'
import type { DataFile } from '../iceberg/manifest.ts'
import { columnsOf, ICEBERG_PARQUET_TYPES, type IcebergSchema } from '../iceberg/schema.ts'
import { type PartNote, pathIn } from '../published-state.ts'
import type { StoredFile, TargetReader } from '../storage/target-reader.ts'
import { OWNERS_MONTH } from '../tables.ts'
import type { VerifyFault } from './fault.ts'
import { parquetRowGroups } from './parquet-rows.ts'

/** Checks one data file: that it is whole, that its values are those that were published, and that none was purged. */

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

export type FileFault = Pick<VerifyFault, 'kind' | 'message'>

/** The first sign of damage, and content that was purged. */
export async function fileFaults(check: FileCheck, named: NamedFile): Promise<FileFault[]> {
  const stored = await check.storage.open(pathIn(check.storage, named.file.path))
  if (stored === undefined) return [{ kind: 'missing', message: 'The file is missing' }]
  try {
    return await storedFaults(check, named, stored)
  } finally {
    await stored.close()
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

interface Content {
  rows: number
  digest: string
  /** Rows whose column of the partition does not have the file's partition. */
  strays: number
  erased: number
}

function damageOf({
  file,
  note,
  content,
  checksum,
}: Pick<NamedFile, 'file' | 'note'> & { content: Content; checksum: string }): FileFault | undefined {
  const { rows, digest, strays } = content
  if (rows !== file.rows)
    return { kind: 'rows', message: `The file has ${countText(rows, 'row')} instead of ${file.rows}` }
  if (strays > 0 || (note !== undefined && digest !== note[1]))
    return { kind: 'values', message: 'The rows of the file are not those that were published' }
  if (note !== undefined && checksum !== note[3])
    return { kind: 'bytes', message: 'The file was changed after it was written, outside its values' }
  return undefined
}

const PIECE_BYTES = 2 ** 20

async function checksumOf(stored: StoredFile, signal: AbortSignal): Promise<string> {
  const checksum = fileChecksum()
  for (let from = 0; from < stored.bytes; from += PIECE_BYTES) {
    checksum.add(await stored.read(from, Math.min(from + PIECE_BYTES, stored.bytes)))
    if (signal.aborted) throw signal.reason
  }
  return checksum.value()
}

/** Undefined when the file cannot be decoded. */
async function readContent(
  { signal, purgedContent, onRows }: FileCheck,
  { file, schema }: NamedFile,
  stored: StoredFile,
): Promise<Content | undefined> {
  const columns = columnsOf(schema.fields)
  const restored = columns.map(({ kind }) => ICEBERG_PARQUET_TYPES[kind].restore)
  // The digest is that of the warehouse's columns. The month of the owner is only in the file.
  const monthAt = columns.findIndex(({ name }) => name === OWNERS_MONTH)
  const digest = createFingerprint(columns.filter((_, place) => place !== monthAt))
  const content = { strays: 0, erased: 0 }
  try {
    for await (const group of parquetRowGroups(stored, idsOf(schema))) {
      for (const row of group) {
        const cells = row.map((value, place) => (value === null ? null : (restored[place]?.(value) ?? null)))
        if (purgedContent?.(cells)) content.erased += 1
        if (monthAt >= 0 && cells.splice(monthAt, 1)[0] !== file.partition) content.strays += 1
        digest.add(cells)
      }
      onRows(group.length)
      await nextTurn()
      if (signal.aborted) throw signal.reason
    }
  } catch (error) {
    if (signal.aborted || error instanceof StopError || errorCode(error)?.startsWith('SQLITE_')) throw error
    return undefined
  }
  return { ...content, rows: digest.rows(), digest: digest.value() }
}

const idsOf = ({ fields }: IcebergSchema): number[] => fields.map(({ id }) => id)
