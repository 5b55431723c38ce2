import { digestSink, type Mark } from '../export/fingerprint.ts'
import { type Partition, type PartitionReading, readPartitions } from '../export/partitions.ts'
import type { PartReader } from './row-ranges.ts'
import type { PublishedTable } from './tables.ts'

/** The digest of every part of a table as it is in the warehouse, in the order of the parts. */
export function readPartDigests(
  reading: PartitionReading,
  { read }: PublishedTable,
  reader: PartReader,
): Promise<Map<Partition, Mark>> {
  return readPartitions({ ...reading, isPartitioned: true }, reader.all(), () => digestSink(read.columns))
}
