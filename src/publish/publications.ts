import type { ExportColumn, ExportTable } from '../export/export-tables.ts'
import type { StoredCell } from '../store/database/sqlite-types.ts'
import type { Compared } from './comparison.ts'
import type { PublishedState, PublishedTarget } from './published-state.ts'
import type { PublishedTable } from './published-tables.ts'
import { FIRST_RANGE } from './row-ranges.ts'

/**
 * The table `publications` of the target. A publication writes it last, so the newest row names the newest complete
 * publication, with the snapshot of every table. A reader that reads all tables by these snapshots sees one instant.
 */
export interface PublicationRow {
  publication: number
  published_at: string
  /** Everything that the API published before this instant is in the publication; null while history is loading. */
  complete_as_of: string | null
  fresh_as_of: string | null
  /** The identity of the warehouse. */
  warehouse: string
  /** The snapshot of each table, by the table's folder. */
  snapshots: Readonly<Record<string, number>>
}

export const PUBLICATIONS = 'publications'

/** The property in which the table keeps its rows, so that no data file has to be read for them. */
const ROWS_PROPERTY = 'parley.publications'

/**
 * The property with what the newest publication compared. Targets of earlier versions lack it, so that their next
 * publication compares everything and names the ranges whose keys are gone again.
 */
const COMPARED_PROPERTY = 'parley.last-compared'

/** The table keeps the newest `keep` publications, and never fewer than this number. */
const LEAST_ROWS_KEPT = 100

const PUBLICATION_COLUMNS: Readonly<
  Record<keyof PublicationRow, Required<Pick<ExportColumn, 'kind' | 'doc'>>>
> = {
  publication: {
    kind: 'integer',
    doc: 'The number of the publication. It is also the id of the snapshots that it added.',
  },
  published_at: { kind: 'timestamp', doc: 'The instant of the warehouse that the publication shows.' },
  complete_as_of: {
    kind: 'timestamp',
    doc: 'Everything that the API published before this instant is in the publication. NULL: history is still being loaded.',
  },
  fresh_as_of: {
    kind: 'timestamp',
    doc: 'The newest items were read at this instant. NULL: they never were.',
  },
  warehouse: { kind: 'text', doc: 'The identity of the warehouse.' },
  snapshots: {
    kind: 'json',
    doc: 'JSON object: the snapshot of each table that belongs to the publication. Only the newest publications can be read, as many as publish.keep says, and after a purge only the last one. The snapshots of earlier rows are gone.',
  },
}

export function earlierPublications(
  before: Pick<PublishedState, 'metadata'> | undefined,
): readonly PublicationRow[] {
  return JSON.parse(before?.metadata.properties[ROWS_PROPERTY] ?? '[]')
}

export const rowsIn = ({ tables }: PublishedTarget): readonly PublicationRow[] =>
  earlierPublications(tables.get(PUBLICATIONS))

export function lastCompared(before: PublishedState | undefined): Compared | undefined {
  const text = before?.metadata.properties[COMPARED_PROPERTY]
  return text === undefined || text === '' ? undefined : JSON.parse(text)
}

/** The snapshots of a table that the `newest` publications show. */
export function snapshotsShown(
  rows: readonly PublicationRow[],
  folder: string,
  newest: number,
): ReadonlySet<number> {
  const shown = rows.slice(-newest)
  return new Set(
    shown.flatMap(row => (folder === PUBLICATIONS ? row.publication : (row.snapshots[folder] ?? []))),
  )
}

/**
 * The rows that the table keeps: those of readable publications, and earlier ones, which only record when they were
 * made.
 */
export const keptRows = (rows: readonly PublicationRow[], keep: number): readonly PublicationRow[] =>
  rows.slice(-Math.max(keep, LEAST_ROWS_KEPT))

/** The table with these rows, and its properties with `rows` and `compared`. */
export function publicationsTable(
  rows: readonly PublicationRow[],
  compared: Compared | undefined,
): {
  table: PublishedTable
  properties: Readonly<Record<string, string>>
} {
  const columns = Object.entries(PUBLICATION_COLUMNS).map(([name, column]) => ({ name, ...column }))
  const read: ExportTable = {
    name: PUBLICATIONS,
    folder: PUBLICATIONS,
    resource: null,
    columns,
    rows: { from: PUBLICATIONS, order: 't.publication' },
  }
  const all = function* () {
    for (const row of rows) yield [...cellsOf(row), FIRST_RANGE]
  }
  return {
    table: {
      read,
      written: read,
      partition: undefined,
      isOwner: false,
      reader: () => ({ rows: all, of: all, noted: () => 'all', compare: () => 0 }),
    },
    properties: {
      [ROWS_PROPERTY]: JSON.stringify(rows),
      [COMPARED_PROPERTY]: compared ? JSON.stringify(compared) : '',
    },
  }
}

function cellsOf(row: PublicationRow): StoredCell[] {
  return [
    BigInt(row.publication),
    row.published_at,
    row.complete_as_of,
    row.fresh_as_of,
    row.warehouse,
    JSON.stringify(row.snapshots),
  ]
}
