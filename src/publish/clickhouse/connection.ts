import { Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { ClickHouseLogLevel, type ClickHouseSettings, createClient } from '@clickhouse/client'
import type { ClickHouseAddress } from './address.ts'
import { type DatabaseWords, noClickHouse, serverError } from './faults.ts'
import { literal } from './statements.ts'

/**
 * Sends statements to a server by HTTP, one after the other. No statement is repeated: an INSERT whose answer was lost
 * may have been carried out.
 */
export interface ClickHouseConnection extends DatabaseWords {
  /** Of the server, such as `26.7.2.1`. */
  version: string
  /** Rows as JSON objects: whole numbers of 64 bits are text. */
  rows<Row>(sql: string): Promise<Row[]>
  run(sql: string): Promise<void>
  /** The answer in pieces as they arrive, in the format that the statement names. */
  pieces(sql: string): AsyncGenerator<Buffer>
  /** @param sql `INSERT … FORMAT …`, without a list of columns: it becomes part of a URL */
  insert(sql: string, data: string | Buffer): Promise<void>
  close(): Promise<void>
}

export interface ConnectionOptions {
  address: ClickHouseAddress
  user: string
  password: string | undefined
  /** The connection sends no settings: a user that may only read may not be allowed to change any. */
  isReadOnly?: boolean
  /** Stops every statement. */
  signal: AbortSignal
}

/** A statement that takes longer is given up. */
const TIMEOUT_MS = 300_000
/** How long an INSERT waits for the replicas. */
const QUORUM_TIMEOUT_MS = 60_000

/** Known to servers of all versions. */
const SETTINGS: ClickHouseSettings = {
  output_format_json_quote_64bit_integers: 1,
  // An INSERT ends when every shard has the rows.
  insert_distributed_sync: 1,
  // Two parts may have equal rows.
  insert_deduplicate: 0,
  // Statements read what earlier ones wrote, although replicas may lag.
  load_balancing: 'in_order',
  max_execution_time: TIMEOUT_MS / 1000,
}

/** @throws StopError 73 with what to do for every failure; the reason of the signal once it is aborted */
export async function openClickHouse(options: ConnectionOptions): Promise<ClickHouseConnection> {
  const connection = createConnection(options)
  try {
    const [server] = await connection.rows<{ version: string }>('SELECT version() AS version')
    if (typeof server?.version !== 'string') throw noClickHouse(connection)
    return {
      ...connection,
      version: server.version,
      insert: insertAtAll(connection, await replicasOf(connection, options.address)),
    }
  } catch (error) {
    await connection.close()
    throw error
  }
}

/** An INSERT into replicated tables ends when every replica has the rows, since readers may ask any of them. */
const insertAtAll =
  ({ insert }: StatementSender, replicas: number): ClickHouseConnection['insert'] =>
  (sql, data) =>
    insert(
      sql,
      data,
      replicas > 1 ? { insert_quorum: String(replicas), insert_quorum_timeout: QUORUM_TIMEOUT_MS } : {},
    )

async function replicasOf(
  { rows }: StatementSender,
  { cluster, isReplicated }: ClickHouseAddress,
): Promise<number> {
  if (!isReplicated || cluster === undefined) return 1
  const [row] = await rows<{ replicas: string }>(
    `SELECT toUInt64(max(replica_num)) AS replicas FROM system.clusters WHERE cluster = ${literal(cluster)}`,
  )
  return Number(row?.replicas ?? 1)
}

interface StatementSender extends Omit<ClickHouseConnection, 'insert' | 'version'> {
  insert(sql: string, data: string | Buffer, settings: ClickHouseSettings): Promise<void>
}

function createConnection({
  address,
  user,
  password,
  isReadOnly = false,
  signal,
}: ConnectionOptions): StatementSender {
  const { name, url, database, cluster } = address
  const words = { name, url, database, cluster, isReadOnly }
  const client = createClient({
    url,
    username: user,
    password: password ?? '',
    application: 'parley',
    request_timeout: TIMEOUT_MS,
    clickhouse_settings: isReadOnly ? {} : SETTINGS,
    // A server closes a connection that was idle for some seconds, and a statement may be on its way to it.
    keep_alive: { enabled: false },
    // It would print messages of the server, which may quote rows.
    log: { level: ClickHouseLogLevel.OFF },
  })
  const send = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    if (signal.aborted) throw signal.reason
    try {
      return await work()
    } catch (error) {
      if (signal.aborted) throw signal.reason
      throw serverError(words, error)
    }
  }
  return {
    ...words,
    rows: sql =>
      send(async () => {
        const answer = await client.query({ query: sql, format: 'JSONEachRow', abort_signal: signal })
        return answer.json()
      }),
    run: sql =>
      send(async () => {
        await client.command({ query: sql, abort_signal: signal })
      }),
    async *pieces(sql) {
      const stream = await send(async () => (await client.exec({ query: sql, abort_signal: signal })).stream)
      const pieces = stream[Symbol.asyncIterator]()
      try {
        for (;;) {
          const { done, value } = await send(() => pieces.next())
          if (done) return
          yield value
        }
      } finally {
        stream.destroy()
      }
    },
    insert: (sql, data, settings) =>
      send(async () => {
        const { stream } = await client.exec({
          query: sql,
          values: Readable.from([data]),
          // Otherwise an error may follow the status.
          clickhouse_settings: { ...settings, wait_end_of_query: 1 },
          abort_signal: signal,
        })
        stream.resume()
        await finished(stream)
      }),
    close: () => client.close(),
  }
}
