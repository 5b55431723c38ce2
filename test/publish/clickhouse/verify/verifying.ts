import { systemClock } from '../../../../src/clock.ts'
import { parseClickHouseAddress } from '../../../../src/publish/clickhouse/address.ts'
import {
  type DatabaseVerifySummary,
  verifyDatabase,
} from '../../../../src/publish/clickhouse/verify/verify.ts'
import { openDatabase } from '../../../../src/store/database/open.ts'
import type { ClickHouseTarget } from '../publishing.ts'

/**
 * Verifies a database as the command does.
 * @param warehouse undefined: the database alone
 */
export async function verify(
  warehouse: string | undefined,
  { host, database, parameters = '' }: ClickHouseTarget,
): Promise<DatabaseVerifySummary> {
  const target = `clickhouse://${host}/${database}${parameters}`
  const address = parseClickHouseAddress(target)
  if (!address) throw new Error('The address is not one of ClickHouse')
  const db = warehouse === undefined ? undefined : openDatabase({ path: warehouse, readonly: true })
  try {
    return await verifyDatabase({
      db,
      address,
      target,
      user: 'default',
      password: undefined,
      clock: systemClock(),
      signal: new AbortController().signal,
      onProgress: () => undefined,
    })
  } finally {
    db?.close()
  }
}
