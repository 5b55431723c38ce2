import { EXIT_STATUS, StopError } from '../../errors.ts'
import type { Compared } from '../where-to-look.ts'
import type { ClickHouseConnection } from './connection.ts'
import { noDatabase } from './faults.ts'
import { PART_COLUMN, PUBLICATION_COLUMN } from './layout.ts'
import {
  type AttemptRow,
  type ComparedRow,
  type CompletedRow,
  type PartRow,
  PUBLICATION_BYTES,
  STATE_TABLES,
} from './state-tables.ts'
import {
  type ClickHouseColumn,
  type DatabasePlace,
  digestIn,
  expectedEngine,
  literal,
  tableIn,
} from './statements.ts'
import type { PublicationsSize } from './summary.ts'

/**
 * What the database has, and how a publication begins and completes in it:
 *
 * - begun: its number is in `_parley_attempts`. Numbers only grow, so rows of an interrupted publication, also those
 *   that arrive late, never belong to another one.
 * - parts recorded: a row of `_parley_parts` for each part of a table, once the server has all rows of the part.
 * - compared: `_parley_compared` has what the next publication need not compare, once this one is complete.
 * - complete: its number is in `_parley_publications`. Views show the highest number there.
 */
export interface DatabaseState {
  /** The newest complete publications, oldest first. */
  publications: readonly CompletedRow[]
  /** By publication and position: those of complete publications that are kept, and of interrupted ones. */
  parts: readonly PartRow[]
}

/** A table or view of the database. */
export interface Relation {
  /** Without what says that it is replicated. */
  engine: string
  /** Of a view of parley; empty for any other. */
  digest: string
}

/**
 * The tables and views of the database, by name.
 * @throws StopError 64 when it was published otherwise, 73 when there is no such database
 */
export async function readRelations(
  connection: ClickHouseConnection,
  place: DatabasePlace,
): Promise<ReadonlyMap<string, Relation>> {
  const { database, rows } = connection
  const [existing] = await rows(`SELECT name FROM system.databases WHERE name = ${literal(database)}`)
  if (existing === undefined) throw noDatabase(connection)
  const found = await rows<{ name: string; engine: string; digest: string }>(
    `SELECT name, engine, ${digestIn('create_table_query')} AS digest FROM system.tables WHERE database = ${literal(database)}`,
  )
  const relations = new Map(
    found.map(({ name, engine, digest }) => [
      name,
      { engine: engine.replace(/^(Replicated|Shared)/, ''), digest },
    ]),
  )
  const engine = relations.get(STATE_TABLES.publications)?.engine
  if (engine !== undefined && engine !== expectedEngine(place)) throw otherPlace(connection)
  return relations
}

export async function readState(
  connection: ClickHouseConnection,
  place: DatabasePlace,
  newest: number,
): Promise<DatabaseState> {
  const publications = await readPublications(connection, place, newest)
  const parts = await connection.rows<Record<keyof PartRow, string>>(
    `SELECT publication, source, part, position, written_in, digest, rows, bytes FROM ${tableIn(place, STATE_TABLES.parts)} ORDER BY publication, source, position`,
  )
  return { publications, parts: parts.map(partOf) }
}

const partOf = (row: Record<keyof PartRow, string>): PartRow => ({
  publication: Number(row.publication),
  source: row.source,
  part: row.part,
  position: Number(row.position),
  written_in: Number(row.written_in),
  digest: row.digest,
  rows: Number(row.rows),
  bytes: Number(row.bytes),
})

/** The newest complete publications, oldest first. */
export async function readPublications(
  { rows }: ClickHouseConnection,
  place: DatabasePlace,
  newest: number,
): Promise<readonly CompletedRow[]> {
  const found = await rows<Omit<CompletedRow, 'publication'> & { publication: string }>(
    `SELECT publication, published_at, complete_as_of, fresh_as_of, warehouse, purged_at FROM ${tableIn(place, STATE_TABLES.publications)} ORDER BY publication DESC LIMIT ${newest}`,
  )
  return found.map(row => ({ ...row, publication: Number(row.publication) })).reverse()
}

export async function measurePublications(
  { rows }: ClickHouseConnection,
  place: DatabasePlace,
  newest: number,
): Promise<PublicationsSize> {
  const [row] = await rows<Record<'counted' | 'bytes' | 'written', string>>(
    `SELECT count() AS counted, sum(${PUBLICATION_BYTES}) AS bytes, sumIf(${PUBLICATION_BYTES}, publication = ${newest}) AS written FROM ${tableIn(place, STATE_TABLES.publications)}`,
  )
  return { rows: Number(row?.counted), bytes: Number(row?.bytes), bytesWritten: Number(row?.written) }
}

/** What a complete publication compared. Undefined for one of an earlier version. */
export async function readCompared(
  { rows }: ClickHouseConnection,
  place: DatabasePlace,
  publication: number,
): Promise<Compared | undefined> {
  const [row] = await rows<Pick<ComparedRow, 'compared'>>(
    `SELECT compared FROM ${tableIn(place, STATE_TABLES.compared)} WHERE publication = ${publication}`,
  )
  return row && JSON.parse(row.compared)
}

/** Columns of tables of the database, in their order. */
export async function readColumns(
  { rows, database }: ClickHouseConnection,
  tables: readonly string[],
): Promise<ReadonlyMap<string, readonly ClickHouseColumn[]>> {
  const columns = new Map<string, ClickHouseColumn[]>(tables.map(table => [table, []]))
  if (tables.length === 0) return columns
  const found = await rows<ClickHouseColumn & { table: string }>(
    `SELECT table, name, type FROM system.columns WHERE database = ${literal(database)} AND table IN (${tables.map(literal).join(', ')})`,
  )
  for (const { table, name, type } of found) columns.get(table)?.push({ name, type })
  return columns
}

