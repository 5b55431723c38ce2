import { createHash } from 'node:crypto'
import type { ClickHouseAddress } from './address.ts'

/** SQL that creates, divides and removes tables of a ClickHouse database, on one server or on a cluster. Pure. */

export type DatabasePlace = Pick<ClickHouseAddress, 'database' | 'cluster' | 'isReplicated'>

export interface ClickHouseColumn {
  name: string
  /** In SQL. */
  type: string
}

export interface TableToCreate {
  name: string
  columns: readonly ClickHouseColumn[]
  partitionBy: string
  orderBy: string
  settings?: string
  /** SQL of a number: to which shard of a cluster a row goes. */
  shardBy: string
}

export const quoted = (name: string): string => `\`${name.replaceAll(/[\\`]/g, '\\$&')}\``

export const literal = (text: string): string => `'${text.replaceAll(/[\\']/g, '\\$&')}'`

export const nullable = (type: string): string => `Nullable(${type})`

/** The name with its database, for statements that may run on any server and with any default database. */
export const tableIn = ({ database }: DatabasePlace, name: string): string =>
  `${quoted(database)}.${quoted(name)}`

/** The table that has the rows: on a cluster, that of one shard. */
export const storedName = ({ cluster }: DatabasePlace, name: string): string =>
  cluster === undefined ? name : `${name}${LOCAL}`

const LOCAL = '_local'

const onCluster = ({ cluster }: DatabasePlace): string =>
  cluster === undefined ? '' : ` ON CLUSTER ${quoted(cluster)}`

/**
 * On a cluster, a table of rows on each shard, and one of the same name without `_local` that reads and writes them
 * all.
 */
export function createTable(place: DatabasePlace, table: TableToCreate): string[] {
  const { cluster, database } = place
  const columns = table.columns.map(({ name, type }) => `${quoted(name)} ${type}`).join(', ')
  const create = (name: string) =>
    `CREATE TABLE IF NOT EXISTS ${tableIn(place, name)}${onCluster(place)} (${columns})`
  const stored = storedName(place, table.name)
  const settings = table.settings === undefined ? '' : ` SETTINGS ${table.settings}`
  const statements = [
    `${create(stored)} ENGINE = ${engineOf(place, stored)} PARTITION BY ${table.partitionBy} ORDER BY ${table.orderBy}${settings}`,
  ]
  if (cluster === undefined) return statements
  const distributed = [cluster, database, stored].map(literal).join(', ')
  return [...statements, `${create(table.name)} ENGINE = Distributed(${distributed}, ${table.shardBy})`]
}

function engineOf({ database, isReplicated }: DatabasePlace, stored: string): string {
  if (!isReplicated) return 'MergeTree'
  return `ReplicatedMergeTree(${literal(`/clickhouse/tables/{shard}/${database}/${stored}`)}, '{replica}')`
}

/** The engine that `system.tables` shows for a table of `createTable`, without the prefix of replication. */
export const expectedEngine = ({ cluster }: DatabasePlace): string =>
  cluster === undefined ? 'MergeTree' : 'Distributed'

export function dropTable(place: DatabasePlace, name: string, isModern: boolean): string[] {
  const names = place.cluster === undefined ? [name] : [name, storedName(place, name)]
  // Without SYNC, newer servers keep the files for minutes, and a replicated table its path.
  const sync = isModern ? ' SYNC' : ''
  return names.map(one => `DROP TABLE IF EXISTS ${tableIn(place, one)}${onCluster(place)}${sync}`)
}

export function dropView(place: DatabasePlace, name: string, isModern: boolean): string {
  return `DROP ${isModern ? 'VIEW' : 'TABLE'} IF EXISTS ${tableIn(place, name)}${onCluster(place)}`
}

/** @param partitions values of the partition key, in SQL */
export function dropPartitions(place: DatabasePlace, name: string, partitions: readonly string[]): string[] {
  const statements: string[] = []
  for (let from = 0; from < partitions.length; from += MOST_PARTITIONS) {
    const drops = partitions.slice(from, from + MOST_PARTITIONS).map(value => `DROP PARTITION ${value}`)
    statements.push(
      `ALTER TABLE ${tableIn(place, storedName(place, name))}${onCluster(place)} ${drops.join(', ')}`,
    )
  }
  return statements
}

/** In one statement. */
const MOST_PARTITIONS = 100

export interface ViewToCreate {
  name: string
  columns: readonly (ClickHouseColumn & { doc: string })[]
  select: string
}

/** A digest of the view. It is also in its definition, so that a view that changed is found. */
export const viewDigest = (view: ViewToCreate): string =>
  createHash('sha256').update(JSON.stringify(view)).digest('hex').slice(0, 16)

const DIGEST_MARK = 'parley-view-'

/** SQL that finds the digest in a definition. */
export const digestIn = (definition: string): string =>
  `extract(${definition}, ${literal(`${DIGEST_MARK}([0-9a-f]+)`)})`

/** Older servers cannot replace a view in one step: for an instant, there is none. */
export function createView(place: DatabasePlace, view: ViewToCreate, isModern: boolean): string[] {
  const named = `${tableIn(place, view.name)}${onCluster(place)}`
  const select = `WITH ${literal(`${DIGEST_MARK}${viewDigest(view)}`)} AS _parley_view ${view.select}`
  if (!isModern)
    return [dropView(place, view.name, isModern), `CREATE VIEW IF NOT EXISTS ${named} AS ${select}`]
  const columns = view.columns.map(({ name, type, doc }) => `${quoted(name)} ${type}${commentOf(doc)}`)
  return [`CREATE OR REPLACE VIEW ${named} (${columns.join(', ')}) AS ${select}`]
}

const commentOf = (doc: string): string => (doc === '' ? '' : ` COMMENT ${literal(doc)}`)
