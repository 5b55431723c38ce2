import { DAY_MS, isoInstant } from '../../../base/clock.ts'
import type { ParsedItem } from '../../../declare/parsed-item.ts'
import type { PeriodicFeed } from '../../../declare/resource.ts'
import type { StoredItem } from '../../../store/rows/write-items.ts'
import type { Segment } from '../../../store/sync/segments.ts'
import type { EngineContext } from '../../context/context.ts'

interface Reading {
  hasUndated: boolean
  hasNewUndated: boolean
}

export type UndatedEntries = ReturnType<typeof createUndatedEntries>

/**
 * The API may list an entry of a log without its time, by mistake in one answer or always. Only a second reading of the
 * period shows which. So a period stays open until a second reading brings no new entry without a time. Readings are
 * kept in memory. If a restart interrupts one, and the log has entries without a time, the period is read once more.
 */
export function createUndatedEntries(
  { store }: EngineContext,
  feed: PeriodicFeed,
  timeOf: (entry: ParsedItem) => string | null,
) {
  const readings = new Map<number, Reading>()
  const isUndated = (entry: ParsedItem) => timeOf(entry) === null
  return {
    /** Notes the page that is about to be requested. */
    requesting({ id, cursor }: Segment): void {
      if (cursor === null) readings.set(id, { hasUndated: false, hasNewUndated: false })
    },
    /** Corrects stored entries without a time that this page lists with their time. Runs before the page is stored. */
    correct({ listedAt }: Segment, entries: readonly ParsedItem[]): void {
      // The first reading of a period has nothing to correct. If the page itself still lists entries without a time,
      // the stored ones count as separate entries.
      if (listedAt === null || entries.some(isUndated) || !store.rowTimes.hasUndated(feed)) return
      store.rowTimes.completeUndated(feed, entries)
    },
    stored({ id }: Segment, entries: readonly StoredItem[]): void {
      const undated = entries.filter(({ item }) => isUndated(item))
      const reading = readings.get(id)
      if (!reading || undated.length === 0) return
      reading.hasUndated = true
      reading.hasNewUndated ||= undated.some(({ written }) => written.status === 'inserted')
    },
    /** Ends a reading of the period. Returns whether the period may be closed. */
    ended({ id, listedAt }: Segment): boolean {
      const reading = readings.get(id)
      readings.delete(id)
      if (!store.rowTimes.hasUndated(feed)) return true
      if (reading === undefined || listedAt === null) return false
      // The previous reading may have stored undated copies of entries of any period that are also stored with a time.
      const since = isoInstant(Date.parse(listedAt) - DAY_MS)
      if (!reading.hasUndated) store.rowTimes.removeUndatedCopies(feed, since)
      return !reading.hasNewUndated
    },
  }
}
