/**
 * Estimates from a few pages how many rows a newest-first list without a total has. Pure: a generator that yields the
 * span to request and receives the page. Times are milliseconds since the epoch.
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
  /** A second count on the page, such as the bodies to read for its messages. */
  extra: number
}

export interface Estimate {
  rows: number
  /** The second count for the whole list, extrapolated from the pages. */
  extra: number
  /** `exact`: every row was seen; `at least`: the budget was too small to find the oldest row. */
  certainty: 'exact' | 'about' | 'at least'
  /** Approximate time of the oldest row. */
  oldest: number | undefined
}

export interface SampleOptions {
  /** The most requests. */
  budget: number
  /** Where to look for the oldest row first: the oldest row of another list. */
  oldestHint?: number | undefined
}

export const PAGE_ROWS = 100

/** Undefined as a page means that the request failed. The estimate then uses the pages seen so far. */
export type Sampling = Generator<Span, Estimate, Sighting | undefined>

const DAY = 86_400_000
const WEEK = 7 * DAY
/** parley reads no older rows. */
const OLDEST_POSSIBLE = Date.UTC(1990, 0)
const STEP_GROWTH = 8
/** The search for the oldest row ends when the uncertain part of the time axis is a smaller share than this. */
const DOUBT = 0.04
/** The span is cut into this many cells at first. */
const FIRST_CELLS = 7
const FEWEST_REQUESTS = 12

/** A page of rows at `at` and older. */
interface Sample extends Sighting {
  at: number
}

/** A part of the time axis. Its rows are estimated from the samples that begin in it. */
interface SpanCell {
  above: number
  below: number
  samples: readonly Sample[]
  /** The highest density seen in it or in the cell that it was cut from. */
  peak: number
}

type Look = (at: number | undefined) => Generator<Span, Sample | undefined, Sighting | undefined>

export function* sampleList(span: Span, { budget, oldestHint }: SampleOptions): Sampling {
  let used = 0
  const placeIn = createPlaces()
  const look: Look = function* (at) {
    used += 1
    const seen = yield { from: span.from, to: at }
    return seen && { ...seen, at: at ?? seen.times[0] ?? 0 }
  }

  const newest = yield* look(span.to)
  const first = newest?.times.at(-1)
  if (!newest || first === undefined) return { rows: 0, extra: 0, certainty: 'exact', oldest: undefined }
  if (!newest.more)
    return { rows: newest.times.length, extra: newest.extra, certainty: 'exact', oldest: first }

  const samples: Sample[] = []
  const bottom =
    span.from === undefined
      ? yield* findOldest(newest, samples, { look, hint: oldestHint, left: () => budget / 2 - used })
      : { below: span.from, found: true }

  const seeInto = function* (cell: SpanCell): Generator<Span, SpanCell, Sighting | undefined> {
    if (cell.samples.length > 0 || cell.above <= cell.below) return cell
    const page = yield* look(placeIn(cell))
    if (!page) return cell
    const isBurst = isCrowded(page, cell.below, usual)
    usual.push(density(page, cell.below).rows)
    const canLookOn = used + 1 < budget
    if (!canLookOn && isOneInstant(page)) return cell
    const sample = isBurst && canLookOn ? yield* lookOn(page, look) : page
    return { ...cell, samples: [sample], peak: Math.max(cell.peak, density(sample, cell.below).rows) }
  }
  const usual = [newest, ...samples].map(page => density(page, Number.NEGATIVE_INFINITY).rows)
  const plain = samples.filter(page => !isOneInstant(page))
  let cells: readonly SpanCell[] = []
  for (const cell of evenCells(first, bottom.below, plain)) {
    cells = [...cells, used < budget ? yield* seeInto(cell) : cell]
  }
  const limit = Math.min(budget, Math.max(FEWEST_REQUESTS, Math.ceil(countIn(cells).rows / PAGE_ROWS / 2)))
  while (used + 2 <= limit) {
    const chosen = mostDoubtful(cells, density(newest, Number.NEGATIVE_INFINITY).rows)
    if (!chosen) break
    const halves: SpanCell[] = []
    for (const half of halve(chosen)) halves.push(yield* seeInto(half))
    cells = cells.flatMap(cell => (cell === chosen ? halves : [cell]))
  }
  return sumUp(newest, cells, bottom)
}

/** Chooses where to sample a cell. Samples are spread evenly over the week too, since nights are empty. */
function createPlaces(): (cell: SpanCell) => number {
  let phase = 0.5
  return ({ above, below }) => {
    phase = (phase + 0.618_034) % 1
    const play = Math.min(WEEK, above - below)
    return Math.round((above + below) / 2 + (phase - 0.5) * play)
  }
}

/** Joins the page and the next older one into one sample. */
function* lookOn(page: Sample, look: Look): Generator<Span, Sample, Sighting | undefined> {
  const next = yield* look((page.times.at(-1) ?? page.at) - 1)
  if (!next) return page
  return {
    at: page.at,
    times: [...page.times, ...next.times],
    more: next.more,
    extra: page.extra + next.extra,
  }
}

interface Bottom {
  below: number
  /** Whether it is known that no row is older. */
  found: boolean
}

interface Search {
  look: Look
  hint: number | undefined
  left(): number
}

