import { type Clock, systemClock } from '../../../src/clock.ts'
import { parseClickHouseAddress } from '../../../src/publish/clickhouse/address.ts'
import { publishToClickHouse } from '../../../src/publish/clickhouse/publish.ts'
import type { DatabaseSummary } from '../../../src/publish/clickhouse/summary.ts'
import { openDatabase } from '../../../src/store/database/open.ts'

export interface ClickHouseTarget {
  /** `host:port` */
  host: string
  database: string
  /** Of the address, such as `?cluster=two`. */
  parameters?: string
}

interface Options {
  keep?: number
  full?: boolean
  version?: string
  /** Default: all. */
  tables?: readonly string[]
  clock?: Clock
  onProgress?: () => void
}

/** Publishes a warehouse as the command does, over a separate connection. */
export async function publishToDatabase(
  warehouse: string,
  { host, database, parameters = '' }: ClickHouseTarget,
  {
    keep = 2,
    full = false,
    version = '1.2.3',
    tables,
    clock = systemClock(),
    onProgress = () => {},
  }: Options = {},
): Promise<DatabaseSummary> {
  const address = parseClickHouseAddress(`clickhouse://${host}/${database}${parameters}`)
  if (!address) throw new Error('The address is not one of ClickHouse')
  const db = openDatabase({ path: warehouse, readonly: true })
  try {
    return await publishToClickHouse({
      db,
      address,
      user: 'default',
      password: undefined,
      clock,
      version,
      keep,
      full,
      tables,
      signal: new AbortController().signal,
      onProgress,
    })
  } finally {
    db.close()
  }
}
