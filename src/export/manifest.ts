import type { ResourceName } from '../resource.ts'
import type { Workspace } from '../store/database/workspace.ts'
import type { StatusRow } from '../store/status.ts'
import { PARQUET_TYPES } from './parquet-types.ts'
import type { ExportTable } from './tables.ts'
import type { TargetFile } from './target.ts'

export const FORMAT = 'parley-parquet-1'

/** `manifest.json`: what an export consists of. Whoever reads the files that it names has whole tables. Pure. */
export interface Manifest {
  format: typeof FORMAT
  parley: string
  /** Whose rows they are; null for an empty warehouse. */
  workspace: Workspace | null
  /** How many migrations the warehouse has had. */
  schema_version: number
  /** The instant whose state the newest files have; each file says its own. */
  exported_at: string
  /** In the order of the catalogue: how true the warehouse was to the API at that instant. */
  resources: readonly ManifestResource[]
  tables: readonly ManifestTable[]
}

export type ManifestResource = Pick<StatusRow, 'resource' | 'state' | 'fresh_as_of' | 'complete_as_of'>

export interface ManifestTable {
  table: string
  folder: string
  resource: ResourceName | null
  /** The column by whose month its files are laid out; null for a table of one file. */
  partitioned_by: string | null
  exported_at: string
  fresh_as_of: string | null
  complete_as_of: string | null
  rows: number
  bytes: number
  columns: readonly { name: string; type: string; json?: true }[]
  files: readonly ManifestFile[]
}

export interface ManifestFile {
  path: string
  /** `YYYY-MM`; null for rows without a time and for tables that have none. */
  month: string | null
  rows: number
  bytes: number
  fingerprint: string
  /** The instant at which it was written, or last found to say what the warehouse says; null where nobody noted it. */
  exported_at: string | null
}

export interface TableExport {
  table: ExportTable
  files: readonly (TargetFile & { exportedAt: string | null })[]
}

export function manifestTable(
  { table, files }: TableExport,
  exportedAt: string,
  resources: readonly ManifestResource[],
): ManifestTable {
  const state = resources.find(({ resource }) => resource === table.resource)
  const sum = (of: (file: TargetFile) => number) => files.reduce((total, file) => total + of(file), 0)
  return {
    table: table.name,
    folder: table.folder,
    resource: table.resource,
    partitioned_by: table.rows.time?.column ?? null,
    exported_at: exportedAt,
    fresh_as_of: state?.fresh_as_of ?? null,
    complete_as_of: state?.complete_as_of ?? null,
    rows: sum(file => file.rows),
    bytes: sum(file => file.bytes),
    columns: table.columns.map(({ name, kind }) => ({
      name,
      type: PARQUET_TYPES[kind].name,
      ...(kind === 'json' ? { json: true as const } : {}),
    })),
    files: files.map(({ path, month, rows, bytes, fingerprint, exportedAt: at }) => ({
      path,
      month: month ?? null,
      rows,
      bytes,
      fingerprint,
      exported_at: at,
    })),
  }
}

/** Whether it is one of this format. Of another, every file counts by what it says itself. */
export function isManifest(value: unknown): value is Manifest {
  return (
    typeof value === 'object' &&
    value !== null &&
    'format' in value &&
    value.format === FORMAT &&
    'tables' in value &&
    Array.isArray(value.tables)
  )
}