/** The rows that the server has of each part, whether a publication names it or not. */
export interface StoredPart {
  source: string
  part: string
  writtenIn: number
  rows: number
}

/** What a part is called where all of its forms are compared. */
export const formOf = (source: string, part: string, writtenIn: number): string =>
  `${source} ${writtenIn} ${part}`

/** @param writtenIn only the parts that this publication wrote */
export async function countParts(
  { rows }: ClickHouseConnection,
  place: DatabasePlace,
  sources: readonly string[],
  writtenIn?: number,
): Promise<StoredPart[]> {
  const where = writtenIn === undefined ? '' : ` WHERE ${PUBLICATION_COLUMN} = ${writtenIn}`
  const counts = sources.map(
    source =>
      `SELECT ${literal(source)} AS source, ${PART_COLUMN} AS part, ${PUBLICATION_COLUMN} AS written_in, count() AS counted FROM ${tableIn(place, source)}${where} GROUP BY ${PART_COLUMN}, ${PUBLICATION_COLUMN}`,
  )
  const stored: StoredPart[] = []
  for (let from = 0; from < counts.length; from += MOST_TABLES) {
    const found = await rows<{ source: string; part: string; written_in: string; counted: string }>(
      counts.slice(from, from + MOST_TABLES).join(' UNION ALL '),
    )
    for (const { source, part, written_in, counted } of found)
      stored.push({ source, part, writtenIn: Number(written_in), rows: Number(counted) })
  }
  return stored
}

/** In one statement: the server reads them all at the same time. */
const MOST_TABLES = 20

/**
 * Takes a number that no earlier publication had.
 * @throws StopError 75 when another process began at the same time
 */
export async function beginPublication(
  connection: ClickHouseConnection,
  place: DatabasePlace,
  attempt: Omit<AttemptRow, 'publication'>,
): Promise<number> {
  const publication = 1 + (await newestAttempt(connection, place))
  await insertRows(connection, place, 'attempts', [{ publication, ...attempt }])
  const claims = await connection.rows<{ token: string }>(
    `SELECT token FROM ${tableIn(place, STATE_TABLES.attempts)} WHERE publication = ${publication}`,
  )
  if (claims.some(({ token }) => token !== attempt.token)) throw overtaken(connection)
  return publication
}

export async function newestAttempt({ rows }: ClickHouseConnection, place: DatabasePlace): Promise<number> {
  const [row] = await rows<{ newest: string }>(
    `SELECT max(publication) AS newest FROM ${tableIn(place, STATE_TABLES.attempts)}`,
  )
  return Number(row?.newest ?? 0)
}

export const recordParts = (
  connection: ClickHouseConnection,
  place: DatabasePlace,
  parts: readonly PartRow[],
): Promise<void> => insertRows(connection, place, 'parts', parts)

export const recordCompared = (
  connection: ClickHouseConnection,
  place: DatabasePlace,
  publication: number,
  compared: Compared | undefined,
): Promise<void> =>
  insertRows(
    connection,
    place,
    'compared',
    compared ? [{ publication, compared: JSON.stringify(compared) }] : [],
  )

/**
 * Shows the publication to readers.
 * @throws StopError 75 when another publication began meanwhile, 64 when another warehouse completed one
 */
export async function completePublication(
  connection: ClickHouseConnection,
  place: DatabasePlace,
  row: CompletedRow,
): Promise<void> {
  if ((await newestAttempt(connection, place)) !== row.publication) throw overtaken(connection)
  refuseOtherWarehouse(connection, await readPublications(connection, place, 1), row.warehouse)
  await insertRows(connection, place, 'publications', [row])
}

async function insertRows(
  { insert }: ClickHouseConnection,
  place: DatabasePlace,
  table: keyof typeof STATE_TABLES,
  rows: readonly (AttemptRow | PartRow | ComparedRow | CompletedRow)[],
): Promise<void> {
  if (rows.length === 0) return
  await insert(
    `INSERT INTO ${tableIn(place, STATE_TABLES[table])} FORMAT JSONEachRow`,
    rows.map(row => JSON.stringify(row)).join('\n'),
  )
}

export function refuseOtherWarehouse(
  { name }: Pick<ClickHouseConnection, 'name'>,
  publications: readonly Pick<CompletedRow, 'warehouse'>[],
  warehouse: string,
): void {
  if (publications.every(other => other.warehouse === warehouse)) return
  throw new StopError(`${name} has the tables of another warehouse`, {
    code: 'publish-other-warehouse',
    hint: 'Each warehouse needs a separate database. Name another one.',
    exitStatus: EXIT_STATUS.usage,
  })
}

function overtaken({ name }: ClickHouseConnection): StopError {
  return new StopError(`Another process publishes to ${name}`, {
    code: 'publish-overtaken',
    hint: 'Let only one parley publish to a database. Run parley publish again; it continues from what the server has.',
    exitStatus: EXIT_STATUS.unfinished,
  })
}

function otherPlace({ name, cluster }: ClickHouseConnection): StopError {
  const earlier = cluster === undefined ? 'on a cluster' : 'without a cluster'
  return new StopError(`The tables in ${name} were published ${earlier}`, {
    code: 'publish-other-place',
    hint: 'Use the address of the earlier publications, with or without ?cluster, or name an empty database. Nothing was changed.',
    exitStatus: EXIT_STATUS.usage,
  })
}
