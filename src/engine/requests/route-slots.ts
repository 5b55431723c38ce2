interface Slots {
  inFlight: number
  /** Answers since the last request without one. */
  answers: number
}

export interface RouteSlotsDeps {
  /** The number of requests that may be in flight at once. */
  most(): number
  isResting(route: string): boolean
  /** Called when a request has ended. */
  onEnd(): void
}

export type RouteSlots = ReturnType<typeof createRouteSlots>

/**
 * How many requests of one route may be in flight, so that a route whose requests hang leaves room for others. A route
 * begins with one request, and may have one more after each answer. After a timeout or a broken connection, and while it
 * rests (`api/reach.ts`), it may have only one. All routes without an answer together may use at most half of the
 * requests in flight.
 */
export function createRouteSlots({ most, isResting, onEnd }: RouteSlotsDeps) {
  const routes = new Map<string, Slots>()
  const of = (route: string): Slots => {
    const known = routes.get(route) ?? { inFlight: 0, answers: 0 }
    routes.set(route, known)
    return known
  }
  const unanswered = () =>
    [...routes.values()].reduce((sum, { answers, inFlight }) => sum + (answers === 0 ? inFlight : 0), 0)
  return {
    mayTake(route: string): boolean {
      const { answers, inFlight } = of(route)
      if (isResting(route) && inFlight > 0) return false
      if (answers > 0) return inFlight <= answers
      return inFlight === 0 && unanswered() < Math.max(1, most() / 2)
    },
    /** Records that a request is sent. Call the returned function when it has ended, with whether it had a response. */
    begin(route: string): (wasAnswered: boolean) => void {
      const slots = of(route)
      slots.inFlight += 1
      return wasAnswered => {
        slots.inFlight -= 1
        slots.answers = wasAnswered ? slots.answers + 1 : 0
        onEnd()
      }
    },
  }
}
