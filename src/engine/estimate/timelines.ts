import type { Query } from '../../api/request.ts'
import { isoInstant } from '../../base/clock.ts'
import { type DeclaredFeed, LISTS, type ListFeed } from '../../catalog/feeds.ts'
import type { SourceRow, TimelineFeed } from '../../declare/resource.ts'
import { type Stored, spanOf } from './already-stored.ts'
import { type Amount, about, atLeast, exactly, pages, sum } from './amount.ts'
import { type ListCount, largestPage, pageSize, type SeenKey } from './list-length.ts'
import { type PageReader, rowsOf } from './page-reader.ts'
import { additionOf, singleReads } from './reads-behind.ts'
import { type Estimate, type Span, sampleList } from './sample.ts'

/** Samples lists that can be filtered by time. */

export function isTimeline(list: DeclaredFeed<ListFeed>): list is DeclaredFeed<TimelineFeed> {
  return list.feed.mode === 'timeline'
}

/** Undefined when the API refuses the list. */
export async function countTimeline(
  reader: PageReader,
  list: DeclaredFeed<TimelineFeed>,
  stored: Stored,
  budget: () => number,
): Promise<ListCount | undefined> {
  const size = pageSize(list.feed.list.paging)
  const parts = stored.timeline(list)
  const requests: Amount[] = []
  const reads: Amount[] = []
  for (const { again, unread } of parts) {
    const rows: Amount[] = [exactly(again)]
    if (unread) {
      const { estimate, readShare } = await sample(reader, list, unread, { budget: budget() })
      if (reader.refusals.has(list.resource)) return undefined
      const { rows: value, certainty } = estimate
      rows.push({ value, certainty })
      const single = Math.round(value * readShare)
      reads.push({ value: single, certainty: certainty === 'exact' ? 'about' : certainty })
    }
    requests.push(pages(sum(...rows), size))
  }
  const all = sum(...requests)
  const basis = all.certainty === 'exact' ? 'counted' : 'from the density of the sampled pages'
  const isAgain = parts.some(({ again }) => again > 0)
  return {
    requests: all,
    because: isAgain ? `${basis}; stored rows are listed again` : basis,
    reads: sum(...reads),
  }
}

/** Counts a list of keys that has more pages than were read, by the timeline whose rows name the same keys. */
export async function countByTimeline(
  reader: PageReader,
  list: DeclaredFeed<ListFeed>,
  count: ListCount,
  { budget, since }: { budget: number; since: string | null },
): Promise<ListCount> {
  const { seen = [], pageSize: size = 1, requests } = count
  const timeline = LISTS.filter(isTimeline).find(each => additionOf(each)?.list === list.id)
  const addition = timeline && additionOf(timeline)
  if (!addition) return { ...count, reads: atLeast(seen.length + 1) }
  const { filter } = addition
  const { estimate, first } = await sample(reader, timeline, spanOf(since, null), { budget, filter })
  const named = new Set(first.rows.map(row => row[addition.key]))
  const oldest = first.more ? String(first.rows.at(-1)?.[timeline.feed.time]) : since
  const rows = Math.round(estimate.rows / shareOf(seen, named, oldest ?? ''))
  const sampled = pages(since === null ? about(rows) : atLeast(rows), size)
  return {
    ...count,
    requests: requests.certainty === 'exact' ? requests : sum(exactly(1), sampled),
    because: `from the ${timeline.resource} that name its rows`,
    reads: about(rows),
  }
}

/** The fewest keys from which a share is computed. */
const FEWEST_KEYS = 10

/**
 * The share of the newest listed keys that the timeline also names. The timeline lacks meetings without a public CRM
 * record.
 */
function shareOf(seen: readonly SeenKey[], named: ReadonlySet<unknown>, after: string): number {
  const comparable = seen.filter(({ sortAt }) => sortAt !== null && sortAt > after)
  const found = comparable.filter(({ key }) => named.has(key))
  return comparable.length < FEWEST_KEYS || found.length === 0 ? 1 : found.length / comparable.length
}

interface Sample {
  estimate: Estimate
  /** The single reads for each row of the sampled pages. */
  readShare: number
  /** The newest page. */
  first: { rows: readonly SourceRow[]; more: boolean }
}

async function sample(
  reader: PageReader,
  list: DeclaredFeed<TimelineFeed>,
  within: Span,
  { budget, filter }: { budget: number; filter?: Query | undefined },
): Promise<Sample> {
  const { bounds, table, time } = list.feed
  const sampling = sampleList(within, budget)
  let first: Sample['first'] | undefined
  let [seen, reads] = [0, 0]
  for (let step = sampling.next(); ; ) {
    if (step.done) {
      const readShare = reads / Math.max(1, seen)
      return { estimate: step.value, readShare, first: first ?? { rows: [], more: false } }
    }
    const { from, to } = step.value
    const page = await reader.page(list, {
      ...filter,
      ...largestPage(list),
      ...(from === undefined ? {} : { [bounds.from]: isoInstant(from) }),
      ...(to === undefined ? {} : { [bounds.to]: isoInstant(to) }),
    })
    const rows = rowsOf(table, page?.items ?? [])
    const more = page?.next != null
    const times = rows.flatMap(row => (row[time] == null ? [] : Date.parse(String(row[time]))))
    first ??= { rows, more }
    seen += rows.length
    reads += singleReads(list, rows)
    step = sampling.next(page && { times, more })
  }
}
