import { createTable, type DatabasePlace, nullable } from './statements.ts'

/** The tables of the database in which parley keeps what it has published. Pure. */

export const STATE_TABLES = {
  attempts: '_parley_attempts',
  compared: '_parley_compared',
  parts: '_parley_parts',
  publications: '_parley_publications',
} as const

/** A publication that began. The newest one may complete; another that still runs has been overtaken. */
export interface AttemptRow {
  publication: number
  /** Of the process, so that two with the same number notice each other. */
  token: string
  warehouse: string
  began_at: string
}

/** A part of a published table, as a publication shows it. */
export interface PartRow {
  publication: number
  /** The table that has the rows. */
  source: string
  /** Empty for the rows without a time. */
  part: string
  /** Of the part among those of the table, from 0: the order in which they are read. */
  position: number
  /** The publication that wrote the rows. They are exactly the rows of the source with this part and this number. */
  written_in: number
  digest: string
  rows: number
  /** As they were sent. */
  bytes: number
}

/**
 * What a publication compared, for the next one. It is in a separate table, which a database of an earlier version gets
 * without any change of a table that it has.
 */
export interface ComparedRow {
  publication: number
  /** `Compared` as JSON. */
  compared: string
}

/** A complete publication. */
export interface CompletedRow {
  publication: number
  published_at: string
  complete_as_of: string | null
  fresh_as_of: string | null
  warehouse: string
  /** When content of the warehouse had last been purged; empty when it never was. */
  purged_at: string
}

/** Instants are text, so that the tables stay the same when the server is upgraded. */
const COLUMNS = {
  attempts: { publication: 'UInt64', token: 'String', warehouse: 'String', began_at: 'String' },
  compared: { publication: 'UInt64', compared: 'String' },
  parts: {
    publication: 'UInt64',
    source: 'String',
    part: 'String',
    position: 'UInt64',
    written_in: 'UInt64',
    digest: 'String',
    rows: 'UInt64',
    bytes: 'UInt64',
  },
  publications: {
    publication: 'UInt64',
    published_at: 'String',
    complete_as_of: nullable('String'),
    fresh_as_of: nullable('String'),
    warehouse: 'String',
    purged_at: 'String',
  },
} as const satisfies {
  attempts: Record<keyof AttemptRow, string>
  compared: Record<keyof ComparedRow, string>
  parts: Record<keyof PartRow, string>
  publications: Record<keyof CompletedRow, string>
}

/** SQL for the bytes of the cells of a row of `_parley_publications`. */
export const PUBLICATION_BYTES = Object.entries(COLUMNS.publications)
  .map(([name, type]) => (type === 'UInt64' ? '8' : `length(ifNull(${name}, ''))`))
  .join(' + ')

/** Partitions are how the parts of an earlier publication are removed. */
const ORDERS = {
  attempts: { partitionBy: 'tuple()', orderBy: 'publication' },
  compared: { partitionBy: 'tuple()', orderBy: 'publication' },
  parts: { partitionBy: 'publication', orderBy: '(source, part)' },
  publications: { partitionBy: 'tuple()', orderBy: 'publication' },
} as const

/** All rows are on the first shard, so that one statement adds all of a publication or none. */
export function createStateTables(place: DatabasePlace): string[] {
  return (['attempts', 'parts', 'publications', 'compared'] as const).flatMap(table =>
    createTable(place, {
      name: STATE_TABLES[table],
      columns: Object.entries(COLUMNS[table]).map(([name, type]) => ({ name, type })),
      ...ORDERS[table],
      shardBy: '0',
    }),
  )
}
