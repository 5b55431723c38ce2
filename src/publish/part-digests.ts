import { digestSink, type Mark } from '../export/fingerprint.ts'
import type { StoredCell } from '../export/parquet-types.ts'
import { type Partition, type PartitionReading, readPartitions } from '../export/partitions.ts'
import type { PublishedTable } from './tables.ts'

/** The digest of every part of a table that has rows among those given, in the order of the parts. */
export function readPartDigests(
  reading: PartitionReading,
  { read }: PublishedTable,
  rows: Iterable<StoredCell[]>,
): Promise<Map<Partition, Mark>> {
  return readPartitions({ ...reading, isPartitioned: true }, rows, () => digestSink(read.columns))
}
