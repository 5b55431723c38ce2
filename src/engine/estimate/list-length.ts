import { PAGING, type Page, type PagingStyle } from '../../api/paging.ts'
import type { Query } from '../../api/request.ts'
import { isoInstant } from '../../base/clock.ts'
import { type DeclaredFeed, LISTS, type ListFeed } from '../../catalog/feeds.ts'
import type { PeriodicFeed, SnapshotFeed } from '../../declare/resource.ts'
import { DAY, HOUR } from '../context/intervals.ts'
import { timeOf } from '../modes/snapshot/page.ts'
import { keyOf } from '../parse/key.ts'
import type { Stored, StoredSegment } from './already-stored.ts'
import { type Amount, about, atLeast, exactly, pages, sum } from './amount.ts'
import { type PageReader, rowsOf } from './page-reader.ts'
import { associationsOf } from './reads-behind.ts'

/** What the warehouse and the first pages of a list say about its length. */
export interface ListCount {
  /** Requests that the next run sends for the list. */
  requests: Amount
  /** The basis of the number, for people. */
  because: string
  /**
   * For a timeline: the single reads that its unread rows cause. For another list that was never read: the single
   * reads of its rows. Undefined for any other list, and while the number is unknown.
   */
  reads?: Amount
  /** For a list that was never read: the keys on its first pages, newest first. */
  seen?: readonly SeenKey[]
  pageSize?: number
  /** For a feed with one list for each scope: the number of rows, by scope. */
  sizes?: ReadonlyMap<string, Amount>
}

export interface SeenKey {
  key: string
  sortAt: string | null
}

export interface CountOptions {
  stored: Stored
  since: string | null
  accessLogEndParameter: string
  /** The lists that were counted before, by `resource.feed`. */
  counts: ReadonlyMap<string, ListCount>
}

/** The most pages to request of a list of keys, since each key costs further requests. Of other lists, one page. */
const MOST_PAGES = 4
/** The most scopes for which a page is requested. */
const MOST_SCOPES = 6
const MOST_PERIODS = 4
const PERIOD_MS = 31 * DAY
/** A run reads a log back in time until this many periods in a row have no entry. */
const EMPTY_PERIODS = 3
/** For a list whose paging is not known. */
const ASSUMED_PAGE_SIZE = 50

/** Counts a list that is not a timeline. Undefined when the API refuses the list. */
export async function countList(
  reader: PageReader,
  list: DeclaredFeed<ListFeed>,
  options: CountOptions,
): Promise<ListCount | undefined> {
  const { feed } = list
  if (feed.mode === 'snapshot')
    return feed.scope ? countScopes(reader, list, feed, options) : countSnapshot(reader, list, feed, options)
  if (feed.mode === 'periodic') return countPeriods(reader, list, feed, options)
  return (await reader.page(list, {})) && { requests: exactly(1), because: 'one document' }
}

async function countSnapshot(
  reader: PageReader,
  list: DeclaredFeed<ListFeed>,
  feed: SnapshotFeed,
  options: CountOptions,
) {
  const [segment] = options.stored.segments(list)
  if (segment?.listedAt) {
    return { requests: listedAgain(segment, pageSize(feed.list.paging)), because: 'listed again' }
  }
  const read: Page[] = []
  const most = feed.lists === 'keys' ? MOST_PAGES : 1
  for (let next: Query | null = {}; next && read.length < most; ) {
    const page: Page | undefined = await reader.page(list, { ...largestPage(list), ...next })
    if (!page) return undefined
    read.push(page)
    next = page.totalSize === undefined ? page.next : null
  }
  return countPages(feed, read, options)
}

/** The requests that list a segment again. */
function listedAgain({ rows, isDue }: StoredSegment, size: number): Amount {
  return isDue ? pages(about(rows), size) : exactly(0)
}

function countPages(feed: SnapshotFeed, read: readonly Page[], { since }: CountOptions): ListCount {
  const items = read.flatMap(page => page.items)
  const seen = items.flatMap(item => {
    const key = keyOf(item, feed.keyFields)
    return key === undefined ? [] : { key, sortAt: timeOf(item, feed.timeField) }
  })
  const [first] = read
  const isWhole = read.at(-1)?.next === null
  const rows = isWhole ? items.length : first?.totalSize
  const total = rows === undefined ? atLeast(items.length + 1) : exactly(rows)
  const size = pageSize(first?.recognised ?? feed.list.paging)
  // With unknown paging, the first request has no limit. With more pages, the pass restarts with the largest limit.
  const restarts = feed.list.paging === 'any' && first?.next ? 1 : 0
  const isOne = isWhole && read.length === 1
  const wanted = seen.filter(({ sortAt }) => since === null || sortAt === null || sortAt >= since)
  const keys = new Set([...wanted.map(({ key }) => key), ...(feed.always ?? [])])
  const isBounded = since !== null && feed.timeField !== undefined
  const reads = isWhole ? keys.size : isBounded ? undefined : rows
  return {
    requests: isOne ? exactly(1) : sum(exactly(restarts), pages(total, size)),
    because: BASES[isWhole ? 'whole' : rows === undefined ? 'first pages' : 'total'],
    ...(reads === undefined ? {} : { reads: exactly(reads) }),
    seen,
    pageSize: size,
  }
}

