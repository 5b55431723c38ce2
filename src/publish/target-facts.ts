import type { Clock } from '../clock.ts'
import { readLastPublication, readShownTable } from './catalogue/complete-publication.ts'
import { PUBLICATIONS, type PublicationRow } from './publications.ts'
import { openTargetReader, type PublishTarget, type TargetSettings } from './storage/open.ts'
import type { TargetReader } from './storage/target-reader.ts'

/** What can be known of a target without a write, with a few requests. */
export interface TargetFacts {
  /** `others`: a publication would refuse the target. */
  holds: Awaited<ReturnType<TargetReader['holds']>>
  /** The last complete publication. */
  last: Pick<PublicationRow, 'publication' | 'published_at' | 'warehouse'> | undefined
  /** Where the tables say that their files are, if the settings say otherwise. */
  otherLocation: string | undefined
}

export interface TargetAccess {
  settings: TargetSettings
  clock: Clock
  signal: AbortSignal
}

/**
 * @throws StopError 73 when the target cannot be reached or read, 78 without credentials; the reason of the signal once
 *   it is aborted
 */
export async function targetFacts(target: PublishTarget, access: TargetAccess): Promise<TargetFacts> {
  const { location } = access.settings.publish
  // Without waits, several tries take no longer than one.
  const reader = await openTargetReader(target, { ...access, location, random: () => 0 })
  try {
    const holds = await reader.holds()
    const last = holds === 'ours' ? await readLastPublication(reader) : undefined
    const shown = last && (await readShownTable(reader, last, PUBLICATIONS))
    const place = shown?.address.slice(0, shown.address.indexOf(`/${PUBLICATIONS}/metadata/`))
    return { holds, last, otherLocation: place === reader.location ? undefined : place }
  } finally {
    reader.close()
  }
}
