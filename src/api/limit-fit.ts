/**
 * Which rates explain an API's answers, whatever kind of limit it has. A limit is a meter that accepted requests raise
 * and time lowers: an accepted request leaves it within the size of the limit, a refused one would have raised it above.
 * So a kind of limit explains the answers if the accepted requests need a smaller size than the refused ones. Pure.
 */

export interface Answer {
  /** When the request was sent, in monotonic milliseconds. */
  at: number
  accepted: boolean
  /** Requests sent together with the same answer. */
  count: number
}

/** In requests a second. */
export interface RateRange {
  readonly least: number
  readonly most: number
}

interface Meter {
  /** Where it stands at a time; times only grow. */
  levelAt(at: number): number
  /** Raises it by accepted requests at the time last asked for. */
  add(count: number): void
}

/** Rates are tried in such steps. */
const STEP = 1.01
/** By so much the arrival of a request may differ from what is known here. */
const UNCERTAIN_MS = 10
/** In requests, where all is known exactly. */
const TOLERANCE = 0.1
/** In requests: a kind of limit with a larger misfit is another kind. */
const MOST_MISFIT = 1
/** A meter that has just returned to zero refuses no request. */
const EMPTY = 0.02
/** Longer windows are recognised by their long waits. */
const WINDOW_MS = 1000
/** When windows begin is not known: so many moments are tried. */
const PHASES = 10

/** The answers are in the order of sending. Undefined when no kind of limit explains them. */
export function explainingRates(answers: readonly Answer[], range: RateRange): RateRange | undefined {
  const bucket = bucketRates(answers, range)
  const window = windowRates(answers, range)
  if (bucket === undefined || window === undefined) return bucket ?? window
  return { least: Math.min(bucket.least, window.least), most: Math.max(bucket.most, window.most) }
}

function bucketRates(answers: readonly Answer[], range: RateRange): RateRange | undefined {
  const tried: { rate: number; misfit: number }[] = []
  for (let rate = range.least; rate <= range.most; rate *= STEP) {
    tried.push({ rate, misfit: misfitOf(sizes(answers, bucket(rate))) })
  }
  const best = Math.max(0, Math.min(...tried.map(({ misfit }) => misfit)))
  if (best > MOST_MISFIT + tolerance(range.most)) return undefined
  const rates = tried.filter(({ rate, misfit }) => misfit <= best + tolerance(rate)).map(({ rate }) => rate)
  const [least, most] = [rates[0], rates.at(-1)]
  return least === undefined || most === undefined ? undefined : { least, most }
}

function tolerance(rate: number): number {
  return TOLERANCE + (rate * UNCERTAIN_MS) / 1000
}

function windowRates(answers: readonly Answer[], range: RateRange): RateRange | undefined {
  const meters = [
    slidingWindow(),
    ...Array.from({ length: PHASES }, (_, phase) => fixedWindow(phase / PHASES)),
  ]
  const read = meters.map(meter => sizes(answers, meter))
  const best = read.reduce((one, other) => (misfitOf(other) < misfitOf(one) ? other : one))
  // The size of a window is a whole number of requests below the one that was refused.
  if (misfitOf(best) + 1 > MOST_MISFIT) return undefined
  const most = Math.min(range.most, (1000 * (best.refused - 1)) / WINDOW_MS)
  return { least: Math.min(most, (1000 * best.accepted) / WINDOW_MS), most }
}

interface Sizes {
  /** The least size with which all accepted requests are accepted. */
  accepted: number
  /** The least size with which one of the refused would be. */
  refused: number
}

function misfitOf({ accepted, refused }: Sizes): number {
  return refused < 1 + EMPTY ? Number.POSITIVE_INFINITY : accepted - refused
}

function sizes(answers: readonly Answer[], meter: Meter): Sizes {
  const found: Sizes = { accepted: 1, refused: Number.POSITIVE_INFINITY }
  for (const { at, accepted, count } of answers) {
    const level = meter.levelAt(at)
    if (accepted) {
      meter.add(count)
      found.accepted = Math.max(found.accepted, level + count)
    } else found.refused = Math.min(found.refused, level + 1)
  }
  return found
}

function bucket(rate: number): Meter {
  let level = 0
  let lastAt = Number.NEGATIVE_INFINITY
  return {
    levelAt: at => {
      level = Math.max(0, level - ((at - lastAt) * rate) / 1000)
      lastAt = at
      return level
    },
    add: count => {
      level += count
    },
  }
}

/** `phase`: the share of a window after which one begins. */
function fixedWindow(phase: number): Meter {
  let level = 0
  let current = Number.NaN
  return {
    levelAt: at => {
      const window = Math.floor(at / WINDOW_MS - phase)
      if (window !== current) level = 0
      current = window
      return level
    },
    add: count => {
      level += count
    },
  }
}

function slidingWindow(): Meter {
  const recent: { at: number; count: number }[] = []
  let oldest = 0
  let level = 0
  let lastAt = 0
  return {
    levelAt: at => {
      for (let first = recent[oldest]; first && first.at <= at - WINDOW_MS; first = recent[oldest]) {
        level -= first.count
        oldest += 1
      }
      lastAt = at
      return level
    },
    add: count => {
      recent.push({ at: lastAt, count })
      level += count
    },
  }
}