/** Looks back in growing steps until a page is empty, then halves the uncertain part. Every page is also a sample. */
function* findOldest(
  newest: Sample,
  samples: Sample[],
  { look, hint, left }: Search,
): Generator<Span, Bottom, Sighting | undefined> {
  const top = newest.at
  let oldest = newest.times.at(-1) ?? top
  let empty: number | undefined
  let step = Math.max(10 * (top - oldest), DAY)
  const margin = hint === undefined ? 0 : Math.max((top - hint) * DOUBT * 0.5, DAY)
  const hints = hint === undefined || hint >= oldest ? [] : [hint - margin, hint + margin]
  while (left() >= 1) {
    const tried: number = hints.shift() ?? (empty === undefined ? oldest - step : (oldest + empty) / 2)
    const at = Math.round(Math.max(tried, OLDEST_POSSIBLE))
    if (at >= oldest || (empty !== undefined && at <= empty)) continue
    const sample = yield* look(at)
    if (!sample) break
    const last = sample.times.at(-1)
    if (last === undefined) empty = at
    else {
      samples.push(sample)
      oldest = last
      if (!sample.more) return { below: last, found: true }
      step *= STEP_GROWTH
    }
    if (empty !== undefined && hints.length === 0 && oldest - empty < (top - oldest) * DOUBT) break
    if (at === OLDEST_POSSIBLE) break
  }
  return empty === undefined
    ? { below: oldest, found: oldest <= OLDEST_POSSIBLE }
    : { below: (oldest + empty) / 2, found: true }
}

function evenCells(above: number, below: number, samples: readonly Sample[]): SpanCell[] {
  const width = Math.max(0, above - below) / FIRST_CELLS
  return Array.from({ length: FIRST_CELLS }, (_, number) => {
    const top = above - number * width
    const isLast = number === FIRST_CELLS - 1
    const below = top - width
    const within = samples.filter(({ at }) => at <= top && (isLast || at > below))
    const peak = Math.max(0, ...within.map(sample => density(sample, below).rows))
    return { above: top, below, samples: within, peak }
  })
}

/**
 * Both halves get new samples. The old sample is dropped: the cell was chosen because the sample looked dense, so
 * keeping it would bias the estimate.
 */
function halve({ above, below, peak }: SpanCell): readonly SpanCell[] {
  const middle = (above + below) / 2
  return [
    { above, below: middle, samples: [], peak: peak * FADING },
    { above: middle, below, samples: [], peak: peak * FADING },
  ]
}

/** A page this many times denser than usual is a burst, such as an import at one instant. */
const CROWDED = 2.5

/**
 * Whether a page shows a burst instead of the usual density of its cell. If usual pages last less than two days, a
 * dense page may only be daytime.
 */
function isCrowded(page: Sample, below: number, densities: readonly number[]): boolean {
  const sorted = [...densities].sort((one, other) => one - other)
  const usual = sorted[Math.floor(sorted.length / 2)] ?? 0
  return usual < PAGE_ROWS / (2 * DAY) && density(page, below).rows > CROWDED * usual
}

/** A fifth of a page at one instant is an import, which says nothing about the density around it. */
const ONE_INSTANT = PAGE_ROWS / 5

function isOneInstant({ times }: Sample): boolean {
  return times.some((time, index) => times[index + ONE_INSTANT] === time)
}

/** The share of a peak that its cell's halves inherit, since only one of them may contain the peak. */
const FADING = 0.5

/**
 * The cell with the most rows by its width and the highest density seen in it or next to it. A lower density there may
 * only be a quiet night.
 */
function mostDoubtful(cells: readonly SpanCell[], newestDensity: number): SpanCell | undefined {
  const doubts = cells.map(({ above, below, peak }, number) => {
    const over = number === 0 ? newestDensity : (cells[number - 1]?.peak ?? 0)
    return (above - below) * Math.max(peak, over, cells[number + 1]?.peak ?? 0)
  })
  const most = Math.max(...doubts)
  return most > 0 ? cells[doubts.indexOf(most)] : undefined
}

interface Counts {
  rows: number
  extra: number
}

/**
 * Rows per millisecond below a sample's beginning. The sample begins anywhere in a gap between rows, so on average half
 * of the gap is seen, and the seen part counts twice. Otherwise a sample that begins in a quiet night would count as
 * dense.
 */
function density(sample: Sample, below: number): Counts {
  const { at, times, more, extra } = sample
  const last = times.at(-1)
  const newest = times[0]
  if (last === undefined || newest === undefined) return { rows: 0, extra: 0 }
  const each = extra / times.length
  const reached = last < below || !more
  const inside = reached ? times.filter(time => time >= below).length : times.length
  const lasting = reached ? at - below : 2 * (at - newest) + newest - last
  const rows = inside / Math.max(1, lasting)
  return { rows, extra: rows * each }
}

function densityIn({ below, samples }: SpanCell): Counts {
  const all = samples.map(sample => density(sample, below))
  const mean = (of: (counts: Counts) => number) =>
    all.reduce((sum, counts) => sum + of(counts), 0) / Math.max(1, all.length)
  return { rows: mean(({ rows }) => rows), extra: mean(({ extra }) => extra) }
}

/** The rows of all cells together. A cell without samples counts like the average of the others. */
function countIn(cells: readonly SpanCell[]): Counts {
  const counted = { rows: 0, extra: 0, width: 0 }
  const all = cells.reduce((sum, { above, below }) => sum + above - below, 0)
  for (const cell of cells.filter(({ samples }) => samples.length > 0)) {
    const width = cell.above - cell.below
    const { rows, extra } = densityIn(cell)
    counted.rows += rows * width
    counted.extra += extra * width
    counted.width += width
  }
  const whole = counted.width > 0 ? all / counted.width : 0
  return { rows: counted.rows * whole, extra: counted.extra * whole }
}

function sumUp(newest: Sample, cells: readonly SpanCell[], bottom: Bottom): Estimate {
  const { rows, extra } = countIn(cells)
  return {
    rows: Math.round(newest.times.length + rows),
    extra: Math.round(newest.extra + extra),
    certainty: bottom.found ? 'about' : 'at least',
    oldest: bottom.below,
  }
}
