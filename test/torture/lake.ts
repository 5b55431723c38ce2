import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import avro from 'avsc'
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet'
import { type Cell, rowText } from '../support/published-cells.ts'

/**
 * A reader of published tables that shares no code with parley: it follows Iceberg's specification from the metadata to
 * the rows. Every file that it meets must be complete.
 */
export interface Lake {
  /** Every table, by folder. @throws Error when something that a reader finds is not complete */
  open(view: View): ReadonlyMap<string, LakeTable>
  /** The publications, oldest first. Empty before the first complete one. */
  publications(tables: ReadonlyMap<string, LakeTable>): Promise<Publication[]>
  /** The number of rows and a digest of them that does not depend on their order. */
  contents(table: LakeTable, snapshot: number): Promise<Contents>
  /** The distinct values of a column. */
  values(table: LakeTable, snapshot: number, column: string): Promise<Set<Cell>>
  /** The files of a snapshot, which all exist with the size that its manifest gives. */
  files(table: LakeTable, snapshot: number): Promise<DataFile[]>
}

/** Readers without a catalogue go by `version-hint.text` or by the highest version. */
export const VIEWS = ['hint', 'highest'] as const
export type View = (typeof VIEWS)[number]

export interface LakeTable {
  folder: string
  metadata: Metadata
}

interface Metadata {
  'current-snapshot-id': number
  snapshots: { 'snapshot-id': number; 'manifest-list': string; summary: Record<string, string> }[]
}

export interface Publication {
  publication: number
  snapshots: Readonly<Record<string, number>>
}

export interface Contents {
  rows: number
  digest: string
}

interface DataFile {
  path: string
  rows: number
}

/** A file never changes, so it is read once. */
interface ReadFile {
  rows: Cell[][]
  columns: string[]
  sum: bigint
}

export function openLake(folder: string): Lake {
  const cache = new Map<string, ReadFile>()
  const avroCache = new Map<string, AvroRecord[]>()

  async function readAvro(path: string): Promise<AvroRecord[]> {
    if (!existsSync(path)) throw new Error(`${path} is missing`)
    const records = avroCache.get(path) ?? (await avroRecords(path))
    avroCache.set(path, records)
    return records
  }

  async function read(file: DataFile): Promise<ReadFile> {
    const known = cache.get(file.path)
    if (known) return known
    const found = await readParquet(file.path)
    if (found.rows.length !== file.rows)
      throw new Error(`${file.path} has ${found.rows.length} rows instead of ${file.rows}`)
    cache.set(file.path, found)
    return found
  }

  const files: Lake['files'] = async (table, snapshot) => {
    const found = table.metadata.snapshots.find(one => one['snapshot-id'] === snapshot)
    if (!found) throw new Error(`${table.folder} has no snapshot ${snapshot}`)
    const listed = await manifestFiles(found['manifest-list'], readAvro)
    const rows = listed.reduce((sum, file) => sum + file.rows, 0)
    if (rows !== Number(found.summary['total-records']))
      throw new Error(
        `${table.folder}@${snapshot} has ${rows} rows instead of ${found.summary['total-records']}`,
      )
    for (const file of listed) await read(file)
    return listed
  }

  const readAll = async (table: LakeTable, snapshot: number): Promise<ReadFile[]> => {
    const found: ReadFile[] = []
    for (const file of await files(table, snapshot)) found.push(await read(file))
    return found
  }

  return {
    open(view) {
      for (const cached of [cache, avroCache])
        for (const path of cached.keys()) if (!existsSync(path)) cached.delete(path)
      return new Map(tableFolders(folder).map(name => [name, openTable(folder, name, view)]))
    },
    async publications(tables) {
      const table = tables.get('publications')
      if (!table) return []
      const found = await readAll(table, table.metadata['current-snapshot-id'])
      const rows = found.flatMap(({ rows: some, columns }) =>
        some.map(row => ({
          publication: Number(row[columns.indexOf('publication')]),
          snapshots: JSON.parse(String(row[columns.indexOf('snapshots')])),
        })),
      )
      return rows.toSorted((one, other) => one.publication - other.publication)
    },
    async contents(table, snapshot) {
      const found = await readAll(table, snapshot)
      return {
        rows: found.reduce((count, { rows }) => count + rows.length, 0),
        digest: digestText(found.reduce((sum, file) => sum + file.sum, 0n)),
      }
    },
    async values(table, snapshot, column) {
      const found = await readAll(table, snapshot)
      return new Set(
        found.flatMap(({ rows, columns }) => rows.map(row => row[columns.indexOf(column)] ?? null)),
      )
    },
    files,
  }
}

