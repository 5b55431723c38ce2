import { createHash } from 'node:crypto'
import { TABLES } from '../../catalog/catalog.ts'
import type { PublishedTable } from '../tables.ts'
import type { ClickHouseDialect } from './dialect.ts'
import {
  type ClickHouseColumn,
  type DatabasePlace,
  nullable,
  quoted,
  type TableToCreate,
} from './statements.ts'

/**
 * The table that has the rows of a published table: `_parley_<folder>_<digest of the columns>`. It is never altered. A
 * published table with other columns gets another one, and its view moves to that. Pure.
 */

/** The part of the published table, such as a month. It has the empty text for the rows without a time. */
export const PART_COLUMN = '_parley_part'
/** The number of the publication that wrote the row. */
export const PUBLICATION_COLUMN = '_publication'

export interface TableLayout extends TableToCreate {
  /** The columns as readers see them, in the order of `written.columns`. */
  published: readonly PublishedColumn[]
}

export interface PublishedColumn extends ClickHouseColumn {
  /** The name in the table that has the rows. */
  stored: string
}

export function layoutOf(
  table: PublishedTable,
  { types, isModern }: ClickHouseDialect,
  place: DatabasePlace,
): TableLayout {
  const published = table.written.columns.map(({ name, kind }) => ({
    name,
    stored: storedColumn(name),
    type: nullable(types[kind].name),
  }))
  const order = isModern ? sortKey(table) : []
  const { cluster, isReplicated } = place
  const digest = digestOf([published, order, ...(cluster === undefined ? [] : [cluster, isReplicated])])
  return {
    name: `${namePrefix(table.read.folder)}${digest}`,
    published,
    columns: [
      ...published.map(({ stored: name, type }) => ({ name, type })),
      { name: PART_COLUMN, type: 'String' },
      { name: PUBLICATION_COLUMN, type: 'UInt64' },
    ],
    partitionBy: `(${PART_COLUMN}, ${PUBLICATION_COLUMN})`,
    orderBy: order.length === 0 ? 'tuple()' : `(${order.map(quoted).join(', ')})`,
    // Merged files may have content that is purged later. The server would keep them for eight minutes.
    settings: `old_parts_lifetime = 60${order.length === 0 ? '' : ', allow_nullable_key = 1'}`,
    shardBy: 'rand()',
  }
}

/** The server has files that are named after columns, with three characters for each byte that is no letter or digit. */
function storedColumn(name: string): string {
  if (encodeURIComponent(name).length <= LONGEST_FILE_NAME) return name
  return `${name.replaceAll(/\W+/g, '_').slice(0, 50)}_${digestOf(name)}`
}

const LONGEST_FILE_NAME = 150

const namePrefix = (folder: string): string => `_parley_${folder}_`

const digestOf = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 8)

/** Whether a table has the rows of a published table, in this or an earlier layout. */
export function isLayoutOf(folder: string, name: string): boolean {
  const prefix = namePrefix(folder)
  return name.startsWith(prefix) && /^[0-9a-f]{8}$/.test(name.slice(prefix.length))
}

/** The published table whose rows a table has. Undefined for any other table. */
export const folderOfSource = (name: string): string | undefined =>
  /^_parley_(.+)_[0-9a-f]{8}$/.exec(name)?.[1]

/** Whether a table has the rows of any published table. */
export const isSource = (name: string): boolean => folderOfSource(name) !== undefined

/** Time first, so that a condition on it reads few rows. */
function sortKey({ read, written, partition }: PublishedTable): string[] {
  const names = new Set(written.columns.map(({ name }) => name))
  const time = partition?.transform === 'month' ? [partition.name] : []
  const key = TABLES.get(read.name)?.table.key ?? ['id']
  return [...new Set([...time, ...key])].filter(name => names.has(name))
}
