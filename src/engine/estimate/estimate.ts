import { MAX_LIMITS, type Page, pageSizeOf, readPage } from '../../api/paging.ts'
import type { ApiReader } from '../../api/reader.ts'
import type { Query } from '../../api/request.ts'
import { isoInstant } from '../../base/clock.ts'
import { resourceNamed, tableNamed } from '../../catalog/catalog.ts'
import {
  type DeclaredFeed,
  feedNamed,
  ITEM_FEEDS,
  itemsOf,
  LISTS,
  type ListFeed,
  listsOf,
} from '../../catalog/feeds.ts'
import type { FollowUp, ItemFeed, SnapshotFeed, SourceRow, TimelineFeed } from '../../declare/resource.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import type { Lane } from '../context/job.ts'
import { timeOf } from '../modes/snapshot/page.ts'
import { keyOf } from '../parse/key.ts'
import { compileParser } from '../parse/parse.ts'
import type { Stored } from './already-stored.ts'
import {
  type Amount,
  about,
  atLeast,
  exactly,
  nextBound,
  pages,
  rowsWithin,
  type SeenPage,
  type Span,
  sum,
  UNKNOWN,
} from './row-counts.ts'

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
  /** After this many requests the estimate sends no more. */
  budget: number
}

/**
 * @returns `isAccessRefused`: whether the API answered 403 or 404 for a list that every workspace has
 * @throws StopError with exit status 77 when the key is refused, 69 when the API does not answer
 */
export async function estimateRequests(
  api: ApiReader,
  { chosen, stored, since, budget }: EstimateOptions,
): Promise<{ lines: PlanLine[]; isAccessRefused: boolean }> {
  const counts = new Map<string, ListCount>()
  let isAccessRefused = false
  const ask: Ask = async ({ feed }, bounds = {}) => {
    if (api.used() >= budget) return unknown(`not asked, since ${budget} requests were sent`)
    const isDocument = feed.mode === 'singleton'
    const { path } = isDocument ? feed.read : feed.list
    const style = isDocument ? 'single' : feed.list.paging
    const limit = MAX_LIMITS[style]
    const query = { ...bounds, ...(limit === undefined ? {} : { limit: String(limit) }) }
    const request = { route: path, path, query }
    const reply = await api.read(request, value => readPage(style, value, query))
    if (reply.kind === 'answer') return reply.value
    const status = reply.kind === 'refused' ? reply.status : undefined
    const said = `the API ${status === undefined ? 'gives no usable answer' : `answers ${status}`}: ${reply.message}`
    if (status !== undefined && feed.expected?.[status] === 'unavailable')
      return { requests: exactly(1), because: `not offered by this workspace: ${said}` }
    isAccessRefused ||= status === 403 || status === 404
    return unknown(said)
  }
  const lists = LISTS.filter(({ resource }) => chosen.includes(resource))
  // Timelines come first: their rows name the keys of other lists.
  const named = new Map<ResourceName, Amount | undefined>()
  for (const list of lists.filter(isTimeline)) {
    const count = await countTimeline(ask, list, stored)
    counts.set(list.id, count)
    const addition = additionOf(list)
    if (addition) named.set(feedNamed(addition.feed).resource, count.fresh)
  }
  for (const list of lists) {
    const known = { stored, since, counts, named: named.get(list.resource) }
    if (!isTimeline(list)) counts.set(list.id, await countList(ask, list, known))
  }
  api.requireAccess()
  return { lines: chosen.flatMap(name => linesOf(name, stored, counts)), isAccessRefused }
}

/** Reads one page. Nothing is stored. Without an answer, the result says what is known of the list. */
type Ask = (list: DeclaredFeed<ListFeed>, query?: Query) => Promise<Page | ListCount>

/** What the warehouse and some pages of a list say about it. */
interface ListCount {
  /** Requests that the next run sends for the list. */
  requests: Amount
  /** The basis of the number, for people. */
  because: string
  /** The single reads of all rows. */
  all?: Amount
  /** The single reads of rows that are not stored yet. Counts only if `all` is undefined. */
  fresh?: Amount | undefined
  /** For a list that was never read: the keys on its first page. */
  keys?: readonly string[]
}

/** By `resource.feed`. */
type ListCounts = ReadonlyMap<string, ListCount>

const unknown = (because: string): ListCount => ({ requests: UNKNOWN, because, all: UNKNOWN })

/**
 * The most pages requested of one timeline. A workspace has two timelines, so enough of the 60 requests are left for
 * the other lists.
 */
const MOST_PAGES = 18
/** A run reads a log back in time until this many periods in a row have no entry. */
const EMPTY_PERIODS = 3
const ONLY_READING = 'only reading shows the number'

function isTimeline(list: DeclaredFeed<ListFeed>): list is DeclaredFeed<TimelineFeed> {
  return list.feed.mode === 'timeline'
}

