import type { Clock } from '../base/clock.ts'
import { afterExpiry, expiredSnapshots, nextInstant } from './iceberg/metadata.ts'
import { metadataAddress, type TableVersion, writeHint, writeMetadataIfAbsent } from './metadata-file.ts'
import type { Storage } from './storage/storage.ts'

/**
 * Expires snapshots of a table once a publication is complete. Until then, the snapshots of the last complete
 * publication stay, since readers may use them.
 */

/** The property that holds when content of the warehouse had last been purged, as of the newest snapshot. */
export const PURGED_PROPERTY = 'parley.purged-at'

export interface Expiry {
  storage: Storage
  clock: Clock
  /** The snapshots that kept publications show. */
  kept: ReadonlySet<number>
  /** When content of the warehouse was last purged; empty when it never was. */
  purgedAt: string
}

/**
 * Earlier snapshots may hold purged content, also where the purge changed no row of this table: the row may have
 * changed before. After a purge, only the current snapshot stays.
 */
export async function expireSnapshots(
  { storage, clock, kept, purgedAt }: Expiry,
  table: TableVersion,
): Promise<TableVersion> {
  const { folder, metadata, version } = table
  const isErasing = metadata.properties[PURGED_PROPERTY] !== purgedAt
  const staying = isErasing ? new Set<number>() : kept
  if (!isErasing && expiredSnapshots(metadata, staying).length === 0) return table
  const expired = afterExpiry(metadata, {
    kept: staying,
    properties: { [PURGED_PROPERTY]: purgedAt },
    at: nextInstant(metadata, clock.now()),
    replaces: { address: metadataAddress(storage, folder, version) },
  })
  const next = { folder, metadata: expired, version: version + 1 }
  if (!(await writeMetadataIfAbsent(storage, next))) return table
  await writeHint(storage, next)
  return next
}