const BASES = {
  whole: 'counted',
  total: 'total reported by the API',
  'first pages': 'from the first pages of the list',
} as const

async function countScopes(
  reader: PageReader,
  list: DeclaredFeed<ListFeed>,
  { scope, list: { paging } }: SnapshotFeed,
  { stored, counts }: CountOptions,
): Promise<ListCount> {
  const { table = '', column = '', always = [] } = scope ?? {}
  const parent = LISTS.find(({ feed }) => feed.table === table)
  const seen = counts.get(parent?.id ?? '')?.seen?.map(({ key }) => key) ?? []
  const all = [...seen, ...stored.liveValues(table, column), ...always]
  // A page is requested only if the feed has associations, which cost a request for each record. Their scopes go first.
  const associated = associationsOf(list).flat()
  const segments = new Map(stored.segments(list).map(segment => [segment.scope, segment]))
  const sizes = new Map<string, Amount>()
  const requests: Amount[] = []
  let asked = 0
  for (const one of new Set([...associated.filter(each => all.includes(each)), ...all])) {
    const segment = segments.get(one)
    const isStored = segment !== undefined && segment.listedAt !== null
    const isAsked = !isStored && associated.length > 0 && asked < MOST_SCOPES
    if (isAsked) asked += 1
    const size = isStored ? about(segment.rows) : isAsked ? await sizeOf(reader, list, one) : atLeast(1)
    sizes.set(one, size)
    requests.push(isStored ? listedAgain(segment, pageSize(paging)) : pages(size, pageSize(paging)))
  }
  const basis = asked > 0 ? `from one page of each of ${asked} lists` : 'at least one page for each list'
  const because = segments.size > 0 ? 'listed again' : `${basis}; only reading them shows how long they are`
  return { requests: sum(...requests), because, sizes }
}

/** The number of rows of one scope; 0 where the API does not offer it. */
async function sizeOf(reader: PageReader, list: DeclaredFeed<ListFeed>, scope: string): Promise<Amount> {
  const reply = await reader.read(list, largestPage(list), scope)
  if (reply.kind === 'refused' && list.feed.expected?.[reply.status]) return exactly(0)
  if (reply.kind !== 'answer') return atLeast(1)
  const { items, next } = reply.value
  return next ? atLeast(items.length + 1) : exactly(items.length)
}

/** Requests the first page of each period. The time that the page covers shows how many pages its period has. */
async function countPeriods(
  reader: PageReader,
  list: DeclaredFeed<ListFeed>,
  feed: PeriodicFeed,
  { stored, since, accessLogEndParameter }: CountOptions,
): Promise<ListCount | undefined> {
  const periods = stored.segments(list)
  if (periods.length > 0) {
    const again = periods.map(period => listedAgain(period, pageSize(feed.list.paging)))
    return { requests: sum(about(1), ...again), because: 'periods that are due' }
  }
  const newest = await reader.read(list, largestPage(list))
  if (newest.kind !== 'answer') return reader.refuse(list, newest)
  const requests = [exactly(1)]
  let end = (newest.serverTime ?? newest.localTime) - HOUR
  let isEnd = false
  while (!isEnd && requests.length <= MOST_PERIODS) {
    const from = isoInstant(end - PERIOD_MS)
    const bounds = { [feed.from]: from, [accessLogEndParameter]: isoInstant(end) }
    const page = await reader.page(list, { ...largestPage(list), ...bounds })
    if (!page) return undefined
    const oldest = Date.parse(String(rowsOf(feed.table, page.items).at(-1)?.[feed.time]))
    const entries = page.next ? (page.items.length * PERIOD_MS) / Math.max(1, end - oldest) : 0
    requests.push(page.next ? pages(about(entries), pageSize(feed.list.paging)) : exactly(1))
    if (page.items.length === 0) requests.push(exactly(EMPTY_PERIODS - 1))
    isEnd = page.items.length === 0 || (since !== null && from <= since)
    end -= PERIOD_MS
  }
  if (!isEnd) requests.push(atLeast(1))
  return { requests: sum(...requests), because: 'from one page of each of the last periods' }
}

/** The query parameter for the largest page; none where the API may not accept it. */
export function largestPage({ feed }: DeclaredFeed<ListFeed>): Query {
  const limit = 'list' in feed ? PAGING[feed.list.paging].maxLimit : undefined
  return limit === undefined ? {} : { limit: String(limit) }
}

export function pageSize(style: PagingStyle | 'bare'): number {
  return (style === 'bare' ? undefined : PAGING[style].maxLimit) ?? ASSUMED_PAGE_SIZE
}
