/**
 * Finds the rates that explain an API's answers, for several kinds of limit: a token bucket, a fixed or sliding window
 * of one second, and sliding windows of some seconds. Each kind is modelled as a meter: accepted requests raise it, and
 * time lowers it. A limit has a size: it accepts a request if the meter then stays within that size, and refuses it
 * otherwise. So a limit explains the answers if the size that the accepted requests need is below the size at which a
 * refused request would fit. Pure.
 */

export interface RateAnswer {
  /** When the request was sent, in monotonic milliseconds. */
  at: number
  accepted: boolean
  /** Number of requests that were sent together and got the same answer. */
  count: number
}

/** In requests per second. */
export interface RateRange {
  readonly least: number
  readonly most: number
}

interface Meter {
  /** The level at a time. Times must not decrease. */
  levelAt(at: number): number
  /** Raises the level by accepted requests, at the time of the last `levelAt`. */
  add(count: number): void
}

/** Factor between two rates that are tried. Steps of 1 % miss a bucket's rate if requests are barely faster than it. */
const RATE_STEP = 1.005
/** Uncertainty of the time at which a request arrives at the API. */
const UNCERTAIN_MS = 10
/** Tolerance in requests, in addition to the uncertainty of time. */
const TOLERANCE = 0.1
/**
 * The misfit is the size that the accepted requests need, minus the size at which a refused request would fit. A limit
 * with a larger misfit does not explain the answers. In requests.
 */
const MAX_MISFIT = 1
/** A meter up to this level counts as empty. No limit refuses a request while its meter is empty. */
const EMPTY = 0.02
const WINDOW_MS = 1000
/**
 * Windows longer than one second. Without them, a limit of 100 requests in any 10 s that a slow start has used up would
 * look like a slow bucket with a large burst, and all requests at that slow rate would confirm this. A burst into a
 * window of 2 s would look like a burst into one of 10 s. Longer windows are recognised by their long pauses.
 */
const LONG_WINDOWS_MS = [2000, 3000, 5000, 10_000]
/** If a long window accepts fewer requests, several of these windows explain any number of answers. */
const MIN_LONG_COUNT = 8
/** The start of a fixed window is unknown. This many starts are tried, evenly spread over one window. */
const PHASES = 10

/** The range of rates that explain the answers; undefined if no limit does. `sent` must be in the order of sending. */
export function explainingRates(sent: readonly RateAnswer[], range: RateRange): RateRange | undefined {
  const answers = refusedLast(sent)
  const bucket = bucketRates(answers, range)
  const longWindows = LONG_WINDOWS_MS.map(windowMs => {
    const found = sizes(answers, slidingWindow(windowMs))
    return found.accepted < MIN_LONG_COUNT ? undefined : ratesOfWindow(found, windowMs, range)
  })
  const found = [bucket, windowRates(answers, range), ...longWindows].filter(rates => rates !== undefined)
  if (found.length === 0) return undefined
  return {
    least: Math.min(...found.map(({ least }) => least)),
    most: Math.max(...found.map(({ most }) => most)),
  }
}

/**
 * Sorts the answers by their assumed arrival. Requests that are sent together may arrive in any order, and the API
 * accepts those that arrive first. So a refused request is placed after the accepted ones that were sent within
 * UNCERTAIN_MS of it.
 */
function refusedLast(answers: readonly RateAnswer[]): RateAnswer[] {
  const arrival = ({ at, accepted }: RateAnswer) => (accepted ? at : at + UNCERTAIN_MS)
  let latest = Number.NEGATIVE_INFINITY
  return [...answers]
    .sort((one, other) => arrival(one) - arrival(other))
    .map(answer => {
      latest = Math.max(latest, answer.at)
      return { ...answer, at: latest }
    })
}

function bucketRates(answers: readonly RateAnswer[], range: RateRange): RateRange | undefined {
  const tried: { rate: number; misfit: number }[] = []
  for (let rate = range.least; rate <= range.most; rate *= RATE_STEP) {
    tried.push({ rate, misfit: misfitOf(sizes(answers, bucket(rate))) })
  }
  const best = Math.max(0, Math.min(...tried.map(({ misfit }) => misfit)))
  if (best > MAX_MISFIT + tolerance(range.most)) return undefined
  const rates = tried.filter(({ rate, misfit }) => misfit <= best + tolerance(rate)).map(({ rate }) => rate)
  const [least, most] = [rates[0], rates.at(-1)]
  return least === undefined || most === undefined ? undefined : { least, most }
}

function tolerance(rate: number): number {
  return TOLERANCE + (rate * UNCERTAIN_MS) / 1000
}

function windowRates(answers: readonly RateAnswer[], range: RateRange): RateRange | undefined {
  const read = [
    sizes(answers, slidingWindow(WINDOW_MS)),
    ...Array.from({ length: PHASES }, (_, phase) => sizes(answers, fixedWindow(phase / PHASES))),
  ]
  const best = read.reduce((one, other) => (misfitOf(other) < misfitOf(one) ? other : one))
  return ratesOfWindow(best, WINDOW_MS, range)
}

function ratesOfWindow(found: LimitSizes, windowMs: number, range: RateRange): RateRange | undefined {
  // The size of a window is a whole number of requests, so it is at least one below the level that was refused.
  if (misfitOf(found) + 1 > MAX_MISFIT) return undefined
  const most = Math.min(range.most, (1000 * (found.refused - 1)) / windowMs)
  return { least: Math.min(most, (1000 * found.accepted) / windowMs), most }
}

interface LimitSizes {
  /** The smallest size at which all accepted requests fit. */
  accepted: number
  /** The smallest size at which one of the refused requests would fit. */
  refused: number
}

function misfitOf({ accepted, refused }: LimitSizes): number {
  return refused < 1 + EMPTY ? Number.POSITIVE_INFINITY : accepted - refused
}

function sizes(answers: readonly RateAnswer[], meter: Meter): LimitSizes {
  const found: LimitSizes = { accepted: 1, refused: Number.POSITIVE_INFINITY }
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

/** `phase`: start of the windows, as a share of their length. */
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

function slidingWindow(windowMs: number): Meter {
  const recent: { at: number; count: number }[] = []
  let oldest = 0
  let level = 0
  let lastAt = 0
  return {
    levelAt: at => {
      for (let first = recent[oldest]; first && first.at <= at - windowMs; first = recent[oldest]) {
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
