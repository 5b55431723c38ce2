import { createFingerprint, type Mark } from '../export/fingerprint.ts'
import { type Partition, type PartitionReading, readPartitions, type Sink } from '../export/partitions.ts'
import type { PartReader } from './row-ranges.ts'
import type { PublishedTable } from './tables.ts'

/** The digest of every part of a table as it is in the warehouse, in the order of the parts. */
export function readPartDigests(
  reading: PartitionReading,
  table: PublishedTable,
  reader: PartReader,
): Promise<Map<Partition, Mark>> {
  return readPartitions({ ...reading, isPartitioned: true }, reader.all(), () => digestSink(table))
}

function digestSink({ read }: PublishedTable): Sink<Mark> {
  const fingerprint = createFingerprint(read.columns)
  return {
    add: fingerprint.add,
    finish: () => ({ fingerprint: fingerprint.value(), rows: fingerprint.rows() }),
    abandon: () => undefined,
  }
}
