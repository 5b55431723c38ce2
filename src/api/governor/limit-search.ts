import { explainingRates, type RateAnswer, type RateRange } from './limit-fit.ts'

/**
 * Searches for an unknown rate limit. A rate explains the answers if a limit of that rate would have accepted and
 * refused the same requests (`limit-fit.ts`). After the first refusal, the search tries a rate between the lowest and
 * the highest rate that explain all answers so far. The answers at that rate narrow the range. Pure. Times are
 * monotonic milliseconds.
 */

export interface RateSearch {
  /** The latest answers. Adding an answer copies only this list, not `earlier`. */
  readonly latest: readonly RateAnswer[]
  /** Earlier answers: the piece that `nextStep` made, then pieces of `PIECE_ANSWERS`. */
  readonly earlier: readonly (readonly RateAnswer[])[]
  /** The range in which the limit is searched for; undefined before the first refusal. */
  readonly range: RateRange | undefined
}

export interface RateSearchStep {
  search: RateSearch
  /** The rate to try next, in requests per second. */
  rate: number
  isFound: boolean
}

export const NEW_SEARCH: RateSearch = { latest: [], earlier: [], range: undefined }

/**
 * The lowest rate that the search considers, as a share of the highest rate reached: that rate may come from a short
 * burst, with the limit far below it.
 */
const LOWEST_SHARE = 1 / 30
/** Position of the next rate between the possible rates on a logarithmic scale: 0 is the lowest, 1 the highest. */
const BOLDNESS = 0.7
/** Possible rates below this share of the highest are ignored when the next rate is chosen. */
const LIKELY_SHARE = 0.4
/**
 * The search ends at this ratio of the highest to the lowest possible rate. The curve of `rate.ts` then finds the exact
 * rate.
 */
const FOUND_RATIO = 1.05
const PIECE_ANSWERS = 50
const MAX_PIECES = 10
/** Older answers are forgotten, since the time of each step grows with the number of answers. */
const MAX_ANSWERS = PIECE_ANSWERS * MAX_PIECES
const TOGETHER_MS = 10
/** Window for the peak rate: at most as long as a burst, and long enough for several requests one after the other. */
const PEAK_MS = 250

export function withAnswer(search: RateSearch, { at, accepted }: Omit<RateAnswer, 'count'>): RateSearch {
  const { latest, earlier } = search
  const last = latest.at(-1)
  if (last?.accepted && accepted && Math.abs(at - last.at) < TOGETHER_MS) {
    return { ...search, latest: [...latest.slice(0, -1), { ...last, count: last.count + 1 }] }
  }
  const answer = { at, accepted, count: 1 }
  if (latest.length < PIECE_ANSWERS) return { ...search, latest: [...latest, answer] }
  return { ...search, latest: [answer], earlier: [...earlier.slice(1 - MAX_PIECES), latest] }
}

/** Records a refusal at this rate, in requests per second. The first refusal sets the range to search. */
export function withRefusal(search: RateSearch, rate: number): RateSearch {
  if (search.range) return search
  const most = Math.min(rate, peakRate(inOrder(search)))
  return { ...search, range: { least: most * LOWEST_SHARE, most } }
}

/** The highest rate that was actually reached, in requests per second. */
function peakRate(answers: readonly RateAnswer[]): number {
  let most = 1
  let oldest = 0
  let recent = 0
  const counts = answers.map(({ accepted, count }) => (accepted ? count : 0))
  for (const [index, { at }] of answers.entries()) {
    recent += counts[index] ?? 0
    for (; (answers[oldest]?.at ?? at) <= at - PEAK_MS; oldest += 1) recent -= counts[oldest] ?? 0
    most = Math.max(most, recent)
  }
  const sinceFirstMs = Math.max(1, (answers.at(-1)?.at ?? 0) - (answers[0]?.at ?? 0))
  return 1000 * Math.max(most / PEAK_MS, (most - 1) / sinceFirstMs)
}

/**
 * The next rate to try, or the limit that was found. Undefined if no refusal is left to explain, or if no limit
 * explains the remembered answers, as when refusals have nothing to do with the rate.
 */
export function nextRateStep(search: RateSearch): RateSearchStep | undefined {
  const { range } = search
  if (range === undefined) return undefined
  const known = newest(search)
  const rates = known.some(isRefused) ? explainingRates(known, range) : undefined
  if (rates === undefined) return undefined
  const { least, most } = rates
  const isClose = most / least <= FOUND_RATIO
  const isAtTop = most * FOUND_RATIO > range.most
  return {
    // When only rates at the top of the range are left, the range was too low, and its upper end moves up.
    search: {
      latest: [],
      earlier: [known],
      range: isClose && isAtTop ? { least, most: 2 * most } : range,
    },
    rate: Math.max(least, most * LIKELY_SHARE) ** (1 - BOLDNESS) * most ** BOLDNESS,
    isFound: isClose && !isAtTop,
  }
}

/** Whether the search still remembers a refusal. */
export function hasRefusal(search: RateSearch): boolean {
  return newest(search).some(isRefused)
}

function inOrder({ latest, earlier }: RateSearch): RateAnswer[] {
  return [...earlier.flat(), ...latest].sort((one, other) => one.at - other.at)
}

/** The newest answers. Refusals at the start are left out too if only forgotten answers explain them. */
function newest(search: RateSearch): RateAnswer[] {
  const answers = inOrder(search)
  if (answers.length <= MAX_ANSWERS) return answers
  const kept = answers.slice(-MAX_ANSWERS)
  return kept.slice(kept.findIndex(({ accepted }) => accepted))
}

const isRefused = ({ accepted }: RateAnswer): boolean => !accepted
