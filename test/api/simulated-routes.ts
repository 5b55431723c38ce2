import {
  maxInFlight,
  type PaceState,
  paceAfter,
  pacing,
  startPace,
  type WaitedFor,
} from '../../src/api/governor/pace.ts'
import {
  after429,
  afterSending,
  closedMs,
  concernsOf429,
  isOfOtherRoute,
  limitsAfterAcceptance,
  NO_ROUTE_LIMITS,
  type RouteLimits,
} from '../../src/api/governor/route-limits.ts'
import type { VirtualApi } from './simulated-pace.ts'

/** Routes that share a governor, on a virtual clock. */
export interface RoutesDrive {
  /** By route. A route without one has no limit. */
  apis: Readonly<Record<string, VirtualApi>>
  /** By route: how often it has a request to send; 0: always. */
  everyMs: Readonly<Record<string, number>>
  untilMs: number
  /** Whether routes with a limit of their own are told from others. */
  tellsRoutes: boolean
}

export interface RouteCounts {
  accepted: number
  refused: number
}

interface Sent {
  route: string
  isAccepted: boolean
  waitMs: number | undefined
  sentAt: number
  others: number
  waitedFor: WaitedFor
  endsAt: number
}

const ANSWER_MS = { accepted: 100, refused: 20 }
/** Timers fire a little late. */
const LATE_MS = 0.4

/** Sends requests as the scheduler does: a route that is closed is left out, and the others take turns. */
export function driveRoutes({
  apis,
  everyMs,
  untilMs,
  tellsRoutes,
}: RoutesDrive): Record<string, RouteCounts> {
  const routes = Object.keys(everyMs)
  const counts = Object.fromEntries(routes.map(route => [route, { accepted: 0, refused: 0 }]))
  const dueAt = new Map(routes.map(route => [route, 0]))
  const inFlight: Sent[] = []
  let pace: PaceState = startPace({}, undefined)
  let limits: RouteLimits = NO_ROUTE_LIMITS
  let [now, turn, allowedAt, freeAt] = [0, 0, 0, Number.NEGATIVE_INFINITY]

  const waitMs = (route: string, at: number) =>
    Math.max((dueAt.get(route) ?? 0) - at, tellsRoutes ? closedMs(limits, route, at) : 0)
  const next = () => {
    const at = routes.findIndex((_, step) => waitMs(routes[(turn + step) % routes.length] ?? '', now) <= 0)
    if (at < 0) return undefined
    const route = routes[(turn + at) % routes.length] ?? ''
    turn = (turn + at + 1) % routes.length
    dueAt.set(route, now + (everyMs[route] ?? 0))
    return route
  }

  const end = ({ route, isAccepted, waitMs: asked, sentAt, others, waitedFor }: Sent) => {
    const count = counts[route]
    if (isAccepted) {
      apis[route]?.answered()
      if (count) count.accepted += 1
      const isElsewhere = tellsRoutes && isOfOtherRoute(limits, route, sentAt)
      pace = paceAfter(pace, { kind: 'accepted', at: now, sentAt, waitedFor, othersInFlight: 0, isElsewhere })
      limits = limitsAfterAcceptance(limits, { route, at: now, sentAt })
      return
    }
    if (count) count.refused += 1
    const concerns = tellsRoutes ? concernsOf429(limits, route, now) : 'api'
    pace = paceAfter(
      pace,
      concerns === 'route'
        ? { kind: 'failed', at: now, sentAt }
        : {
            kind: 'throttled',
            at: now,
            sentAt,
            othersInFlight: { atSend: others, now: inFlight.length },
            waitMs: asked,
            mayBeOfRoute: concerns === 'unknown',
            jitter: 0.5,
          },
    )
    const pausedMs = Math.max(pace.pausedUntil, pace.askedUntil) - now
    limits = after429(limits, { route, at: now, sentAt, waitMs: asked, pausedMs, random: () => 0.5 })
  }

  const send = () => {
    const { minTime, batch } = pacing(pace)
    const held = freeAt === now ? 'concurrency' : undefined
    const waitedFor = allowedAt === now && allowedAt > freeAt ? 'pace' : held
    for (let sent = 0; sent < batch && inFlight.length < maxInFlight(pace); sent += 1) {
      const route = next()
      if (route === undefined) break
      pace = paceAfter(pace, { kind: 'granted', at: now })
      limits = afterSending(limits, route, now)
      const { accepted: isAccepted, waitMs: asked } = apis[route]?.ask(now) ?? { accepted: true }
      const endsAt = now + (isAccepted ? ANSWER_MS.accepted : ANSWER_MS.refused)
      inFlight.push({
        route,
        isAccepted,
        waitMs: asked,
        sentAt: now,
        others: inFlight.length,
        waitedFor,
        endsAt,
      })
    }
    inFlight.sort((one, other) => one.endsAt - other.endsAt)
    allowedAt = now + minTime + LATE_MS
  }

  while (now < untilMs) {
    const isFull = inFlight.length >= maxInFlight(pace)
    const mayAt = Math.max(now, allowedAt, pace.pausedUntil)
    const workMs = Math.max(0, Math.min(...routes.map(route => waitMs(route, mayAt))))
    const sendAt = isFull ? Number.POSITIVE_INFINITY : mayAt + workMs
    const [first] = inFlight
    if (first && first.endsAt <= sendAt) {
      now = first.endsAt
      inFlight.shift()
      if (isFull) freeAt = now
      end(first)
    } else {
      now = sendAt
      send()
    }
  }
  return counts
}