async function countTimeline(ask: Ask, list: DeclaredFeed<TimelineFeed>, stored: Stored): Promise<ListCount> {
  const parts = stored.timeline(list)
  const spans = parts.flatMap(({ unread }) => unread ?? [])
  const span: Span = { from: spans.at(-1)?.from, to: spans[0]?.to }
  const { bounds, table, time } = list.feed
  const seen: SeenPage[] = []
  let [rows, reads] = [0, 0]
  for (let { to } = span, isEnough = spans.length === 0; !isEnough && seen.length < MOST_PAGES; ) {
    const page = await ask(list, {
      ...(span.from === undefined ? {} : { [bounds.from]: isoInstant(span.from) }),
      ...(to === undefined ? {} : { [bounds.to]: isoInstant(to) }),
    })
    if (!('items' in page)) {
      if (seen.length === 0) return page
      break
    }
    const shown = rowsOf(table, page.items)
    const times = shown.flatMap(row => (row[time] == null ? [] : Date.parse(String(row[time]))))
    rows += shown.length
    reads += singleReads(list, shown)
    seen.push({ at: to ?? times[0] ?? 0, times, more: page.next !== null })
    seen.sort((one, other) => other.at - one.at)
    to = nextBound(seen, span)
    isEnough = to === undefined
  }
  const counted = parts.map(({ again, unread }) => ({
    // As many rows as are stored, if none was published or deleted since.
    again: again > 0 ? about(again) : exactly(0),
    unread: unread ? rowsWithin(seen, unread, span.from) : exactly(0),
  }))
  const { value, certainty } = sum(...counted.map(({ unread }) => unread))
  const basis = certainty === 'exact' ? 'counted' : `from the density of ${seen.length} pages`
  return {
    requests: sum(...counted.map(({ again, unread }) => pages(sum(again, unread), pageSize(list)))),
    because: parts.some(({ again }) => again > 0) ? `${basis}; stored rows are listed again` : basis,
    fresh: sum(about(Math.round((value * reads) / Math.max(1, rows))), { value: 0, certainty }),
  }
}

interface Known {
  stored: Stored
  since: string | null
  counts: ListCounts
  /** The unread keys of the list that rows of a timeline name. */
  named: Amount | undefined
}

/** Counts a list that is not a timeline, from what its last pass has read, or from its first page. */
async function countList(ask: Ask, list: DeclaredFeed<ListFeed>, known: Known): Promise<ListCount> {
  const { feed } = list
  const { stored, since, named } = known
  const segments = stored.segments(list).filter(({ listedAt }) => listedAt !== null)
  const again = segments.map(({ rows, isDue }) => (isDue ? pages(about(rows), pageSize(list)) : exactly(0)))
  if (feed.mode === 'snapshot' && feed.scope) {
    const listed = new Set(segments.map(({ scope }) => scope))
    const unread = scopesOf(feed.scope, known).filter(scope => !listed.has(scope)).length
    // Once a resource was read completely, its unread scopes are lists that the workspace does not have.
    return stored.listLane(list.resource) === 'audit'
      ? { requests: sum(...again, about(unread)), because: 'listed again' }
      : {
          requests: sum(...again, atLeast(unread)),
          because: `at least one page for each list; ${ONLY_READING}`,
        }
  }
  if (segments.length > 0) {
    const newest = feed.mode === 'periodic' ? [about(1)] : []
    return { requests: sum(...newest, ...again), because: 'listed again', fresh: named }
  }
  const page = await ask(list)
  if (!('items' in page)) return page
  if (feed.mode === 'singleton') return { requests: exactly(1), because: 'one document' }
  if (feed.mode !== 'snapshot') {
    const because = `read month by month until ${EMPTY_PERIODS} are empty; ${ONLY_READING}`
    return { requests: atLeast(EMPTY_PERIODS + 1), because }
  }
  const { items, next, totalSize } = page
  const keysOf = (some: readonly unknown[]) => some.flatMap(item => keyOf(item, feed.keyFields) ?? [])
  const keys = keysOf(items)
  const wanted = keysOf(
    items.filter(item => since === null || (timeOf(item, feed.timeField) ?? since) >= since),
  )
  if (next === null) {
    const all = exactly(new Set([...wanted, ...(feed.always ?? [])]).size)
    return { requests: exactly(1), because: 'counted', all, keys }
  }
  const isStated = totalSize !== undefined && totalSize >= items.length
  const rows = isStated ? exactly(totalSize) : atLeast(items.length + 1)
  // A pass over a list with unknown paging begins without a limit, and begins again when there are more pages.
  const requests = sum(exactly(feed.list.paging === 'any' ? 1 : 0), pages(rows, pageSize(list)))
  const because = isStated ? 'total reported by the API' : `from its first page; ${ONLY_READING}`
  if (named && named.value > wanted.length) return { requests, because, fresh: named, keys }
  return { requests, because, all: since === null ? rows : atLeast(wanted.length), keys }
}

