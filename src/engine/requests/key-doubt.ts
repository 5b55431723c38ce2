import type { Sent } from '../../api/client.ts'
import type { HealthCheck } from '../../api/reach-events.ts'
import { type Clock, MINUTE_MS } from '../../base/clock.ts'

/** For how long an answer on another route decides what a 401 means. It may be a path of the route that is refused. */
const KNOWN_MS = 15 * MINUTE_MS

/** What a health check has decided about the key. */
export type KeyVerdict = 'accepted' | 'refused'

/**
 * Tells a refused key from a route that refuses the key. A 401 puts the key in doubt, and a list on another route is
 * requested, while nothing else is sent. If that is refused with 401 too, the key is refused. If it is answered, the
 * routes in doubt refuse the key by themselves, and each 401 of such a route is a failure of the route, for a while. If
 * no list decides, the first 401 counts.
 *
 * @param healthChecks the most recently answered first
 */
export function createKeyDoubt(
  healthChecks: () => readonly HealthCheck[],
  { elapsed }: Pick<Clock, 'elapsed'>,
) {
  /** The routes whose 401 is in doubt. */
  const doubted = new Set<string>()
  /** The routes of the lists that were requested since the doubt began, and did not decide. */
  const asked = new Set<string>()
  /** By route that refuses the key by itself: until when this is known. */
  const refusing = new Map<string, number>()
  const isOfRoute = (route: string): boolean => (refusing.get(route) ?? 0) > elapsed()
  const next = (): HealthCheck | undefined => {
    if (doubted.size === 0) return undefined
    const isTried = (route: string) => doubted.has(route) || asked.has(route) || isOfRoute(route)
    return healthChecks().find(({ request }) => !isTried(request.route))
  }
  return {
    /** The list to request next; undefined when the key is not in doubt. */
    next,
    /** Whether a 401 on this route says nothing about the key. */
    isOfRoute,
    /** Records a 401. Returns false when no list is left that could show that the key is accepted elsewhere. */
    refused(route: string): boolean {
      doubted.add(route)
      return next() !== undefined
    },
    /** Records the result of a health check. Returns undefined while nothing is decided, or nothing is in doubt. */
    checked(route: string, { kind }: Pick<Sent, 'kind'>): KeyVerdict | undefined {
      const isRefused = kind === 'unauthorized'
      if (doubted.size === 0) {
        if (!isRefused) return undefined
        doubted.add(route)
      } else if (kind === 'answer') {
        for (const one of doubted) refusing.set(one, elapsed() + KNOWN_MS)
        doubted.clear()
        asked.clear()
        return 'accepted'
      } else if (isRefused) return 'refused'
      else asked.add(route)
      return next() === undefined ? 'refused' : undefined
    },
  }
}