export function digestOf(rows: Iterable<readonly Cell[]>): Contents {
  let count = 0
  let sum = 0n
  for (const row of rows) {
    count += 1
    sum += rowDigest(row)
  }
  return { rows: count, digest: digestText(sum) }
}

/** Rows are added up, since the files of a table have no order. */
function rowDigest(row: readonly Cell[]): bigint {
  return createHash('sha256').update(rowText(row)).digest().readBigUInt64LE()
}

const digestText = (sum: bigint): string => BigInt.asUintN(64, sum).toString(16)

const tableFolders = (folder: string): string[] =>
  readdirSync(folder).filter(name => versionsOf(folder, name).length > 0)

function versionsOf(folder: string, name: string): number[] {
  const place = join(folder, name, 'metadata')
  if (!existsSync(place)) return []
  return readdirSync(place).flatMap(file => {
    const version = /^v(\d+)\.metadata\.json$/.exec(file)?.[1]
    return version === undefined ? [] : [Number(version)]
  })
}

/** Killed between the first metadata of a table and its hint, the hint is missing. Readers then find no table there. */
function openTable(folder: string, name: string, view: View): LakeTable {
  const place = join(folder, name, 'metadata')
  const highest = Math.max(...versionsOf(folder, name))
  const hint = join(place, 'version-hint.text')
  const hinted = existsSync(hint) ? Number(readFileSync(hint, 'utf8')) : highest
  if (hinted !== highest && hinted !== highest - 1)
    throw new Error(`${name}: the hint names version ${hinted}, and the highest is ${highest}`)
  const version = view === 'hint' ? hinted : highest
  const metadata = JSON.parse(readFileSync(join(place, `v${version}.metadata.json`), 'utf8'))
  return { folder: name, metadata }
}

async function manifestFiles(
  list: string,
  readAvro: (path: string) => Promise<AvroRecord[]>,
): Promise<DataFile[]> {
  const found: DataFile[] = []
  for (const { manifest_path: path, manifest_length: bytes } of await readAvro(fileURLToPath(list))) {
    requireSize(fileURLToPath(path), bytes)
    for (const { status, data_file: file } of await readAvro(fileURLToPath(path))) {
      if (status === DELETED) continue
      requireSize(fileURLToPath(file.file_path), file.file_size_in_bytes)
      found.push({ path: fileURLToPath(file.file_path), rows: file.record_count })
    }
  }
  return found
}

const DELETED = 2

function requireSize(path: string, bytes: number): void {
  const size = statSync(path).size
  if (size !== bytes) throw new Error(`${path} has ${size} bytes instead of ${bytes}`)
}

// biome-ignore lint/suspicious/noExplicitAny: the records of two schemas that only this file reads
type AvroRecord = any

function avroRecords(path: string): Promise<AvroRecord[]> {
  return new Promise((resolve, reject) => {
    const records: AvroRecord[] = []
    let hasHeader = false
    avro
      .createFileDecoder(path)
      .on('metadata', () => {
        hasHeader = true
      })
      .on('data', record => records.push(record))
      .on('error', reject)
      .on('end', () => (hasHeader ? resolve(records) : reject(new Error(`${path} is not an Avro file`))))
  })
}

async function readParquet(path: string): Promise<ReadFile> {
  const file = await asyncBufferFromFile(path)
  const objects = await parquetReadObjects({
    file,
    compressors: { GZIP: page => gunzipSync(page) },
    parsers: {
      timestampFromMicroseconds: micros => String(micros),
      dateFromDays: days => new Date(days * 86_400_000).toISOString().slice(0, 10),
    },
  })
  const columns = Object.keys(objects[0] ?? {})
  const rows = objects.map(row => columns.map(name => plain(row[name])))
  return { rows, columns, sum: rows.reduce((sum, row) => sum + rowDigest(row), 0n) }
}

function plain(value: unknown): Cell {
  if (typeof value === 'bigint') return String(value)
  return (value ?? null) as Cell
}
