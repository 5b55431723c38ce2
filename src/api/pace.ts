/**
 * How fast the API is asked, learned from its answers. Pure: a state and an event give a state. `at` and `sentAt`
 * are monotonic milliseconds; no timer and no clock is read here.
 */

/** The owner's limits, never exceeded. */
export interface Ceilings {
  requestsPerSecond?: number | undefined
  concurrency?: number | undefined
  /** Over UTC days. */
  requestsPerDay?: number | undefined
}

/** What is worth keeping over a restart. */
export interface LearnedRate {
  ratePerSecond: number
  concurrency: number
  /** Whether the API ever answered 429: then the rate only grows in small steps. */
  limited: boolean
}

export type PauseReason = 'asked' | 'throttled'

export interface PaceState extends Readonly<LearnedRate> {
  readonly ceilings: Ceilings
  /** The rate at the last 429, of which every step of recovery is a share. */
  readonly estimate: number
  readonly pauseStartedAt: number
  readonly pausedUntil: number
  readonly pauseReason: PauseReason | undefined
  /** Pauses in a row without an accepted answer between them. */
  readonly storms: number
  /** When rate and concurrency last grew, once limited. */
  readonly rateGrewAt: number
  readonly concurrencyGrewAt: number
  readonly flow: Flow
  readonly accepted: number
  readonly throttled: number
}

/** What held a request back last before it was let go, other than a pause. */
export type WaitedFor = 'pace' | 'concurrency' | undefined

export type PaceEvent =
  | { kind: 'accepted'; at: number; sentAt: number; waitedFor: WaitedFor }
  /** `jitter`: a random number from 0 up to 1. */
  | { kind: 'throttled'; at: number; sentAt: number; waitMs: number | undefined; jitter: number }

/** How many requests may go how far apart; `minTime` 0 is no pacing at all. */
export interface Pacing {
  minTime: number
  /** Requests that may go together each `minTime`: 1 up to 100 requests a second. */
  batch: number
}

const FIRST_RATE = 10
const FIRST_CONCURRENCY = 4
const MOST_CONCURRENCY = 32
/** One request in 30 s: however often it is refused, parley keeps asking. */
const LOWEST_RATE = 1 / 30
/** From here on pacing would only cost time. */
const UNPACED_RATE = 1000
/** Growth with each accepted answer until the first 429: from 10/s to unpaced in little more than a second. */
const OPENING_GROWTH = 1.1
/** Growth in each clean second after it, as a share of the rate at which the API refused. */
const RECOVERY_SHARE = 0.05
const GROWTH_INTERVAL_MS = 1000
const FIRST_PAUSE_MS = 1000
const LONGEST_OWN_PAUSE_MS = 60_000
/** Pacing finer than this would be at the mercy of timers. */
const SLOT_MS = 10

export function startPace(ceilings: Ceilings, learned: LearnedRate | undefined): PaceState {
  const state: PaceState = {
    ratePerSecond: learned?.ratePerSecond ?? FIRST_RATE,
    concurrency: learned?.concurrency ?? FIRST_CONCURRENCY,
    limited: learned?.limited ?? false,
    ceilings,
    estimate: learned?.ratePerSecond ?? FIRST_RATE,
    pauseStartedAt: Number.NEGATIVE_INFINITY,
    pausedUntil: Number.NEGATIVE_INFINITY,
    pauseReason: undefined,
    storms: 0,
    rateGrewAt: Number.NEGATIVE_INFINITY,
    concurrencyGrewAt: Number.NEGATIVE_INFINITY,
    flow: { level: 0, at: 0, since: undefined },
    accepted: 0,
    throttled: 0,
  }
  return {
    ...state,
    ratePerSecond: withinRate(state, state.ratePerSecond),
    concurrency: withinConcurrency(state, state.concurrency),
  }
}

export function pace(state: PaceState, event: PaceEvent): PaceState {
  return event.kind === 'accepted' ? afterAccepted(state, event) : afterThrottled(state, event)
}

export function pacing({ ratePerSecond, ceilings }: PaceState): Pacing {
  const ceiling = ceilings.requestsPerSecond
  if (ceiling === undefined && ratePerSecond >= UNPACED_RATE) return { minTime: 0, batch: 1 }
  const batch = Math.ceil((ratePerSecond * SLOT_MS) / 1000)
  // A timer may fire a millisecond early, and the owner's ceiling must hold even then.
  const margin = ceiling !== undefined && ratePerSecond >= ceiling ? 1 : 0
  return { minTime: (batch * 1000) / ratePerSecond + margin, batch }
}

