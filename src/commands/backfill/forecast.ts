import { pageSizeOf } from '../../api/paging.ts'
import { resourceNamed } from '../../catalog/catalog.ts'
import type { Resource } from '../../declare/resource.ts'
import type { ResourceProgress } from '../../engine/run/backfill.ts'
import type { Workload } from '../../store/sync/workload.ts'

/** How many requests remain, and how long they take. Pure. */

/** The progress of a resource, and what is left of it. */
export interface ResourceOutlook extends ResourceProgress {
  /** Whether each parent is finished or not read by this backfill, so that all items of the resource are known. */
  areParentsFinished: boolean
  workload: Workload
}

/** Requests still to be sent; undefined while they cannot be counted. */
export function requestsLeft(outlooks: readonly ResourceOutlook[]): number | undefined {
  let all = 0
  for (const outlook of outlooks) {
    const left = requestsLeftFor(outlook)
    if (left === undefined) return undefined
    all += left
  }
  return all
}

function requestsLeftFor({ resource, finished, areParentsFinished, counts, workload }: ResourceOutlook) {
  if (finished) return 0
  if (counts.requests === 0 && !areParentsFinished) return undefined
  const { lists, items } = workload
  const single = items ? (items.total ?? 0) - items.done : 0
  if (lists === undefined || lists.ended) return Math.max(0, single)
  if (lists.total === undefined) return undefined
  return (
    Math.max(0, single) + Math.ceil(Math.max(0, lists.total - lists.done) / pageSize(resourceNamed(resource)))
  )
}

function pageSize({ feeds }: Resource): number {
  const lists = Object.values(feeds).flatMap(feed => ('list' in feed ? feed.list : []))
  return Math.min(...lists.map(({ paging }) => pageSizeOf(paging)), 100)
}

export interface AnswerSample {
  /** Monotonic ms. */
  at: number
  /** Responses so far, without 429. */
  answered: number
}

/** The rate is measured over this time, in ms. */
const WINDOW_MS = 60_000
/** Samples that span fewer ms give no rate. */
const MIN_SPAN_MS = 3_000

/** The samples of the last minute and the newest sample before that minute. */
export function withSample(samples: readonly AnswerSample[], sample: AnswerSample): AnswerSample[] {
  const all = [...samples, sample]
  const first = all.findLastIndex(({ at }) => at <= sample.at - WINDOW_MS)
  return all.slice(Math.max(0, first))
}

/** Responses per second over the samples of this time; undefined when they span too little time. */
export function recentRate(samples: readonly AnswerSample[], windowMs = WINDOW_MS): number | undefined {
  const last = samples.at(-1)
  const first = samples.find(({ at }) => last && at >= last.at - windowMs)
  if (!first || !last || last.at - first.at < MIN_SPAN_MS) return undefined
  return ((last.answered - first.answered) * 1000) / (last.at - first.at)
}

/** Milliseconds left, including the rest of a pause; undefined when the requests or the rate are not known. */
export function timeLeft(
  left: number | undefined,
  rate: number | undefined,
  pausedMs: number,
): number | undefined {
  if (left === undefined || rate === undefined || rate <= 0) return undefined
  return (left / rate) * 1000 + pausedMs
}
