import { MINUTE_MS } from '../base/clock.ts'
import { CATALOG } from '../catalog/catalog.ts'
import type { ResourceName } from '../declare/resource-names.ts'
import type { ResourceFacts, StatusReport } from '../store/status/report.ts'
import type { Completeness } from '../store/status/status.ts'
import { clockText } from '../terminal/wording.ts'

/** The resources whose newest end is polled. */
export const TIMELINES = CATALOG.filter(({ feeds }) =>
  Object.values(feeds).some(({ mode }) => mode === 'timeline'),
).map(({ name }) => name)

/** When the instants for new and for old items differ by less than this, one sentence states both. */
const SAME_MS = 15 * MINUTE_MS

/**
 * Up to when a warehouse without a problem is complete. There are two instants: new items are read every minute, and
 * items with an older date at intervals that grow with their age. Pure.
 */
export function completenessText(
  resources: readonly ResourceFacts[],
  { writer, now }: Pick<StatusReport, 'writer'> & { now: number },
): { text: string; detail: string | null } {
  const offered = resources.filter(({ state }) => state !== 'unavailable')
  const complete = oldest(offered.map(({ complete_as_of: at }) => at)) ?? '-'
  const here = `everything published${ofResources(resources.map(({ resource }) => resource))} before ${clockText(complete, now)}${leftOut(offered)} is`
  if (writer?.running !== true) {
    const detail =
      'No process reads at the moment. parley backfill reads what is new, and parley daemon keeps reading'
    return { text: `Complete: ${here} here`, detail }
  }
  if (writer.command === 'backfill')
    return { text: `Reading what is new: ${here} already here`, detail: null }
  const timelines = offered.filter(({ resource }) => TIMELINES.includes(resource))
  const fresh = oldest(timelines.map(({ fresh_as_of: at }) => at))
  if (fresh === undefined || Date.parse(fresh) - Date.parse(complete) < SAME_MS)
    return { text: `Up to date: ${here} here`, detail: 'Nothing to do' }
  return {
    text: `Up to date: what is new until ${clockText(fresh, now)} is here`,
    detail: `Nothing to do. Older dates are read again at intervals: ${here} here, whatever its date`,
  }
}

/** Up to when the data of a copy, an export or a report are complete, as a sentence. Pure. */
export function completeSentence({ complete_as_of: at, chosen, unread, since }: Completeness): string {
  if (at === null) {
    const names = unread.length === CATALOG.length ? 'every resource' : unread.join(', ')
    return `The data${ofResources(chosen)} are not complete yet: parley has not read the whole history of ${names}.`
  }
  const except = since === null ? '' : `, except items ${fromBefore(since)}`
  return `The data${ofResources(chosen)} are complete as of ${at}${except}.`
}

/** What `sync.since` leaves out. */
export const fromBefore = (since: string): string =>
  `from before ${since.replace('T00:00:00.000Z', '')} (sync.since)`

/** Which resources a statement is about; empty for all. */
function ofResources(names: readonly ResourceName[]): string {
  if (names.length === CATALOG.length) return ''
  return ` of ${names.length > 3 ? `${names.length} resources` : names.join(', ')}`
}

/** What a first read that is over did not read: items from before `sync.since`, also details of their meetings. */
function leftOut(offered: readonly ResourceFacts[]): string {
  const isCut = offered.some(
    ({ resource, complete_as_of: at }) => at === null && TIMELINES.includes(resource),
  )
  return isCut ? ', except items from before sync.since,' : ''
}

function oldest(instants: readonly (string | null)[]): string | undefined {
  return instants.filter(at => at !== null).sort()[0]
}
