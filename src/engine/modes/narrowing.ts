import type { RetryCause } from '../../api/classify.ts'
import { type Backoff, longestBackoffMs } from '../../base/backoff.ts'
import { DAY_MS, MINUTE_MS } from '../../base/clock.ts'
import type { Segment } from '../../store/sync/segments.ts'
import { WEEK_MS } from '../context/intervals.ts'

/**
 * Decides what to request after a failure, so that one bad row never stops its neighbours: requests get smaller until
 * the bad row is alone, and only that row is put off. Pure.
 */

/** After this many failures in a row the whole feed counts as failing, not the single request. */
export const MOST_FAILURES_IN_A_ROW = 10

type Growth = Omit<Backoff, 'jitter'>

/** The wait of a key, or of a span that cannot be divided further. */
const ALONE: Growth = { firstMs: 15 * MINUTE_MS, mostMs: WEEK_MS }

/**
 * The most failures in a row that narrowing one page can cause. After more failures, the whole list counts as failing.
 * The newest span must then not be cut: during a short outage, the cut could come to lie weeks in the future. New rows
 * would then be read at the interval of older spans.
 */
export const FAILURES_OF_ONE_PAGE = 4

/** The wait of a page of a list. It is shorter than `ALONE`, since the other rows of the page wait too. */
const FEED: Growth = { firstMs: 5_000, mostMs: 15 * MINUTE_MS }

/** How long to wait before a key, or a span that cannot be divided further, is requested again, in ms. */
export function aloneBackoffMs(failures: number): number {
  return longestBackoffMs(ALONE, failures)
}

/** How long to wait before the same page is requested again, in ms. */
export function pageBackoffMs(failures: number): number {
  return longestBackoffMs(FEED, failures)
}

/** The two parts to request after a request for several keys failed; none for a single key. */
export function halves<T>(keys: readonly T[]): (readonly T[])[] {
  if (keys.length < 2) return []
  const middle = Math.ceil(keys.length / 2)
  return [keys.slice(0, middle), keys.slice(middle)]
}

/** A failed page of any list. */
export interface FailedPage {
  /** Failed requests of the segment since a page (in a timeline: a full-size page) was read, this one included. */
  attempts: number
  /** Rows requested. */
  limit: number
  code: string
  /** True in the daemon: the failure may pass, so the same page is tried again before it is narrowed. */
  mayPass: boolean
}

/** A page of a timeline or of a log, with the span that its pass has not read. */
export interface FailedSpanPage extends FailedPage {
  mode: SpanMode
  /** The ends of the unread span; null for an open end. */
  from: string | null
  to: string | null
  now: number
  /** Failures of the whole list in a row, this one included. */
  listFailures: number
  /** False while no request of the list has succeeded, so that the whole list may be failing. */
  isAnswered: boolean
  /** Rows that a pass with smaller pages reads again before it reaches this page. */
  rowsAgain: number
  /** Pages that the pass has read before this page. */
  pagesRead: number
}

type SpanMode = 'timeline' | 'periodic'

export type StepAfterFailure =
  /** Request the same page after a wait. */
  | { step: 'wait' }
  /** Request the same rows with `limit` rows a page. */
  | { step: 'shrink'; limit: number }
  /** A page of one row fails: cut the span at this instant, in ms, and read both parts with `limit` rows a page. */
  | { step: 'cut'; at: number; limit: number }
  /** The span cannot be divided further: put it off, so that other spans are read. */
  | { step: 'step-over' }

const LIMITS = [10, 1]

/**
 * After more answered pages of one row than this, the parts of a cut span are read with larger pages again. Otherwise a
 * list whose answers fail at random would be read row by row to its end.
 */
const MOST_SINGLE_ROWS = 3

/**
 * Spans of this length or shorter are not cut, and are stepped over when they cannot be read. A query of a timeline adds
 * 1 ms to its upper bound, so even 1 ms is queried as 2 ms.
 */
const NARROWEST_MS: Readonly<Record<SpanMode, number>> = { timeline: 2, periodic: MINUTE_MS }

/**
 * How far from its known end a span with an open end is cut. The newest span is cut at least this far after now. Each
 * failure multiplies the distance by four.
 */
const FIRST_REACH_MS = 1000
const LONGEST_REACH_MS = 100 * 365 * DAY_MS

/** In a span that cannot be divided, smaller pages pay only if at most this many rows precede the failed page. */
const MOST_ROWS_AGAIN = 100

