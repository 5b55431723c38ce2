import type { Mark } from '../export/fingerprint.ts'
import type { PartitionReading } from '../export/partitions.ts'
import { readPartDigests } from './part-digests.ts'
import type { PartName, PartReader } from './row-ranges.ts'
import type { PublishedTable } from './tables.ts'
import type { Looking } from './where-to-look.ts'

/** Finds the parts of a table that differ from those of a target, by their digests. */

/** A part that the target has. */
export interface KnownPart {
  part: PartName
  digest: string
  /** The target has lost its rows, so they have to be written again. */
  isMissing: boolean
}

/** A part as the warehouse has it now. `same`: the target has the same rows. Otherwise `mark` is what to write. */
export type ComparedPart<Known> =
  | { part: PartName; same: Known }
  | { part: PartName; same: undefined; mark: Mark }

export interface PartsToCompare<Known> {
  reader: PartReader
  known: readonly Known[]
  lookAt: Looking
}

/** Returns all parts in their order. Those that are not looked at count as the same. A part without rows is not in it. */
export async function compareParts<Known extends KnownPart>(
  reading: PartitionReading,
  table: PublishedTable,
  { reader, known, lookAt }: PartsToCompare<Known>,
): Promise<readonly ComparedPart<Known>[]> {
  const isComplete = !known.some(({ isMissing }) => isMissing)
  const looked = lookAt === 'all' || !isComplete ? 'all' : reader.noted(lookAt)
  if (looked.length === 0) return known.map(same => ({ part: same.part, same }))
  const marks = await readPartDigests(reading, table, reader.rows(looked))
  const kept = looked === 'all' ? [] : known.filter(({ part }) => !looked.includes(part))
  const earlier = new Map(known.map(one => [one.part, one]))
  const compared = [...marks].map(([partition, mark]): ComparedPart<Known> => {
    const part = partition ?? null
    const before = earlier.get(part)
    const isSame = before?.digest === mark.fingerprint && !before.isMissing
    return isSame ? { part, same: before } : { part, same: undefined, mark }
  })
  return [...kept.map(same => ({ part: same.part, same })), ...compared].toSorted((one, other) =>
    reader.compare(one.part, other.part),
  )
}
