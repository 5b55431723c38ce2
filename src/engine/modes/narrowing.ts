import type { RetryCause } from '../../api/classify.ts'
import { type Backoff, longestBackoffMs } from '../../backoff.ts'
import type { Segment } from '../../store/sync/segments.ts'
import { DAY, HOUR, MINUTE, WEEK } from '../schedule/intervals.ts'

/**
 * What is asked next about something that failed, so that one bad thing never stops its neighbours: what fails is made
 * smaller until the bad part is alone, and that part is put off by itself. Pure.
 */

/** Failures of a feed in a row after which the feed itself fails, and not what was asked for. */
export const MOST_FAILURES_IN_A_ROW = 10

/** Some part of what failed as a whole is expected to fail: only what cannot be divided is tried as often as others. */
export const ATTEMPTS_OF_A_PART = 2

type Growth = Omit<Backoff, 'jitter'>

/** How long something that could not be read by itself is left alone. */
const ALONE: Growth = { firstMs: 2 * HOUR, mostMs: WEEK }

/**
 * More failures of a feed in a row than its page alone needs to be narrowed down say nothing about the newest rows: the
 * whole list fails. (Half a minute of errors once cut the newest span two weeks ahead, and new rows waited for audits.)
 */
export const FAILURES_OF_ONE_PAGE = 4

/** How long to wait for a feed that answers nothing. */
const FEED: Growth = { firstMs: 5_000, mostMs: 15 * MINUTE }

/** How long a key, or a span that cannot be divided any more, is left alone, in ms. */
export function aloneBackoffMs(failures: number): number {
  return longestBackoffMs(ALONE, failures)
}

/** How long to wait before the same page is asked for again, in ms. */
export function pageBackoffMs(failures: number): number {
  return longestBackoffMs(FEED, failures)
}

/** The parts to ask for in place of keys that one request named and that failed together; none for a single key. */
export function halves<T>(keys: readonly T[]): (readonly T[])[] {
  if (keys.length < 2) return []
  const middle = Math.ceil(keys.length / 2)
  return [keys.slice(0, middle), keys.slice(middle)]
}

/** A page of any list that failed. */
export interface FailedPage {
  /** Failures at this place, this one included. */
  attempts: number
  /** Rows asked for. */
  limit: number
  /** Of the error. */
  code: string
  /** The same request may be answered a little later. */
  mayPass: boolean
}

/** A page of a list in time order, with what its pass has still before it. */
export interface FailedTimelinePage extends FailedPage {
  /** The instants between which rows are unread; null where the axis has no end. */
  from: string | null
  to: string | null
  now: number
  /** Failures of the whole feed in a row, this one included. */
  feedFailures: number
  /** Rows that a pass with smaller pages reads again before it gets to this page. */
  rowsAgain: number
}

export type NextForPage =
  /** The same page after a wait. */
  | { step: 'wait' }
  /** The same place with so many rows a page. */
  | { step: 'shrink'; limit: number }
  /**
   * The first row fails, wherever it lies: the span is cut at this instant, in ms, and each part asked for by itself.
   */
  | { step: 'cut'; at: number }
  /** The bad row is alone. */
  | { step: 'step-over' }

const LIMITS = [10, 1]

/** A bound is asked for rounded up to a millisecond, so that a narrower span would hold the same rows. */
const NARROWEST_MS = 2

/** Where the axis has no end, the first cut lies so near and each further one four times as far. */
const FIRST_REACH_MS = 1000
const LONGEST_REACH_MS = 100 * 365 * DAY

/** In a span that cannot be divided, smaller pages are only worth it where they soon get to the bad row. */
const MOST_ROWS_AGAIN = 100

/** The year 1: years before it are written with a sign, and sort elsewhere. */
const EARLIEST_MS = Date.parse('0001-01-01T00:00:00.000Z')

export function nextForPage(page: FailedTimelinePage): NextForPage {
  if (!isOfThePage(page) || page.feedFailures > MOST_FAILURES_IN_A_ROW) return { step: 'wait' }
  const isAlone = isNarrowest(page.from, page.to)
  if (!isAlone && isTriedAgain(page)) return { step: 'wait' }
  const smaller = LIMITS.find(other => other < page.limit)
  const isWorthIt = !isAlone || page.rowsAgain <= MOST_ROWS_AGAIN
  if (smaller !== undefined && isWorthIt) return { step: 'shrink', limit: smaller }
  if (isAlone) return { step: 'step-over' }
  if (page.to === null && page.mayPass && page.feedFailures > FAILURES_OF_ONE_PAGE) return { step: 'wait' }
  const at = cutAt(page)
  return at === undefined ? { step: 'step-over' } : { step: 'cut', at }
}

