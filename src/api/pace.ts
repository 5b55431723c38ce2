import { backoffMs, longestBackoffMs } from '../backoff.ts'
import {
  answered,
  type ConcurrencyState,
  FIRST_CONCURRENCY,
  MOST_CONCURRENCY,
  refuseCrowd,
  startConcurrency,
} from './concurrency.ts'
import { accept, noteAnswer, type RateState, refuse, startRate } from './rate.ts'

/**
 * How the API is asked, learned from its answers: how fast, how many at a time, and when not at all. Pure: a state
 * and an event give a state. Times are monotonic milliseconds; no timer and no clock is read here.
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
  /** Whether the API ever refused because of the rate. */
  limited: boolean
  /** Whether it ever refused because of too many at a time; an older version did not tell the two apart. */
  crowded?: boolean
}

export type PauseReason = 'asked' | 'throttled'

export interface PaceState {
  readonly ceilings: Ceilings
  readonly rate: RateState
  readonly concurrency: ConcurrencyState
  /** Set while it is not known whether a refusal was for the rate or for too many at a time. */
  readonly doubt: Doubt | undefined
  /** Requests sent up to then are of an episode that is dealt with. */
  readonly episodeAt: number
  /** Until then nothing may go; before `askedUntil` it is the time of the next trial request. */
  readonly pausedUntil: number
  /** Until then the API has asked to wait; the past when it has not. */
  readonly askedUntil: number
  readonly pauseReason: PauseReason | undefined
  /** Refusals in a row without an accepted answer between them, and since when. */
  readonly refusals: number
  readonly blockedSince: number
  readonly accepted: number
  readonly throttled: number
}

interface Doubt {
  /** So many others were under way when a request was refused. */
  readonly beside: number
  /** To be allowed again if that was not the reason. */
  readonly limitBefore: number
  readonly accepted: number
  /** How often it was refused so, each time soon after the time before. */
  readonly times: number
}

/** What held a request back last before it was let go, other than a pause. */
export type WaitedFor = 'pace' | 'concurrency' | undefined

export type PaceEvent =
  | { kind: 'accepted'; at: number; sentAt: number; waitedFor: WaitedFor }
  /**
   * `beside`: requests that were under way when it was sent or still are now that it is refused: which of them came
   * first is not known here. `jitter`: a random number from 0 up to 1.
   */
  | {
      kind: 'throttled'
      at: number
      sentAt: number
      beside: { atSend: number; now: number }
      waitMs: number | undefined
      jitter: number
    }

  /** A request may go; until it has an answer no other tries to end a wait that the API asked for. */
  | { kind: 'granted'; at: number }
  /** It did not go after all. */
  | { kind: 'unsent'; at: number }

type Refusal = Extract<PaceEvent, { kind: 'throttled' }>

/** How many requests may go how far apart; `minTime` 0 is no pacing at all. */
export interface Pacing {
  minTime: number
  /** Requests that may go together each `minTime`: 1 up to 100 requests a second. */
  batch: number
  /** After a turn that a busy machine took late the next may follow sooner, but not sooner than this. */
  leastMs: number
}

const FIRST_RATE = 5
/** One request in 30 s: however often it is refused, parley keeps asking. */
const LOWEST_RATE = 1 / 30
/** From here on pacing would only cost time. */
const UNPACED_RATE = 1000
/** A wait that the API asks for may be a mistake of it, such as an instant for seconds: one request finds out. */
const TRIAL_EVERY_MS = 15 * 60_000
/** So many accepted answers with fewer under way, and it was too many at a time that was refused. */
const CONVINCING = 50
const LONGEST_CROWD_MS = 2000
/** So many accepted answers for each request under way are soon. */
const SOON = 4
const MOST_DOUBTS = 4
const FAR_FEWER = 0.6
const EARLY_PAUSE = { firstMs: 1000, mostMs: 4000 }
const LONGEST_OWN_PAUSE_MS = 60_000
/** Of the time since it was let through last, so that the end of a long window is not missed by much. */
const PAUSE_SHARE = 1 / 8
/** Pacing finer than this would be at the mercy of timers. */
const SLOT_MS = 10
/** Of `minTime`: a little at a time, since an API that saves nothing up refuses what comes any sooner. */
const CATCH_UP = 0.95

