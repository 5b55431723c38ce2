import type { DatabaseSummary } from './clickhouse/summary.ts'
import type { PublishSummary } from './publish.ts'

/** What a publication has done, for any target. Pure. */

export type TargetSummary = PublishSummary | DatabaseSummary

export interface PublishedPieces {
  /** What is written and removed as a whole. */
  unit: 'file' | 'part'
  tables: readonly TableFigures[]
  removed: number
}

export interface TableFigures {
  table: string
  rows: number
  bytes: number
  /** Files or parts. */
  pieces: number
  piecesWritten: number
  bytesWritten: number
}

export function figuresOf(summary: TargetSummary): PublishedPieces {
  if ('parts_removed' in summary) {
    const tables = summary.tables.map(({ parts, partsWritten, ...table }) => ({
      ...table,
      pieces: parts,
      piecesWritten: partsWritten,
    }))
    return { unit: 'part', tables, removed: summary.parts_removed }
  }
  const tables = summary.tables.map(({ folder, files, filesWritten, ...table }) => ({
    ...table,
    table: folder,
    pieces: files,
    piecesWritten: filesWritten,
  }))
  return { unit: 'file', tables, removed: summary.files_removed }
}
