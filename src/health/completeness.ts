import { MINUTE_MS } from '../base/clock.ts'
import { CATALOG } from '../catalog/catalog.ts'
import type { ResourceName } from '../declare/resource-names.ts'
import type { ResourceFacts, StatusReport } from '../store/status/report.ts'
import { type Completeness, readStateOf } from '../store/status/status.ts'
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
  const names = resources.map(({ resource }) => resource)
  const { unread } = readStateOf(resources)
  const read = resources.filter(({ resource }) => !unread.includes(resource))
  const { complete_as_of: complete, since } = readStateOf(read)
  if (complete === null) {
    if (unread.length === 0)
      return { text: `This workspace does not offer ${names.join(', ')}`, detail: null }
    const detail = 'Spans that became due after the first read are still to be read'
    return { text: `Not everything${ofResources(unread)} is here yet`, detail }
  }
  const left = since === null ? '' : `${exceptBefore(since)},`
  const here = `everything published${ofResources(names.filter(name => !unread.includes(name)))} before ${clockText(complete, now)}${left} is`
  if (writer?.running !== true) {
    const detail =
      'No process reads at the moment. parley backfill reads what is new, and parley daemon keeps reading'
    return { text: `Complete: ${here} here`, detail }
  }
  if (writer.command === 'backfill')
    return { text: `Reading what is new: ${here} already here`, detail: null }
  const { fresh_as_of: fresh } = readStateOf(resources.filter(({ resource }) => TIMELINES.includes(resource)))
  if (fresh === null || Date.parse(fresh) - Date.parse(complete) < SAME_MS)
    return { text: `Up to date: ${here} here`, detail: 'Nothing to do' }
  const bound = boundOf(read)
  const older =
    bound === undefined
      ? 'Older dates are read again at intervals'
      : `Items ${fromBefore(bound)} are not read again`
  return {
    text: `Up to date: what is new until ${clockText(fresh, now)} is here`,
    detail: `Nothing to do. ${older}: ${here} here, whatever its date`,
  }
}

/**
 * The instant of `sync.since` where it leaves out older items that were read before it was set. Logs begin by
 * themselves.
 */
const boundOf = (resources: readonly ResourceFacts[]): string | undefined =>
  resources.flatMap(({ resource, complete_as_of: all, read_since: bounded }) =>
    TIMELINES.includes(resource) && all !== null && (bounded?.complete_as_of ?? '') > all
      ? (bounded?.since ?? [])
      : [],
  )[0]

/** Up to when the data of a copy, an export or a report are complete, as a sentence. Pure. */
export function completeSentence({ complete_as_of: at, chosen, unread, since }: Completeness): string {
  if (at === null) {
    const names = unread.length === CATALOG.length ? 'every resource' : unread.join(', ')
    return `The data${ofResources(chosen)} are not complete yet: parley has not read the whole history of ${names}.`
  }
  const except = since === null ? '' : exceptBefore(since)
  return `The data${ofResources(chosen)} are complete as of ${at}${except}.`
}

/** What `sync.since` leaves out. */
export const fromBefore = (since: string): string =>
  `from before ${since.replace('T00:00:00.000Z', '')} (sync.since)`

const exceptBefore = (since: string): string => `, except items ${fromBefore(since)}`

/** Which resources a statement is about; empty for all. */
function ofResources(names: readonly ResourceName[]): string {
  if (names.length === CATALOG.length) return ''
  return ` of ${names.length > 3 ? `${names.length} resources` : names.join(', ')}`
}