function afterAccepted(state: PaceState, event: Extract<PaceEvent, { kind: 'accepted' }>): PaceState {
  const counted: PaceState = {
    ...state,
    accepted: state.accepted + 1,
    flow: addToFlow(state.flow, event.at),
    storms: event.sentAt > state.pauseStartedAt ? 0 : state.storms,
  }
  // What was sent before the pause says nothing about the time after it.
  if (event.sentAt <= state.pauseStartedAt) return counted
  if (event.waitedFor === 'pace') return growRate(counted, event.at)
  return event.waitedFor === 'concurrency' ? growConcurrency(counted, event.at) : counted
}

/** Only a rate that held requests back has been tried, and only then is it raised. */
function growRate(state: PaceState, at: number): PaceState {
  if (!state.limited) {
    return { ...state, ratePerSecond: withinRate(state, state.ratePerSecond * OPENING_GROWTH) }
  }
  if (at - state.rateGrewAt < GROWTH_INTERVAL_MS) return state
  const step = RECOVERY_SHARE * Math.max(state.estimate, state.ratePerSecond)
  return { ...state, rateGrewAt: at, ratePerSecond: withinRate(state, state.ratePerSecond + step) }
}

function growConcurrency(state: PaceState, at: number): PaceState {
  if (state.limited && at - state.concurrencyGrewAt < GROWTH_INTERVAL_MS) return state
  return { ...state, concurrencyGrewAt: at, concurrency: withinConcurrency(state, state.concurrency + 1) }
}

/** The first 429 of an episode slows down and pauses; the others of it, sent before the pause, can only prolong it. */
function afterThrottled(state: PaceState, event: Extract<PaceEvent, { kind: 'throttled' }>): PaceState {
  const { at, waitMs } = event
  const counted = { ...state, throttled: state.throttled + 1 }
  const asked = waitMs === undefined ? Number.NEGATIVE_INFINITY : at + waitMs
  if (event.sentAt <= state.pauseStartedAt)
    return asked > state.pausedUntil ? pauseUntil(counted, asked, 'asked') : counted
  const storms = state.storms + 1
  const longest = Math.min(LONGEST_OWN_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (storms - 1))
  const basis = refusedRate(state, at)
  const slowed: PaceState = {
    ...counted,
    limited: true,
    storms,
    estimate: basis,
    ratePerSecond: withinRate(state, basis / 2),
    concurrency: withinConcurrency(state, Math.floor(state.concurrency / 2)),
    pauseStartedAt: at,
    rateGrewAt: at,
    concurrencyGrewAt: at,
  }
  if (waitMs === undefined) return pauseUntil(slowed, at + event.jitter * longest, 'throttled')
  return pauseUntil(slowed, asked, 'asked')
}

function pauseUntil(state: PaceState, until: number, reason: PauseReason): PaceState {
  return { ...state, pausedUntil: until, pauseReason: reason }
}

/** The rate really achieved lately, or the one allowed when too few answers were accepted to tell. */
function refusedRate(state: PaceState, at: number): number {
  const { level, perSecond } = readFlow(state.flow, at)
  return Math.min(state.ratePerSecond, level >= TELLING_LEVEL ? perSecond : FIRST_RATE)
}

function withinRate({ ceilings }: PaceState, rate: number): number {
  const ceiling = ceilings.requestsPerSecond ?? UNPACED_RATE
  return Math.min(ceiling, Math.max(LOWEST_RATE, rate))
}

function withinConcurrency({ ceilings }: PaceState, concurrency: number): number {
  return Math.max(1, Math.min(MOST_CONCURRENCY, ceilings.concurrency ?? MOST_CONCURRENCY, concurrency))
}

/** Accepted answers, each fading with time: about those of the last second. */
interface Flow {
  readonly level: number
  readonly at: number
  readonly since: number | undefined
}

const FADING_MS = 1000
/** Below this many the level says nothing about a rate. */
const TELLING_LEVEL = 5
const SHORTEST_SPAN_MS = 50

function addToFlow(flow: Flow, at: number): Flow {
  return { level: faded(flow, at) + 1, at, since: flow.since ?? at }
}

function readFlow(flow: Flow, at: number): { level: number; perSecond: number } {
  const level = faded(flow, at)
  const span = Math.max(SHORTEST_SPAN_MS, at - (flow.since ?? at))
  // At a steady rate the level tends to rate times FADING_MS; a young flow has had less time to get there.
  const filled = 1 - Math.exp(-span / FADING_MS)
  return { level, perSecond: (level * 1000) / (FADING_MS * filled) }
}

function faded(flow: Flow, at: number): number {
  return flow.level * Math.exp(-Math.max(0, at - flow.at) / FADING_MS)
}
