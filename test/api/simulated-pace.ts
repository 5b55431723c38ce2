import {
  maxInFlight,
  type PaceState,
  paceAfter,
  pacing,
  type WaitedFor,
} from '../../src/api/governor/pace.ts'
import { createLimiter, type LimitRule } from '../../src/simulator/faults/limits.ts'

export interface VirtualAnswer {
  accepted: boolean
  waitMs?: number
  /** Default: that of the drive. */
  latencyMs?: number
}

/** An API on a virtual clock: it accepts each request, or refuses it with a wait. */
export interface VirtualApi {
  ask(at: number): VirtualAnswer
  /** An accepted request was answered. */
  answered(): void
}

export const unlimited: VirtualApi = { ask: () => ({ accepted: true }), answered: () => undefined }

export type Hint = 'seconds' | 'date' | 'none'

/** An API with a limit. Its refusals say how long to wait, in whole seconds, as `Retry-After` does. */
export function limitedTo(rule: LimitRule, hint: Hint): VirtualApi {
  const limiter = createLimiter(rule)
  return {
    ask(at) {
      const { isAllowed, waitMs } = limiter.admit(at)
      if (isAllowed || hint === 'none') return { accepted: isAllowed }
      const seconds = hint === 'seconds' ? waitMs / 1000 : (at + waitMs) / 1000 - Math.floor(at / 1000)
      return { accepted: false, waitMs: Math.ceil(seconds) * 1000 }
    },
    answered: () => limiter.release(),
  }
}

export interface Drive {
  api: VirtualApi
  untilMs: number
  latencyMs?: number
  jitter?: () => number
}

export interface Driven {
  state: PaceState
  /** All requests in order of time. */
  requests: readonly { at: number; accepted: boolean }[]
  mostInFlight: number
}

interface InFlight {
  accepted: boolean
  waitMs?: number
  sentAt: number
  othersInFlight: number
  waitedFor: WaitedFor
  ends: number
}

/** Timers fire a little late. */
const LATE_MS = 0.4

/** Sends requests at the rate and with the in-flight limit of the pace. Each is answered after `latencyMs`. */
export function drive(first: PaceState, { api, untilMs, latencyMs = 20, jitter = () => 0.5 }: Drive): Driven {
  const requests: { at: number; accepted: boolean }[] = []
  const inFlight: InFlight[] = []
  let state = first
  let now = 0
  let freeAt = Number.NEGATIVE_INFINITY
  let allowedAt = 0
  let mostInFlight = 0

  const end = ({ accepted, waitMs, sentAt, othersInFlight, waitedFor }: InFlight) => {
    if (accepted) api.answered()
    state = accepted
      ? paceAfter(state, { kind: 'accepted', at: now, sentAt, waitedFor, othersInFlight, isElsewhere: false })
      : paceAfter(state, {
          kind: 'throttled',
          at: now,
          sentAt,
          othersInFlight: { atSend: othersInFlight, now: inFlight.length },
          waitMs,
          mayBeOfRoute: false,
          jitter: jitter(),
        })
  }

  const send = () => {
    const { minTime, batch } = pacing(state)
    const held = freeAt === now ? 'concurrency' : undefined
    const waitedFor = allowedAt === now && allowedAt > freeAt ? 'pace' : held
    const sendable = Math.min(batch, maxInFlight(state) - inFlight.length)
    for (let sent = 0; sent < sendable; sent += 1) {
      state = paceAfter(state, { kind: 'granted', at: now })
      const answer = api.ask(now)
      requests.push({ at: now, accepted: answer.accepted })
      const othersInFlight = inFlight.length
      // The API refuses at once.
      const ends = now + (answer.latencyMs ?? (answer.accepted ? latencyMs : Math.min(latencyMs, 2)))
      inFlight.push({ ...answer, sentAt: now, othersInFlight, waitedFor, ends })
    }
    inFlight.sort((one, other) => one.ends - other.ends)
    mostInFlight = Math.max(mostInFlight, inFlight.length)
    allowedAt = now + minTime + (minTime > 0 ? LATE_MS : 0)
  }

  while (now < untilMs) {
    const next = inFlight[0]
    const full = inFlight.length >= maxInFlight(state)
    const nextSend = full ? Number.POSITIVE_INFINITY : Math.max(now, allowedAt, state.pausedUntil)
    if (next !== undefined && next.ends <= nextSend) {
      now = next.ends
      inFlight.shift()
      if (full) freeAt = now
      end(next)
    } else {
      now = nextSend
      if (now < untilMs) send()
    }
  }
  return { state, requests, mostInFlight }
}
