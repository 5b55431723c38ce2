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
  return `The data${ofResources(chosen)} are complete as of ${at}${exceptBefore(since)}.`
}

function exceptBefore(since: Completeness['since']): string {
  const days = [...new Set(since.values())].map(day => {
    const names = [...since].flatMap(([name, from]) => (from === day ? name : []))
    return `${names.join(' and ')} from before ${day.replace('T00:00:00.000Z', '')}`
  })
  return days.length === 0 ? '' : `, except ${days.join(' and ')} (sync.since)`
}

/** Which resources a statement is about; empty for all. */
function ofResources(names: readonly ResourceName[]): string {
  if (names.length === CATALOG.length) return ''
  return ` of ${names.length > 3 ? `${names.length} resources` : names.join(', ')}`
}

/** What was not read of a first read that is over: items from before `sync.since`. */
function leftOut(offered: readonly ResourceFacts[]): string {
  const names = offered
    .filter(({ resource, complete_as_of: at }) => at === null && TIMELINES.includes(resource))
    .map(({ resource }) => resource)
  return names.length === 0 ? '' : `, except ${names.join(' and ')} from before sync.since,`
}

function oldest(instants: readonly (string | null)[]): string | undefined {
  return instants.filter(at => at !== null).sort()[0]
}
