import { PAGING } from '../api/paging.ts'
import type { ListRequest, Resource } from '../resource.ts'
import type { Workload } from '../store/workload.ts'

/** How many requests are left, and how long that takes. Pure. */

export interface ResourceOutlook {
  resource: Resource
  finished: boolean
  /** True when the resources that it is asked for by have ended, so that it knows all it has to ask for. */
  parentsFinished: boolean
  /** Requests made for it so far. */
  requests: number
  workload: Workload
}

/** Requests that are still to be made; undefined while nobody can know. */
export function requestsLeft(outlooks: readonly ResourceOutlook[]): number | undefined {
  let all = 0
  for (const outlook of outlooks) {
    const left = leftOf(outlook)
    if (left === undefined) return undefined
    all += left
  }
  return all
}

function leftOf({ resource, finished, parentsFinished, requests, workload }: ResourceOutlook) {
  if (finished) return 0
  if (requests === 0 && !parentsFinished) return undefined
  const { lists, items } = workload
  const single = items ? (items.total ?? 0) - items.done : 0
  if (lists === undefined || lists.ended) return Math.max(0, single)
  if (lists.total === undefined) return undefined
  return Math.max(0, single) + Math.ceil(Math.max(0, lists.total - lists.done) / pageSize(resource))
}

/** Where the style of paging is not known beforehand, the smaller of the cursor styles' pages. */
const UNKNOWN_PAGE = 50

function pageSize({ feeds }: Resource): number {
  const sizes = Object.values(feeds).flatMap(feed => ('list' in feed ? [sizeOf(feed.list)] : []))
  return Math.min(...sizes, 100)
}

function sizeOf({ paging }: ListRequest): number {
  return PAGING[paging].maxLimit ?? UNKNOWN_PAGE
}

export interface Sample {
  /** Monotonic ms. */
  at: number
  /** Requests answered so far, 429 not counted. */
  answered: number
}

/** So much time is looked back on, and so little says nothing. */
const WINDOW_MS = 60_000
const SHORTEST_MS = 3_000

/** Samples of the last minute, with one more at its begin. */
export function withSample(samples: readonly Sample[], sample: Sample): Sample[] {
  const all = [...samples, sample]
  const first = all.findLastIndex(({ at }) => at <= sample.at - WINDOW_MS)
  return all.slice(Math.max(0, first))
}

/** Answers per second over the samples; undefined when they span too little time. */
export function recentRate(samples: readonly Sample[]): number | undefined {
  const [first, last] = [samples[0], samples.at(-1)]
  if (!first || !last || last.at - first.at < SHORTEST_MS) return undefined
  return ((last.answered - first.answered) * 1000) / (last.at - first.at)
}

/** Milliseconds left, a pause under way included; undefined while it cannot be told honestly. */
export function timeLeft(
  left: number | undefined,
  rate: number | undefined,
  pausedMs: number,
): number | undefined {
  if (left === undefined || rate === undefined || rate <= 0) return undefined
  return (left / rate) * 1000 + pausedMs
}
