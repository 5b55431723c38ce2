/**
 * Counts the rows of a newest-first list without a total from a few of its pages, and says how certain a count is.
 * Pure. Times are milliseconds since the epoch.
 *
 * Pages are requested before a fixed list of ages until one shows the oldest row, and then in the middle of the gap
 * between two pages that may hold the most rows. The rows on the pages are known. Each gap counts with the density of
 * the pages around it.
 */

/** From the most to the least certain. A sum is as certain as its least certain part. */
const CERTAINTIES = ['exact', 'about', 'at least', 'unknown'] as const

export interface Amount {
  value: number
  certainty: (typeof CERTAINTIES)[number]
}

export const exactly = (value: number): Amount => ({ value, certainty: 'exact' })
export const about = (value: number): Amount => ({ value, certainty: 'about' })
export const atLeast = (value: number): Amount => ({ value, certainty: 'at least' })
export const UNKNOWN: Amount = { value: 0, certainty: 'unknown' }

/** With an unknown part, the sum is a lower bound. */
export function sum(...parts: readonly Amount[]): Amount {
  const value = parts.reduce((total, part) => total + part.value, 0)
  const ranks = parts.map(({ certainty }) => CERTAINTIES.indexOf(certainty))
  const certainty = CERTAINTIES[Math.max(0, ...ranks)] ?? 'unknown'
  if (certainty !== 'unknown') return { value, certainty }
  return parts.every(part => part.certainty === 'unknown') ? UNKNOWN : atLeast(value)
}

/** The number of requests that list this many rows, with `size` rows a page; at least one. */
export function pages({ value, certainty }: Amount, size: number): Amount {
  return { value: Math.max(1, Math.ceil(value / size)), certainty }
}

/** Both bounds are inclusive; undefined means no bound. */
export interface Span {
  from: number | undefined
  to: number | undefined
}

/** A page of the rows up to `at`. */
export interface SeenPage {
  at: number
  /** Newest first. */
  times: readonly number[]
  /** Whether the list has older rows. */
  more: boolean
}

const WEEK = 7 * 86_400_000
/** How long before the first page the other pages end: a week, two, four and so on up to 20 years. */
const AGES = Array.from({ length: 11 }, (_, index) => WEEK * 2 ** index)
/** No page is requested for a gap that may hold a smaller share of the rows. */
const LEAST_SHARE = 0.05

/**
 * @returns the upper bound of the next page to request; undefined when the pages suffice
 * @param seen newest first, at least one
 */
export function nextBound(
  seen: readonly SeenPage[],
  { from = Number.NEGATIVE_INFINITY }: Span,
): number | undefined {
  const [newest, oldest] = [seen[0], seen.at(-1)]
  if (newest && oldest?.more) {
    const next = AGES.map(age => lastOf(newest) - age).find(bound => bound < lastOf(oldest))
    if (next !== undefined && next > from) return next
  }
  const gaps = gapsBetween(seen, from)
  const [widest] = gaps.toSorted((one, other) => other.most - one.most)
  const known = seen.reduce((rows, { times }) => rows + times.length, 0)
  const all = gaps.reduce((rows, gap) => rows + gap.rows, known)
  return widest && widest.most > LEAST_SHARE * all ? Math.round((widest.above + widest.below) / 2) : undefined
}

/**
 * The number of rows in a part of the span that the pages were requested for.
 * @param seen newest first
 * @param from the lower bound of the whole span
 */
export function rowsWithin(seen: readonly SeenPage[], part: Span, from = Number.NEGATIVE_INFINITY): Amount {
  const [begin, end] = [part.from ?? Number.NEGATIVE_INFINITY, part.to ?? Number.POSITIVE_INFINITY]
  const known = seen.flatMap(({ times }, index) => {
    const below = seen[index + 1]?.at ?? Number.NEGATIVE_INFINITY
    return times.filter(time => time > below && time >= begin && time <= end)
  })
  const estimated = gapsBetween(seen, from).reduce((rows, gap) => {
    const shared = Math.min(gap.above, end) - Math.max(gap.below, begin)
    return rows + (gap.rows * Math.max(0, shared)) / (gap.above - gap.below)
  }, 0)
  const value = known.length + Math.round(estimated)
  if (part.from === undefined && seen.at(-1)?.more) return atLeast(value)
  return estimated > 0 ? about(value) : exactly(value)
}

interface Gap {
  above: number
  below: number
  rows: number
  /** The number of rows if the gap is as dense as the denser page next to it. */
  most: number
}

/** The spans that no page shows. The last gap reaches to the lower bound of the list, if it has one. */
function gapsBetween(seen: readonly SeenPage[], from: number): Gap[] {
  return seen.flatMap((upper, index) => {
    const lower = seen[index + 1]
    const above = lastOf(upper)
    const below = lower?.at ?? from
    const width = above - below
    if (!upper.more || width <= 1 || !Number.isFinite(width)) return []
    const [one, other] = [densityOf(upper), densityOf(lower ?? upper)]
    return { above, below, rows: width * between(one, other), most: width * Math.max(one, other) }
  })
}

const lastOf = ({ at, times }: SeenPage): number => times.at(-1) ?? at

/**
 * Rows per millisecond. A page begins anywhere between two rows, on average in the middle. So the time before its first
 * row counts twice.
 */
function densityOf({ at, times }: SeenPage): number {
  const [newest = at, last = at] = [times[0], times.at(-1)]
  return times.length / Math.max(1, 2 * (at - newest) + newest - last)
}

/** The geometric mean. Next to a burst, such as an import, the arithmetic mean would be far too large. */
function between(one: number, other: number): number {
  return one > 0 && other > 0 ? Math.sqrt(one * other) : (one + other) / 2
}
