import { classifyAnswer } from '../../src/api/classify.ts'
import { MAX_CONCURRENCY } from '../../src/api/governor/concurrency.ts'
import { createGovernor } from '../../src/api/governor/governor.ts'
import type { Permit } from '../../src/api/governor/in-flight.ts'
import { permitResult } from '../../src/api/outcome-texts.ts'
import { systemClock } from '../../src/base/clock.ts'
import { createFaultPlan } from '../../src/simulator/faults/faults.ts'
import { createLimiter, limitHeaders } from '../../src/simulator/faults/limits.ts'
import { createDateHeader } from '../../src/simulator/faults/send.ts'
import { createDraw } from '../torture/draw.ts'
import { type LimitCase, REFUSED_ROUTE } from './limit-cases.ts'
import { createMachine } from './machine.ts'

/**
 * How the governor does with a limit that it does not know, compared with a client that knows it and sends every request as
 * soon as it is accepted, with as many in flight as parley may have. The limits are those of the simulator. The requests go
 * through `classifyAnswer` and the governor, but not through HTTP and the engine.
 */
export interface Figures {
  /** Requests that were accepted, over those of the client that knows the limit. */
  used: number
  /** The same without the start. */
  usedLater: number
  /** The share of requests that were refused, less that of the client that knows the limit. */
  refused: number
  requests: number
}

/** The requests of one client. */
export interface Requests {
  /** The times of those that were accepted. */
  accepted: readonly number[]
  refused: number
}

const START = Date.parse('2026-06-30T12:00:00Z')
const ROUTE = '/v2/messages/{id}'

export async function figuresOf(limited: LimitCase): Promise<Figures> {
  const [known, learned] = [requestsKnowing(limited), await requestsLearning(limited)]
  const later = ({ accepted }: Requests) => accepted.filter(at => at >= limited.startMs).length
  const all = ({ accepted, refused }: Requests) => accepted.length + refused
  return {
    used: learned.accepted.length / known.accepted.length,
    usedLater: later(learned) / later(known),
    refused: learned.refused / all(learned) - known.refused / all(known),
    requests: all(learned),
  }
}

/** An answer as `simulator/service.ts` gives it. */
interface LimitedAnswer {
  status: number
  headers: Record<string, string>
  takesMs: number
  /** For a refusal by the limit: when it may accept a request. */
  freeMs: number
  ended(): void
}

/** The API of a case. A request is admitted when it is sent. */
function createLimitedApi({ seed, limit, changes, faults, answerMs, goneMs }: LimitCase) {
  const plan = createFaultPlan(faults, seed)
  const draw = createDraw(seed)
  const date = createDateHeader()
  let model = limit
  let limiter = createLimiter(model)
  let changed = 0
  return {
    /** @param at since the first request */
    ask(at: number, route: string): LimitedAnswer {
      for (let next = changes[changed]; next !== undefined && next.atMs <= at; next = changes[++changed]) {
        model = next.limit
        limiter = createLimiter(model)
      }
      const admittedBy = limiter
      const admission = limiter.admit(at + goneMs)
      const [fault] = admission.isAllowed ? plan.faultsFor({ template: route, path: route, query: '' }) : []
      const isRefused = !admission.isAllowed || fault !== undefined
      const nowMs = Math.floor(START + at)
      return {
        status: isRefused ? 429 : 200,
        headers: lowered({
          Date: date(nowMs),
          ...limitHeaders(model, admission, nowMs),
          ...(fault?.retryAfter !== undefined && { 'Retry-After': String(fault.retryAfter) }),
        }),
        takesMs: Math.round((answerMs * (0.8 + draw.below(400) / 1000)) / (isRefused ? 2 : 1)),
        freeMs: admission.isAllowed ? 0 : admission.waitMs,
        ended: () => {
          if (admission.isAllowed) admittedBy.release()
        },
      }
    },
  }
}

const lowered = (headers: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))

/** parley's governor, which is asked for permits as `engine/scheduler` does, with a list that never ends. */
export async function requestsLearning(limited: LimitCase): Promise<Requests> {
  const machine = createMachine({ seed: limited.seed, start: START, servers: {}, files: [] })
  try {
    const clock = systemClock()
    const draw = createDraw(limited.seed)
    const api = createLimitedApi(limited)
    const began = clock.elapsed()
    const accepted: number[] = []
    let refused = 0
    let sent = 0
    const governor = createGovernor({ clock, random: () => draw.below(2 ** 32) / 2 ** 32, ceilings: {} })
    const send = (permit: Permit) => {
      const at = clock.elapsed() - began
      const { status, headers, takesMs, ended } = api.ask(at, sent++ % 10 === 9 ? REFUSED_ROUTE : ROUTE)
      if (status === 200) accepted.push(at)
      else refused += 1
      setTimeout(() => {
        ended()
        const answer = { status, headers, text: '{}', bytes: 2 }
        const outcome = classifyAnswer(answer, { now: clock.now(), secret: 'key' })
        permit.settle(permitResult({ ...outcome, startedAt: START + at, durationMs: takesMs }))
      }, takesMs)
    }
    const sending = (async () => {
      for (;;) {
        const permit = await governor.permit()
        if (permit === undefined) return
        send(permit)
      }
    })()
    await machine.pass(limited.forMs)
    governor.close()
    await sending
    return { accepted, refused }
  } finally {
    machine.close()
  }
}

/**
 * The best possible: it sends each request as soon as the limit accepts it, with as many in flight as parley may have.
 * No other order of requests has more of them accepted by any time, since a limit never accepts less for having accepted
 * something earlier. It sends nothing to a route that is always refused, and refusals at random are all that it meets.
 */
export function requestsKnowing(limited: LimitCase): Requests {
  const api = createLimitedApi(limited)
  const inFlight: { endsAt: number; ended(): void }[] = []
  const changes = limited.changes.map(({ atMs }) => atMs)
  const accepted: number[] = []
  let refused = 0
  for (let now = 0; now < limited.forMs; ) {
    for (let next = inFlight[0]; next !== undefined && next.endsAt <= now; next = inFlight[0]) {
      inFlight.shift()
      next.ended()
    }
    const [oldest] = inFlight
    if (oldest !== undefined && inFlight.length >= MAX_CONCURRENCY) {
      now = oldest.endsAt
      continue
    }
    const { status, freeMs, takesMs, ended } = api.ask(now, ROUTE)
    if (freeMs > 0) {
      // Sooner, a place in flight may end, or the limit may change.
      const times = [now + freeMs + 1e-6, oldest?.endsAt, changes.find(at => at > now)]
      now = Math.min(...times.filter(time => time !== undefined))
      continue
    }
    if (status === 200) accepted.push(now)
    else refused += 1
    inFlight.push({ endsAt: now + takesMs, ended })
    inFlight.sort((one, other) => one.endsAt - other.endsAt)
  }
  return { accepted, refused }
}
