import type { Segment } from '../../../store/sync/segments.ts'

/**
 * Decides where to cut a long pass, so that several passes read the rest at the same time. The end and the density of a
 * history are unknown, so they are estimated from the pages read so far. A cut divides the pass with the most pages
 * left. Each cut may cost a page that is not full, so the number of cuts is limited. Pure.
 */

/** The due segments that may bring new rows (`Schedule.isAwaited`), and the progress of their passes. */
export interface AwaitedPasses {
  /** Newest first. */
  open: readonly Segment[]
  /** Pages read so far. */
  pages: number
  /** Passes so far, including open segments whose pass has not begun. */
  passes: number
  /** Time of the newest row. */
  newest: string
}

export interface Cut {
  segment: Segment
  at: string
}

/** A list with fewer pages than this is read in one pass. */
const LONG_PAGES = 20
/** At most one cut for this many pages: each cut costs half a page on average. */
const PAGES_FOR_A_CUT = 60
/** A pass is cut when the pages left in it are at least this many times an even share of all pages left. */
const UNEVEN = 3
/** A pass with fewer pages left than this is not worth cutting. */
const FEWEST_PAGES = 6
/** A history is expected to go on for at most this many times the part that was read. */
const GOES_ON = 2
/** A pass with fewer pages than this counts as at most as dense as the average of all passes. */
const TELLING_PAGES = 4
/** A pass with more pages counts as at most this many times as dense as the average. */
const DENSEST = 4

/** How far a pass has come. Its edge is the time of the last row that it has read. Spans in ms of event time. */
interface PassProgress {
  segment: Segment
  edge: number
  /** From the newest instant down to the edge. */
  done: number
  /** Expected span from the edge down to the end of the pass. */
  left: number
}

/** @returns the next cut; undefined when no cut pays */
export function nextCut({ open, pages, passes, newest }: AwaitedPasses): Cut | undefined {
  if (pages < LONG_PAGES) return undefined
  const begun = open.flatMap(segment => progressOf(segment, Date.parse(newest)) ?? [])
  const density = sum(begun, ({ segment }) => segment.pages) / sum(begun, ({ done }) => done)
  const leftOf = (pass: PassProgress) => pass.left * densityOf(pass, density)
  const [longest] = [...begun].sort((one, other) => leftOf(other) - leftOf(one))
  if (!longest) return undefined
  const expected = sum(begun, leftOf) + sum(open, segment => pagesToStart(segment, density))
  const left = Math.min(expected, GOES_ON * pages)
  // The limit allows one extra cut. Otherwise a list of fewer than `PAGES_FOR_A_CUT` pages would never be cut.
  const cutsLeft = 2 + Math.floor((pages + left) / PAGES_FOR_A_CUT) - passes
  const even = left / (open.length + cutsLeft)
  if (cutsLeft < 1 || leftOf(longest) < Math.max(FEWEST_PAGES, UNEVEN * even)) return undefined
  const at = unround(Math.max(0, longest.edge - longest.left / 2))
  const { segment } = longest
  const isWithin = at > (segment.from ?? '') && at < (segment.edgeAt ?? '')
  return isWithin ? { segment, at } : undefined
}

/**
 * Moves a cut to an instant between full seconds. Rows at the exact instant of a cut are read twice, and many rows may
 * have a rounded time, such as a full hour.
 */
function unround(instant: number): string {
  return new Date(Math.floor(instant / 1000) * 1000 + UNROUND_MS).toISOString()
}

const UNROUND_MS = 617

/** @returns undefined for a pass that has made no progress */
function progressOf(segment: Segment, newest: number): PassProgress | undefined {
  if (segment.cursor === null || segment.edgeAt === null) return undefined
  const edge = Date.parse(segment.edgeAt)
  const done = (segment.to === null ? newest : Date.parse(segment.to)) - edge
  if (done <= 0) return undefined
  const toBound = segment.from === null ? Number.POSITIVE_INFINITY : edge - Date.parse(segment.from)
  return { segment, edge, done, left: Math.max(0, Math.min(toBound, GOES_ON * (newest - edge))) }
}

/** In pages per ms. Capped, since the few pages of a pass may come from one busy hour, or even from one instant. */
function densityOf({ segment, done }: PassProgress, average: number): number {
  const own = segment.pages / done
  return Math.min(own, segment.pages < TELLING_PAGES ? average : DENSEST * average)
}

/** Expected pages of a pass that has not begun; 1 for a span with an open end. */
function pagesToStart({ pages, from, to }: Segment, density: number): number {
  if (pages > 0) return 0
  return from === null || to === null ? 1 : (Date.parse(to) - Date.parse(from)) * density
}

function sum<T>(values: readonly T[], of: (value: T) => number): number {
  return values.reduce((total, value) => total + of(value), 0)
}
