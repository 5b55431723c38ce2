/**
 * Estimates from a few pages how many rows a newest-first list without a total has. Pure: a generator that yields the
 * span to request and receives the page. Times are milliseconds since the epoch.
 *
 * The rows within a page's own span are known. Only the gaps between the pages are estimated, from the densities of the
 * pages around them, and the next page is taken from the middle of the gap that may hold the most rows.
 */

/** Both bounds are inclusive; undefined means no bound. */
export interface Span {
  from: number | undefined
  to: number | undefined
}

/** One page of at most `PAGE_ROWS` rows. */
export interface Sighting {
  /** Newest first. */
  times: readonly number[]
  /** Whether the list has older rows. */
  more: boolean
}

export interface Estimate {
  rows: number
  /** `exact`: every row was seen; `at least`: the budget was too small to find the oldest row. */
  certainty: 'exact' | 'about' | 'at least'
}

export const PAGE_ROWS = 100

/** When a request fails, the generator receives undefined. The estimate then uses the pages seen so far. */
export type Sampling = Generator<Span, Estimate, Sighting | undefined>

const DAY = 86_400_000
/** The search for the oldest row goes back no further. */
const OLDEST_POSSIBLE = Date.UTC(1990, 0)
const STEP_GROWTH = 8
/** The sampling ends when no gap may hold a larger share of the rows than this. */
const DOUBT = 0.05

/** A page: all rows between `at` and `last` are known. */
interface Part {
  at: number
  last: number
  rows: number
  /** Rows per millisecond around the page. */
  density: number
}

interface Gap {
  above: number
  below: number
  rows: number
  /** The number of rows if the gap is as dense as the denser page next to it. */
  most: number
}

/** @param budget the most requests */
export function* sampleList(span: Span, budget: number): Sampling {
  /** Newest first. */
  const parts: Part[] = []
  let used = 0
  let isEndFound = false

  const look = function* (to: number | undefined): Generator<Span, Part | undefined, Sighting | undefined> {
    used += 1
    const page = yield { from: span.from, to }
    if (!page) return undefined
    const at = to ?? page.times[0] ?? 0
    const below = parts.find(part => part.at < at)
    const part = partOf(page, at, below)
    parts.splice(below ? parts.indexOf(below) : parts.length, 0, part)
    isEndFound ||= !page.more
    return part
  }

  const newest = yield* look(span.to)
  if (newest && span.from === undefined) {
    // Looks back in growing steps until a page shows that the list has no older rows.
    let step = Math.max(4 * (newest.at - newest.last), DAY)
    let part: Part | undefined = newest
    while (part && !isEndFound && used < budget / 2) {
      const at: number = Math.max(part.last - step, OLDEST_POSSIBLE)
      part = yield* look(Math.round(at))
      step *= STEP_GROWTH
      isEndFound ||= at === OLDEST_POSSIBLE
    }
  }
  const gaps = () => gapsBetween(parts, isEndFound ? undefined : span.from)

  while (used < budget) {
    const open = gaps()
    const most = Math.max(0, ...open.map(gap => gap.most))
    const widest = open.find(gap => gap.most === most)
    if (!widest || most < DOUBT * rowsIn([...parts, ...open])) break
    const { above, below } = widest
    if (!(yield* look(Math.round(most <= PAGE_ROWS ? above - 1 : (above + below) / 2)))) break
  }

  const unseen = rowsIn(gaps())
  const isWhole = isEndFound || span.from !== undefined || newest === undefined
  return {
    rows: Math.round(rowsIn(parts) + unseen),
    certainty: !isWhole ? 'at least' : unseen > 0 ? 'about' : 'exact',
  }
}

/** @param below the next older page: rows that both show count once */
function partOf({ times, more }: Sighting, at: number, below: Part | undefined): Part {
  const newest = times[0] ?? at
  const last = times.at(-1) ?? at
  const rows = below ? times.filter(time => time > below.at).length : times.length
  const isJoined = below !== undefined && (!more || rows < times.length)
  // A page's span begins anywhere in the gap between two rows, on average in its middle. So the part of the gap in the
  // span counts twice. Otherwise the density would be too high for a page that begins in a quiet night.
  const density = times.length / Math.max(1, 2 * (at - newest) + newest - last)
  return { at, last: isJoined ? below.at : last, rows, density }
}

/** @param from the lower bound of the list; undefined when it has none, or the oldest page reaches the list's end */
function gapsBetween(parts: readonly Part[], from: number | undefined): Gap[] {
  return parts.flatMap((upper, index) => {
    const lower = parts[index + 1]
    const above = upper.last
    const below = lower?.at ?? from ?? above
    const width = above - below
    if (width <= 1) return []
    const [one, other] = [upper.density, (lower ?? upper).density]
    return { above, below, rows: width * between(one, other), most: width * Math.max(one, other) }
  })
}

/** The geometric mean: next to a burst, such as an import, the arithmetic one would be far too large. */
function between(one: number, other: number): number {
  return one > 0 && other > 0 ? Math.sqrt(one * other) : (one + other) / 2
}

function rowsIn(all: readonly { rows: number }[]): number {
  return all.reduce((sum, { rows }) => sum + rows, 0)
}