export function startPace(ceilings: Ceilings, learned: LearnedRate | undefined): PaceState {
  const rate = learned?.ratePerSecond ?? FIRST_RATE
  const bounds = {
    least: LOWEST_RATE,
    most: Math.min(ceilings.requestsPerSecond ?? UNPACED_RATE, UNPACED_RATE),
  }
  const most = Math.min(ceilings.concurrency ?? MOST_CONCURRENCY, MOST_CONCURRENCY)
  return {
    ceilings,
    rate: startRate({ rate, limited: learned?.limited ?? false, bounds }),
    concurrency: startConcurrency({
      limit: learned?.concurrency ?? FIRST_CONCURRENCY,
      crowded: learned?.crowded ?? false,
      most,
    }),
    doubt: undefined,
    episodeAt: Number.NEGATIVE_INFINITY,
    pausedUntil: Number.NEGATIVE_INFINITY,
    askedUntil: Number.NEGATIVE_INFINITY,
    pauseReason: undefined,
    refusals: 0,
    blockedSince: Number.NEGATIVE_INFINITY,
    accepted: 0,
    throttled: 0,
  }
}

export function pace(state: PaceState, event: PaceEvent): PaceState {
  switch (event.kind) {
    case 'accepted':
      return afterAccepted(state, event)
    case 'throttled':
      return afterThrottled(state, event)
    case 'granted':
      return event.at < state.askedUntil ? keepAsked(state, event.at, state.askedUntil) : state
    case 'unsent':
      return event.at < state.askedUntil ? { ...state, pausedUntil: event.at } : state
  }
}

function keepAsked(state: PaceState, at: number, askedUntil: number): PaceState {
  const pausedUntil = Math.min(askedUntil, at + TRIAL_EVERY_MS)
  return { ...state, askedUntil, pausedUntil, pauseReason: 'asked' }
}

export function learned({ rate, concurrency }: PaceState): LearnedRate {
  const { limit, crowded } = concurrency
  return { ratePerSecond: rate.rate, concurrency: limit, limited: rate.limited, crowded }
}

/** How many requests may be under way now: after a refusal one finds out whether others may follow. */
export function mostUnderWay({ refusals, concurrency }: PaceState): number {
  return refusals > 0 ? 1 : concurrency.limit
}

export function pacing({ rate: { rate }, ceilings }: PaceState): Pacing {
  const ceiling = ceilings.requestsPerSecond
  if (ceiling === undefined && rate >= UNPACED_RATE) return { minTime: 0, batch: 1, leastMs: 0 }
  const batch = Math.ceil((rate * SLOT_MS) / 1000)
  // A timer may fire a millisecond early, and the owner's ceiling must hold even then.
  const margin = ceiling !== undefined && rate >= ceiling ? 1 : 0
  const minTime = (batch * 1000) / rate + margin
  const allowedMs = ceiling === undefined ? 0 : (batch * 1000) / ceiling
  return { minTime, batch, leastMs: Math.max(minTime * CATCH_UP, allowedMs) }
}

function afterAccepted(state: PaceState, event: Extract<PaceEvent, { kind: 'accepted' }>): PaceState {
  const { at, sentAt, waitedFor } = event
  const rate = noteAnswer(state.rate, { sentAt, accepted: true })
  const counted = { ...state, accepted: state.accepted + 1, rate }
  // What was sent before a refusal says nothing about the time after it.
  if (sentAt <= state.episodeAt) return counted
  return {
    ...counted,
    refusals: 0,
    ...(state.askedUntil > at && { askedUntil: at, pausedUntil: at }),
    doubt: state.doubt && state.accepted - state.doubt.accepted < CONVINCING ? state.doubt : undefined,
    // While it is not known what was refused, growing would make it refused for both.
    rate: accept(rate, {
      at,
      paced: waitedFor === 'pace',
      mayGrow: waitedFor !== undefined && state.doubt === undefined,
    }),
    concurrency: answered(state.concurrency, { at, full: waitedFor === 'concurrency' }),
  }
}