/** A page of a log that is read in periods. */
export interface FailedPeriodPage extends FailedPage {
  from: string | null
  to: string | null
  /** Failures of the whole feed in a row, this one included. */
  feedFailures: number
  /** Another period was answered by this process. */
  isAnswered: boolean
}

/** A log's period is cut where the rest of the log is answered: each part of it holds fewer rows. */
export function nextForPeriod({
  from,
  to,
  isAnswered,
  ...page
}: FailedPeriodPage): Exclude<NextForPage, { step: 'shrink' }> {
  const mostFailures = page.mayPass ? FAILURES_OF_ONE_PAGE : MOST_FAILURES_IN_A_ROW
  if (from === null || to === null || !isOfThePage(page) || page.feedFailures > mostFailures)
    return { step: 'wait' }
  const [begin, end] = [Date.parse(from), Date.parse(to)]
  if (end - begin <= SHORTEST_PERIOD_MS) return { step: 'step-over' }
  if (!isAnswered || isTriedAgain(page)) return { step: 'wait' }
  return { step: 'cut', at: Math.floor((begin + end) / 2) }
}

/** A period that is no longer than this is not divided. */
export const SHORTEST_PERIOD_MS = MINUTE

/** A list that cannot be cut is read from its top with smaller pages, once. */
export function nextForPass(page: FailedPage): Extract<NextForPage, { step: 'wait' | 'shrink' }> {
  const [smaller = 1] = LIMITS
  const isFirst = page.attempts <= 2 || page.code === TOO_LARGE
  const isWorthIt = isFirst && isOfThePage(page) && !isTriedAgain(page) && page.limit > smaller
  return isWorthIt ? { step: 'shrink', limit: smaller } : { step: 'wait' }
}

const TOO_LARGE = 'response-too-large'

/** Faults that the size of a page, or a row on it, may be the reason of. */
const OF_THE_PAGE: ReadonlySet<string> = new Set<RetryCause | typeof TOO_LARGE>([
  'server',
  'timeout',
  'transport',
  'garbled',
  TOO_LARGE,
])

/**
 * Refusals of lists to which the API's description gives a meaning: the request is wrong, or the whole list may not be
 * read. Any other, such as a 410, may be due to one row.
 */
const OF_THE_WHOLE_LIST: ReadonlySet<string> = new Set(['refused-400', 'refused-403', 'refused-404'])

const isOfThePage = ({ code }: FailedPage) =>
  OF_THE_PAGE.has(code) || (code.startsWith('refused-') && !OF_THE_WHOLE_LIST.has(code))

const isTriedAgain = ({ mayPass, attempts, code }: FailedPage) =>
  mayPass && attempts < 2 && code !== TOO_LARGE

function cutAt({ attempts, now, ...bounds }: FailedTimelinePage): number | undefined {
  const from = bounds.from === null ? null : Date.parse(bounds.from)
  const to = bounds.to === null ? null : Date.parse(bounds.to)
  const reach = Math.min(FIRST_REACH_MS * 4 ** attempts, LONGEST_REACH_MS)
  // The newest span gets every row that is still to come: what is read must not be narrowed away from it.
  if (to === null) return Math.max(now, from ?? now) + reach
  if (from === null) {
    const at = Math.max(to - reach, EARLIEST_MS)
    return at < to ? at : undefined
  }
  return Math.floor((from + to) / 2)
}

/** Whether a span of event time cannot be divided any more. */
export function isNarrowest(from: string | null, to: string | null): boolean {
  return from !== null && to !== null && Date.parse(to) - Date.parse(from) <= NARROWEST_MS
}

/** Whether it is known of a span that it holds a row that cannot be read. */
export function isSteppedOver({ from, to, retryAt }: Pick<Segment, 'from' | 'to' | 'retryAt'>): boolean {
  return retryAt !== null && isNarrowest(from, to)
}

/** After so many pages of fewer rows than usual were answered in a row, larger ones are asked for again. */
const PAGES_BEFORE_GROWTH = 10

/** How many rows to ask for after pages of `limit` rows were answered; at most `most`. */
export function limitAfter(pages: number, limit: number, most: number): number {
  return pages < PAGES_BEFORE_GROWTH ? limit : Math.min(most, limit * 10)
}
