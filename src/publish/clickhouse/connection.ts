import { Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import {
  type ClickHouseClient,
  ClickHouseLogLevel,
  type ClickHouseSettings,
  createClient,
} from '@clickhouse/client'
import type { ClickHouseAddress } from './address.ts'
import { type DatabaseWords, serverError } from './faults.ts'

/**
 * Sends statements to a server by HTTP, one after the other. No statement is repeated: an INSERT whose answer was lost
 * may have been carried out.
 */
export interface ClickHouseConnection extends DatabaseWords {
  /** Rows as JSON objects: whole numbers of 64 bits are text. */
  rows<Row>(sql: string): Promise<Row[]>
  run(sql: string): Promise<void>
  /** @param sql `INSERT … FORMAT …`, without a list of columns: it becomes part of a URL */
  insert(sql: string, data: string | Buffer): Promise<void>
  close(): Promise<void>
}

export interface ConnectionOptions {
  address: ClickHouseAddress
  user: string
  password: string | undefined
  /** Stops every statement. */
  signal: AbortSignal
}

/** A statement that takes longer is given up. */
const TIMEOUT_MS = 300_000

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
export function openClickHouse({ address, user, password, signal }: ConnectionOptions): ClickHouseConnection {
  const words = { name: address.name, url: address.url, database: address.database, cluster: address.cluster }
  const client = createClient({
    url: address.url,
    username: user,
    password: password ?? '',
    application: 'parley',
    request_timeout: TIMEOUT_MS,
    clickhouse_settings: SETTINGS,
    // It would print messages of the server, which may quote rows.
    log: { level: ClickHouseLogLevel.OFF },
  })
  const send = async <Result>(work: (client: ClickHouseClient) => Promise<Result>): Promise<Result> => {
    if (signal.aborted) throw signal.reason
    try {
      return await work(client)
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
    insert: (sql, data) =>
      send(async () => {
        const { stream } = await client.exec({
          query: sql,
          values: Readable.from([data]),
          // Otherwise an error may follow the status.
          clickhouse_settings: { wait_end_of_query: 1 },
          abort_signal: signal,
        })
        stream.resume()
        await finished(stream)
      }),
    close: () => client.close(),
  }
}