/** The first 429 of an episode is learned from; the others of it, sent before, can only prolong the pause. */
function afterThrottled(state: PaceState, event: Refusal): PaceState {
  const { at, sentAt, waitMs } = event
  const rate = noteAnswer(state.rate, { sentAt, accepted: false })
  const counted = { ...state, throttled: state.throttled + 1, rate }
  const asked = waitMs === undefined ? Number.NEGATIVE_INFINITY : at + waitMs
  if (sentAt <= state.episodeAt) {
    const lower = state.doubt ? suspected(counted, event) : counted
    return asked > Math.max(state.pausedUntil, state.askedUntil) ? keepAsked(lower, at, asked) : lower
  }
  const blockedSince = state.refusals === 0 ? at : state.blockedSince
  const begun = { ...counted, refusals: state.refusals + 1, blockedSince }
  if (!mayBeCrowd(state, event)) return paused({ ...refusedForRate(begun, at), episodeAt: at }, event, asked)
  const doubtful = { ...suspected(begun, event), episodeAt: at }
  // Fewer at a time may be all that is wanted: there is nothing to wait for, unless the API says so.
  return waitMs === undefined ? { ...doubtful, refusals: 0 } : paused(doubtful, event, asked)
}

/** Whether fewer at a time may be all that is wanted. Of that no API knows seconds ahead when it will be over. */
function mayBeCrowd(state: PaceState, { beside, waitMs = 0 }: Refusal): boolean {
  const isAlone = beside.atSend === 0 && beside.now === 0
  if (isAlone || state.rate.limited || waitMs > LONGEST_CROWD_MS) return false
  const { doubt } = state
  if (!doubt || !isSoon(state, doubt)) return true
  // Refused again and again at once, or although there were far fewer, it is not for their number.
  return doubt.times < MOST_DOUBTS && beside.now >= doubt.beside * FAR_FEWER
}

function isSoon({ accepted }: PaceState, doubt: Doubt): boolean {
  return accepted - doubt.accepted <= SOON * (doubt.beside + 1)
}

/** Those that are still under way beside a refused one are about what the API takes. */
function suspected(state: PaceState, { at, sentAt, beside }: Refusal): PaceState {
  const { doubt, accepted, concurrency, episodeAt } = state
  const isSameEpisode = sentAt <= episodeAt
  const earlier = doubt && (isSameEpisode || isSoon(state, doubt)) ? doubt.times : 0
  return {
    ...state,
    doubt: {
      beside: beside.now,
      limitBefore: doubt?.limitBefore ?? concurrency.limit,
      accepted,
      times: isSameEpisode ? earlier : earlier + 1,
    },
    concurrency: refuseCrowd(concurrency, { at, beside: beside.now }),
  }
}

function refusedForRate(state: PaceState, at: number): PaceState {
  const { doubt, concurrency } = state
  return {
    ...state,
    doubt: undefined,
    rate: refuse(state.rate, at),
    concurrency: doubt
      ? startConcurrency({ ...concurrency, limit: doubt.limitBefore, crowded: false })
      : concurrency,
  }
}

function paused(state: PaceState, { at, jitter, waitMs }: Refusal, asked: number): PaceState {
  const askedUntil = waitMs === undefined ? state.askedUntil : asked
  if (askedUntil > at) return keepAsked(state, at, askedUntil)
  const early = longestBackoffMs(EARLY_PAUSE, state.refusals)
  const firstMs = Math.max(early, (at - state.blockedSince) * PAUSE_SHARE)
  const pauseMs = backoffMs({ firstMs, mostMs: LONGEST_OWN_PAUSE_MS, jitter: 0.5 }, 1, () => jitter)
  return { ...state, pausedUntil: at + pauseMs, pauseReason: 'throttled' }
}