/** The year 1. Years before 0 are written with a sign, so their text does not sort by time. */
const EARLIEST_MS = Date.parse('0001-01-01T00:00:00.000Z')

export function stepAfterFailedPage(page: FailedSpanPage): StepAfterFailure {
  if (!isOfThePage(page) || page.listFailures > MOST_FAILURES_IN_A_ROW) return { step: 'wait' }
  const isAlone = isNarrowest(page.mode, page)
  if (!isAlone && (isTriedAgain(page) || !page.isAnswered)) return { step: 'wait' }
  const smaller = LIMITS.find(other => other < page.limit)
  const isWorthIt = !isAlone || page.rowsAgain <= MOST_ROWS_AGAIN
  if (smaller !== undefined && isWorthIt) return { step: 'shrink', limit: smaller }
  if (isAlone) return { step: 'step-over' }
  const isWholeList = page.mayPass && page.listFailures > FAILURES_OF_ONE_PAGE
  if (isWholeList && (page.to === null || page.mode === 'periodic')) return { step: 'wait' }
  const at = cutAt(page)
  if (at === undefined) return { step: 'step-over' }
  const [larger = 1] = LIMITS
  return { step: 'cut', at, limit: page.pagesRead > MOST_SINGLE_ROWS ? larger : 1 }
}

/** For a list that cannot be cut: it is read again from its top with smaller pages, once. */
export function stepAfterFailedPass(
  page: FailedPage,
): Extract<StepAfterFailure, { step: 'wait' | 'shrink' }> {
  const [smaller = 1] = LIMITS
  const isFirst = page.attempts <= 2 || page.code === TOO_LARGE
  const isWorthIt = isFirst && isOfThePage(page) && !isTriedAgain(page) && page.limit > smaller
  return isWorthIt ? { step: 'shrink', limit: smaller } : { step: 'wait' }
}

const TOO_LARGE = 'response-too-large'

/** Faults that the size of a page, or a row on it, may cause. */
const OF_THE_PAGE: ReadonlySet<string> = new Set<RetryCause | typeof TOO_LARGE>([
  'server',
  'timeout',
  'transport',
  'garbled',
  TOO_LARGE,
])

/**
 * Refusals that the API's description explains for the whole list: the request is wrong, or the list may not be read.
 * Any other, such as a 410, may be due to one row.
 */
const OF_THE_WHOLE_LIST: ReadonlySet<string> = new Set(['refused-400', 'refused-403', 'refused-404'])

const isOfThePage = ({ code }: FailedPage) =>
  OF_THE_PAGE.has(code) || (code.startsWith('refused-') && !OF_THE_WHOLE_LIST.has(code))

const isTriedAgain = ({ mayPass, attempts, code }: FailedPage) =>
  mayPass && attempts < 2 && code !== TOO_LARGE

function cutAt({ attempts, now, ...bounds }: FailedSpanPage): number | undefined {
  const from = bounds.from === null ? null : Date.parse(bounds.from)
  const to = bounds.to === null ? null : Date.parse(bounds.to)
  const reach = Math.min(FIRST_REACH_MS * 4 ** attempts, LONGEST_REACH_MS)
  // The newest span receives all future rows, so it is cut after now.
  if (to === null) return Math.max(now, from ?? now) + reach
  if (from === null) {
    const at = Math.max(to - reach, EARLIEST_MS)
    return at < to ? at : undefined
  }
  return Math.floor((from + to) / 2)
}

/** Whether a span cannot be divided further. */
export const isNarrowest = (mode: SpanMode, { from, to }: Pick<Segment, 'from' | 'to'>): boolean =>
  spanMs(from, to) <= NARROWEST_MS[mode]

/** Whether a span is known to hold a row that cannot be read. */
export const isSteppedOver = (mode: SpanMode, span: Pick<Segment, 'from' | 'to' | 'retryAt'>): boolean =>
  span.retryAt !== null && isNarrowest(mode, span)

/** NaN for a span with an open end: `<=` is then false, so the span counts as longer than any limit. */
function spanMs(from: string | null, to: string | null): number {
  return Date.parse(to ?? '') - Date.parse(from ?? '')
}

/** After this many smaller pages in a row, larger pages are requested again. */
const PAGES_BEFORE_GROWTH = 10

/** How many rows to request after `pages` pages of `limit` rows have succeeded; at most `most`. */
export function limitAfter(pages: number, limit: number, most: number): number {
  return pages < PAGES_BEFORE_GROWTH ? limit : Math.min(most, limit * 10)
}
