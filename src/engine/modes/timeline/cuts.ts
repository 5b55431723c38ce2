import type { Segment } from '../../../store/sync/segments.ts'

/**
 * Where a long pass is cut, so that what is left of it is read in several passes at once. Nobody knows where a history
 * ends nor how dense it is: a cut rests on what was seen so far, goes through the longest pass, and is made only as
 * long as it pays, since each may cost a page that is not full. Pure.
 */

/** What is read together: all segments that are due and somebody waits for. */
export interface Effort {
  /** Newest first. */
  open: readonly Segment[]
  /** Pages read so far. */
  pages: number
  /** Passes so far, with those that have yet to begin. */
  passes: number
  /** Time of the newest row. */
  newest: string
}

export interface Cut {
  segment: Segment
  at: string
}

/** A list with fewer pages is read in one pass. */
const LONG_PAGES = 20
/** At most one cut for so many pages: on average half a page is lost with each. */
const PAGES_FOR_A_CUT = 60
/** A pass is cut when it has so many times as much left as it would have if all had the same. */
const UNEVEN = 3
/** What is over as soon as this is left as it is. */
const FEWEST_PAGES = 6
/** A history is taken to go on for at most so many times what was seen of it. */
const GOES_ON = 2
/** From so many pages on a pass tells how dense its own part is: at most so many times as dense as all. */
const TELLING_PAGES = 4
const DENSEST = 4

/** What is known of a pass, in ms of event time. */
interface Way {
  segment: Segment
  edge: number
  /** To the newest instant of it. */
  done: number
  left: number
}

/** Undefined where a cut does not pay. */
export function nextCut({ open, pages, passes, newest }: Effort): Cut | undefined {
  if (pages < LONG_PAGES) return undefined
  const ways = open.flatMap(segment => wayOf(segment, Date.parse(newest)) ?? [])
  const density = sum(ways, ({ segment }) => segment.pages) / sum(ways, ({ done }) => done)
  const leftOf = (way: Way) => way.left * densityOf(way, density)
  const [longest] = [...ways].sort((one, other) => leftOf(other) - leftOf(one))
  if (!longest) return undefined
  const seeming = sum(ways, leftOf) + sum(open, segment => notBegun(segment, density))
  const left = Math.min(seeming, GOES_ON * pages)
  // With one that is free, or nothing could begin.
  const cutsLeft = 2 + Math.floor((pages + left) / PAGES_FOR_A_CUT) - passes
  const even = left / (open.length + cutsLeft)
  if (cutsLeft < 1 || leftOf(longest) < Math.max(FEWEST_PAGES, UNEVEN * even)) return undefined
  const at = unround(Math.max(0, longest.edge - longest.left / 2))
  const { segment } = longest
  const isWithin = at > (segment.from ?? '') && at < (segment.edgeAt ?? '')
  return isWithin ? { segment, at } : undefined
}

/** Rows at the very instant of a cut are read twice, and at a full hour there may be many. */
function unround(instant: number): string {
  return new Date(Math.floor(instant / 1000) * 1000 + UNROUND_MS).toISOString()
}

const UNROUND_MS = 617

/** Undefined for a pass that has not got anywhere yet. */
function wayOf(segment: Segment, newest: number): Way | undefined {
  if (segment.cursor === null || segment.edgeAt === null) return undefined
  const edge = Date.parse(segment.edgeAt)
  const done = (segment.to === null ? newest : Date.parse(segment.to)) - edge
  if (done <= 0) return undefined
  const toBound = segment.from === null ? Number.POSITIVE_INFINITY : edge - Date.parse(segment.from)
  return { segment, edge, done, left: Math.max(0, Math.min(toBound, GOES_ON * (newest - edge))) }
}

/** In pages a ms: a few pages may happen to lie in a dense hour, and many at one instant. */
function densityOf({ segment, done }: Way, average: number): number {
  const own = segment.pages / done
  return Math.min(own, segment.pages < TELLING_PAGES ? average : DENSEST * average)
}

/** Pages of a span that nothing was read of, as far as it has two ends. */
function notBegun({ pages, from, to }: Segment, density: number): number {
  if (pages > 0) return 0
  return from === null || to === null ? 1 : (Date.parse(to) - Date.parse(from)) * density
}

function sum<T>(values: readonly T[], of: (value: T) => number): number {
  return values.reduce((total, value) => total + of(value), 0)
}
