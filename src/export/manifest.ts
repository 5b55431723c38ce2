import type { ResourceName } from '../declare/resource-names.ts'
import type { Workspace } from '../store/file/workspace.ts'
import type { StatusRow } from '../store/status/status.ts'
import type { ExportTable } from './export-tables.ts'
import type { Mark } from './fingerprint.ts'
import { PARQUET_TYPES } from './parquet-types.ts'
import type { Partition } from './partitions.ts'

export interface TargetFile extends Mark {
  /** The path relative to the target, with `/`. */
  path: string
  /** `YYYY-MM`; null for rows without a time and for tables that have none. */
  month: Partition
  bytes: number
}

export const FORMAT = 'parley-parquet-1'

export const MANIFEST = 'manifest.json'

/** `manifest.json`: the files of an export. The files that it lists for a table hold all rows of that table. */
export interface Manifest {
  format: typeof FORMAT
  parley: string
  /** The id of the warehouse, which a copy keeps. Manifests of earlier versions have none. */
  warehouse?: string | null
  /** Null for an empty warehouse. */
  workspace: Workspace | null
  /** Number of migrations that were applied to the warehouse. */
  schema_version: number
  /** The instant of this export. A file from an earlier export has an earlier `exported_at`. */
  exported_at: string
  /**
   * Content that the warehouse had purged by this instant is in no file. Null if nothing was purged yet, or if it is
   * not known because files were left out.
   */
  purged_at: string | null
  /** State of the resources at the instant of this export, in the order of the catalogue. */
  resources: readonly ManifestResource[]
  tables: readonly ManifestTable[]
}

export type ManifestResource = Pick<StatusRow, 'resource' | 'state' | 'fresh_as_of' | 'complete_as_of'>

export interface ManifestTable {
  table: string
  folder: string
  resource: ResourceName | null
  /** The column whose month determines the file; null for a table with a single file. */
  partitioned_by: string | null
  exported_at: string
  fresh_as_of: string | null
  complete_as_of: string | null
  rows: number
  bytes: number
  columns: readonly { name: string; type: string; json?: true }[]
  files: readonly ManifestFile[]
}

export interface ManifestFile extends TargetFile {
  /** When the file was written, or last compared equal to the warehouse; null when no manifest recorded it. */
  exported_at: string | null
}

export function manifestTable(
  table: ExportTable,
  files: readonly ManifestFile[],
  { exported_at, resources }: Pick<Manifest, 'exported_at' | 'resources'>,
): ManifestTable {
  const state = resources.find(({ resource }) => resource === table.resource)
  const sum = (of: (file: TargetFile) => number) => files.reduce((total, file) => total + of(file), 0)
  return {
    table: table.name,
    folder: table.folder,
    resource: table.resource,
    partitioned_by: table.rows.time?.column ?? null,
    exported_at,
    fresh_as_of: state?.fresh_as_of ?? null,
    complete_as_of: state?.complete_as_of ?? null,
    rows: sum(file => file.rows),
    bytes: sum(file => file.bytes),
    columns: table.columns.map(({ name, kind }) => ({
      name,
      type: PARQUET_TYPES[kind].name,
      ...(kind === 'json' ? { json: true as const } : {}),
    })),
    files,
  }
}

/** Whether the value is a manifest of this format. Without one, `readMark` still recognises the files of an export. */
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
