import type { ApiReader } from '../../api/reader.ts'
import { resourceNamed } from '../../catalog/catalog.ts'
import { type DeclaredFeed, itemsOf, LISTS, type ListFeed, listsOf } from '../../catalog/feeds.ts'
import type { ItemFeed } from '../../declare/resource.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import type { Lane } from '../context/job.ts'
import type { Stored } from './already-stored.ts'
import { type Amount, exactly, smaller, sum, UNKNOWN, without } from './amount.ts'
import { countList, type ListCount } from './list-length.ts'
import { createPageReader, type Refusal } from './page-reader.ts'
import { additionOf, conditionOf, isReadSingly, listBehind } from './reads-behind.ts'
import { countByTimeline, countTimeline, isTimeline } from './timelines.ts'

/** Estimates the requests of a backfill, from the contents of the warehouse and a few pages of the API. */

export interface PlanLine {
  resource: ResourceName
  lane: Extract<Lane, 'items' | 'history' | 'audit'>
  requests: Amount
  /** The basis of the number, for people. */
  because: string
}

export interface EstimateOptions {
  chosen: readonly ResourceName[]
  stored: Stored
  since: string | null
  accessLogEndParameter: string
  /** How many requests the estimate should send. Timelines are counted last and share the rest. */
  budget: number
}

export interface RequestsEstimate {
  lines: PlanLine[]
  refusals: ReadonlyMap<ResourceName, Refusal>
}

/**
 * The most requests to sample a timeline. If its rows are read one by one, it gets all of the remaining budget instead,
 * since an error in its count matters most.
 */
const SMALL_SHARE = 12

/** @throws StopError 77 when the key is refused, 69 when the API does not answer */
export async function estimateRequests(api: ApiReader, options: EstimateOptions): Promise<RequestsEstimate> {
  const { chosen, stored } = options
  const reader = createPageReader(api)
  const counts = new Map<string, ListCount>()
  const left = () => options.budget - api.used()
  const smallShare = () => Math.min(SMALL_SHARE, left())
  const lists = LISTS.filter(list => chosen.includes(list.resource) && isNeeded(list, stored))
  const timelines = lists.filter(isTimeline)
  const note = (list: DeclaredFeed<ListFeed>, count: ListCount | undefined) =>
    counts.set(list.id, count ?? { requests: UNKNOWN, because: '' })

  for (const list of lists) {
    if (!isTimeline(list)) note(list, await countList(reader, list, { ...options, counts }))
  }
  for (const list of timelines) {
    if (!isReadSingly(list)) note(list, await countTimeline(reader, list, stored, smallShare))
  }
  for (const list of lists) {
    const count = counts.get(list.id)
    if (!count?.seen || count.reads) continue
    note(list, await countByTimeline(reader, list, count, { ...options, budget: smallShare() }))
  }
  for (const list of timelines) {
    if (isReadSingly(list)) note(list, await countTimeline(reader, list, stored, left))
  }
  const { refusals } = reader
  return { lines: chosen.flatMap(name => linesOf(name, { stored, counts, refusals })), refusals }
}

/** For a finished resource only the sizes of its scopes are needed: they say how many reads associations cost. */
function isNeeded({ resource, feed }: DeclaredFeed<ListFeed>, stored: Stored): boolean {
  return !stored.isFinished(resource) || (feed.mode === 'snapshot' && feed.scope !== undefined)
}

interface Facts extends Pick<RequestsEstimate, 'refusals'> {
  stored: Stored
  counts: ReadonlyMap<string, ListCount>
}

function linesOf(resource: ResourceName, facts: Facts): PlanLine[] {
  const { stored, counts, refusals } = facts
  if (stored.isFinished(resource)) return []
  const lane = stored.listLane(resource)
  const refusal = refusals.get(resource)
  if (refusal) {
    const { expected, status, message } = refusal
    const said = `the API ${status === undefined ? 'gives no usable answer' : `answers ${status}`}: ${message}`
    return expected
      ? [{ resource, lane, requests: exactly(1), because: `not offered by this workspace: ${said}` }]
      : [{ resource, lane, requests: UNKNOWN, because: said }]
  }
  const declared = resourceNamed(resource)
  const lists = listsOf(declared).flatMap(({ id }) => counts.get(id) ?? [])
  const items = itemsOf(declared)
  return [
    ...lists.map(({ requests, because }): PlanLine => ({ resource, lane, requests, because })),
    ...(items.length > 0 ? [itemsLine(resource, items, facts)] : []),
  ]
}

/** The single reads of a resource: those that are due for stored keys, and those of rows that are not stored yet. */
function itemsLine(resource: ResourceName, items: readonly DeclaredFeed<ItemFeed>[], facts: Facts): PlanLine {
  const { known, due } = facts.stored.items(resource)
  const reads = sum(...items.map(each => readsBehind(each, facts)))
  const isOfAllRows = items.some(each => each.feed.associations || listCountOf(each, facts)?.seen)
  const fresh = isOfAllRows ? without(reads, known) : reads
  const basis = items.slice(0, 1).map(each => basisOf(each, items.length))
  return {
    resource,
    lane: 'items',
    requests: due === 0 ? fresh : sum(exactly(due), fresh),
    because: [...basis, ...(due > 0 ? [`${due} are due`] : [])].join('; '),
  }
}

/** The single reads of all rows of the list; of its unread rows alone when it is a timeline or was listed before. */
function readsBehind(items: DeclaredFeed<ItemFeed>, facts: Facts): Amount {
  const { counts } = facts
  const { associations } = items.feed
  if (associations) {
    const sizes = counts.get(associations.of)?.sizes
    const size = (object: string) => sizes?.get(object) ?? exactly(0)
    return sum(...associations.kinds.map(([one, other]) => smaller(size(one), size(other))))
  }
  const list = listCountOf(items, facts)
  const timeline = LISTS.find(each => additionOf(each)?.list === listBehind(items)?.id)
  const added = timeline && counts.get(timeline.id)?.reads
  return list?.reads ?? added ?? (list?.requests === UNKNOWN ? UNKNOWN : exactly(0))
}

function listCountOf(items: DeclaredFeed<ItemFeed>, { counts }: Facts): ListCount | undefined {
  return counts.get(listBehind(items)?.id ?? '')
}

function basisOf(items: DeclaredFeed<ItemFeed>, feeds: number): string {
  if (items.feed.associations)
    return 'for each kind of association, one for each record of the object with fewer records'
  const list = listBehind(items)
  const table = list && (resourceNamed(list.resource).derivation?.into ?? list.feed.table)
  const when = Object.entries(conditionOf(items) ?? {})
  const condition = when.map(([column, values]) => ` where ${column} is ${values.join(' or ')}`).join('')
  return `${feeds === 1 ? 'one' : feeds} for each row of ${table}${condition}`
}
