import { PUBLICATIONS } from '../publications.ts'
import type { PublishSummary } from '../publish.ts'
import type { PartRow } from './state-tables.ts'
import type { ViewedTable } from './views.ts'

/** What a publication to a database has done. Pure. */
export interface DatabaseSummary extends Omit<PublishSummary, 'tables' | 'files_removed'> {
  tables: readonly PartsSummary[]
  /** Parts of earlier publications that were removed. */
  parts_removed: number
}

/** Bytes are those that were sent. */
export interface PartsSummary {
  table: string
  /** The publication that last wrote rows of it. */
  changedIn: number
  rows: number
  bytes: number
  parts: number
  partsWritten: number
  rowsWritten: number
  bytesWritten: number
}

/** The size of the table of publications, in which each publication has a row. */
export interface PublicationsSize {
  rows: number
  bytes: number
  /** Of the newest row. */
  bytesWritten: number
}

/** @param parts those that the publication shows, of all tables */
export function tableSummaries(
  tables: readonly ViewedTable[],
  parts: readonly PartRow[],
  { publication, size }: { publication: number; size: PublicationsSize },
): readonly PartsSummary[] {
  const written = { partsWritten: 1, rowsWritten: 1, changedIn: publication }
  return [
    ...tables.map(({ table, layout }) => ({
      table: table.read.folder,
      ...figuresOf(
        parts.filter(({ source }) => source === layout.name),
        publication,
      ),
    })),
    { table: PUBLICATIONS, ...size, parts: size.rows, ...written },
  ]
}

function figuresOf(parts: readonly PartRow[], publication: number): Omit<PartsSummary, 'table'> {
  const written = parts.filter(({ written_in }) => written_in === publication)
  const sum = (of: readonly PartRow[], figure: 'rows' | 'bytes') =>
    of.reduce((total, row) => total + row[figure], 0)
  return {
    changedIn: Math.max(0, ...parts.map(({ written_in }) => written_in)),
    rows: sum(parts, 'rows'),
    bytes: sum(parts, 'bytes'),
    parts: parts.length,
    partsWritten: written.length,
    rowsWritten: sum(written, 'rows'),
    bytesWritten: sum(written, 'bytes'),
  }
}
