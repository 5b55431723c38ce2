import { type Answer, explainingRates, type RateRange } from './limit-fit.ts'

/**
 * Looks for a limit of which nothing is known yet: after the first refusal each rate to be tried lies between the rates
 * that explain all answers so far, and its own answers narrow them. Pure; times are monotonic milliseconds.
 */

export interface Search {
  /** The latest answers, and those before in pieces of one length: to add one, only the latest are copied. */
  readonly latest: readonly Answer[]
  readonly earlier: readonly (readonly Answer[])[]
  /** Where the limit is looked for, from the first refusal on. */
  readonly range: RateRange | undefined
}

export interface SearchStep {
  search: Search
  /** To be tried next, in requests a second. */
  rate: number
  isFound: boolean
}

export const NEW_SEARCH: Search = { latest: [], earlier: [], range: undefined }

/** Of the highest rate that was reached: the first refusal may come from a burst, long before the limit is reached. */
const LOWEST = 1 / 30
/** Between the rates that are possible, as an exponent: 1 is the highest of them. */
const BOLDNESS = 0.7
/** Far below the highest there are too many possible rates for them all to be likely. */
const LIKELY = 0.4
/** Closer bounds than this bring no more than the curve around a known limit does. */
const FOUND = 1.05
const PIECE = 50
const MOST_PIECES = 10
const TOGETHER_MS = 10
/** A burst lasts at least so long, and an API that takes one request at a time is asked for more than one in it. */
const PEAK_MS = 250

export function withAnswer(search: Search, { at, accepted }: Omit<Answer, 'count'>): Search {
  const { latest, earlier } = search
  const last = latest.at(-1)
  if (last?.accepted && accepted && Math.abs(at - last.at) < TOGETHER_MS) {
    return { ...search, latest: [...latest.slice(0, -1), { ...last, count: last.count + 1 }] }
  }
  const answer = { at, accepted, count: 1 }
  if (latest.length < PIECE) return { ...search, latest: [...latest, answer] }
  return { ...search, latest: [answer], earlier: [...earlier.slice(1 - MOST_PIECES), latest] }
}

/** A request was refused while so many a second were allowed: at the first time it is known where to look. */
export function withRefusal(search: Search, rate: number): Search {
  if (search.range) return search
  const most = Math.min(rate, peakRate(inOrder(search)))
  return { ...search, range: { least: most * LOWEST, most } }
}

/** The rate that was really reached, in requests a second. */
function peakRate(answers: readonly Answer[]): number {
  let most = 1
  let oldest = 0
  let recent = 0
  const counts = answers.map(({ accepted, count }) => (accepted ? count : 0))
  for (const [index, { at }] of answers.entries()) {
    recent += counts[index] ?? 0
    for (; (answers[oldest]?.at ?? at) <= at - PEAK_MS; oldest += 1) recent -= counts[oldest] ?? 0
    most = Math.max(most, recent)
  }
  return (1000 * most) / PEAK_MS
}

/** Undefined when no limit explains the answers, however old ones are forgotten. */
export function nextStep(search: Search): SearchStep | undefined {
  const { range } = search
  if (range === undefined) return undefined
  let known = inOrder(search)
  let rates = explainingRates(known, range)
  while (rates === undefined) {
    known = sinceFirstRefusal(known)
    if (known.every(({ accepted }) => accepted)) return undefined
    rates = explainingRates(known, range)
  }
  const { least, most } = rates
  const isClose = most / least <= FOUND
  const isAtTop = most * FOUND > range.most
  return {
    // Where only the top is left, it was too low.
    search: { latest: [], earlier: [known], range: isClose && isAtTop ? { least, most: 2 * most } : range },
    rate: Math.max(least, most * LIKELY) ** (1 - BOLDNESS) * most ** BOLDNESS,
    isFound: isClose && !isAtTop,
  }
}

function inOrder({ latest, earlier }: Search): Answer[] {
  return [...earlier.flat(), ...latest].sort((one, other) => one.at - other.at)
}

function sinceFirstRefusal(answers: readonly Answer[]): Answer[] {
  const refused = answers.findIndex(({ accepted }) => !accepted)
  const through = answers.findIndex(({ accepted }, index) => accepted && index > refused)
  return through < 0 ? [] : answers.slice(through)
}

/** Accepted requests a second since the search began; the last request began another window. */
export function meanRate(search: Search, lateMs: number): number {
  const answers = inOrder(search)
  const [first, last] = [answers[0]?.at ?? 0, answers.at(-1)?.at ?? 0]
  const accepted = answers.reduce((sum, answer) => sum + (answer.accepted ? answer.count : 0), -1)
  return (1000 * accepted) / (last - first - lateMs)
}