/** The lists of a feed that has one for each row of another table. */
function scopesOf(
  { table, column, always = [] }: NonNullable<SnapshotFeed['scope']>,
  known: Known,
): string[] {
  const parent = LISTS.find(({ feed }) => feed.table === table)
  const listed = known.counts.get(parent?.id ?? '')?.keys ?? []
  return [...new Set([...listed, ...known.stored.liveValues(table, column), ...always])]
}

const pageSize = ({ feed }: DeclaredFeed<ListFeed>): number =>
  'list' in feed ? pageSizeOf(feed.list.paging) : 1

function linesOf(resource: ResourceName, stored: Stored, counts: ListCounts): PlanLine[] {
  if (stored.isFinished(resource)) return []
  const declared = resourceNamed(resource)
  const lane = stored.listLane(resource)
  const lists = listsOf(declared).flatMap(({ id }) => counts.get(id) ?? [])
  const lines = lists.map(({ requests, because }): PlanLine => ({ resource, lane, requests, because }))
  const items = itemsOf(declared)
  return items.length === 0 ? lines : [...lines, itemsLine(resource, items, stored, counts)]
}

/** The single reads of a resource: those that are due for known keys, and those of rows that are not stored yet. */
function itemsLine(
  resource: ResourceName,
  items: readonly DeclaredFeed<ItemFeed>[],
  stored: Stored,
  counts: ListCounts,
): PlanLine {
  const { known, due } = stored.items(resource)
  const list = items.map(listBehind)[0]
  const { all, fresh = exactly(0) } = counts.get(list?.id ?? '') ?? {}
  const associations = stored.listLane(resource) === 'audit' ? about(0) : UNKNOWN
  const each = list ? (all ?? fresh) : associations
  const unread = {
    value: Math.max(0, each.value * items.length - (all ? known : 0)),
    // Only the answers of the other resource say for which of its rows there is something to read. Rows of a timeline
    // name keys that the list does not have, such as those of withheld meetings.
    certainty:
      each.certainty === 'exact' && (list?.resource !== resource || NAMED_BY_TIMELINES.has(resource))
        ? 'about'
        : each.certainty,
  }
  const table = list && resourceNamed(list.resource).status.table
  const basis = table
    ? `${items.length === 1 ? 'one' : items.length} for each row of ${table}`
    : `one for each record of the object with fewer records, for each kind of association; ${ONLY_READING}`
  return {
    resource,
    lane: 'items',
    requests: due > 0 ? sum(exactly(due), unread) : unread,
    because: due > 0 ? `${basis}; ${due} are due` : basis,
  }
}

/**
 * The list whose rows an item feed reads. If the answers of another item feed name its keys: the list of that feed.
 * Undefined for associations.
 */
function listBehind({ id, feed }: DeclaredFeed<ItemFeed>): DeclaredFeed<ListFeed> | undefined {
  const table = feed.pending?.table ?? feed.table
  const cause = ITEM_FEEDS.find(each => each.feed.followUps?.some(followUp => followUp.feed === id))
  return LISTS.find(each => each.feed.table === table) ?? (cause && listBehind(cause))
}

/** The follow-up by which the rows of a timeline name keys of another resource. */
function additionOf({ feed }: DeclaredFeed): FollowUp | undefined {
  const followUps = feed.mode === 'timeline' ? (feed.followUps ?? []) : []
  return followUps.find((each): each is FollowUp => 'how' in each && each.how === 'add')
}

const NAMED_BY_TIMELINES: ReadonlySet<ResourceName> = new Set(
  LISTS.flatMap(list => additionOf(list)?.feed ?? []).map(feed => feedNamed(feed).resource),
)

/**
 * The number of single reads that the rows of a page cause. The copies of one e-mail count once, though a hidden text
 * causes a read of the next copy.
 */
export function singleReads(list: DeclaredFeed, rows: readonly SourceRow[]): number {
  if (ITEM_FEEDS.some(each => each.feed.pending?.table === list.feed.table))
    return new Set(rows.map(row => row['mail_id'] ?? row['id'])).size
  const when = Object.entries(additionOf(list)?.when ?? {})
  return rows.filter(row => when.every(([column, values]) => values.includes(String(row[column])))).length
}

/** The items of a page as rows of a table. An item that could not be stored is left out. */
export function rowsOf(table: string, items: readonly unknown[]): SourceRow[] {
  const declared = tableNamed(table)
  const columns = Object.keys(declared.columns)
  const parse = compileParser(declared)
  const ignore = { drift: () => undefined, reject: () => undefined }
  return items.flatMap(item => {
    const cells = parse(item, ignore)?.cells
    return cells ? [Object.fromEntries(columns.map((name, index) => [name, cells[index] ?? null]))] : []
  })
}
