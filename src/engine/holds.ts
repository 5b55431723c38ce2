/** Feeds that cannot go on for now, and how long. Neighbours are not touched: each feed has a time of its own. */
export interface Holds {
  /** @param scope one scope of the feed alone; '' for all of it */
  hold(feed: string, scope: string, why: HoldReason): void
  isHeld(feed: string, scope?: string): boolean
  /** Forgets past failures once the feed was answered well. */
  release(feed: string, scope?: string): void
  /** When the first of a resource's feeds that are held (for a reason) may go on, by `elapsed`; undefined for none. */
  heldUntil(resource: string, why?: HoldReason): number | undefined
}

/** `failed`: again after a while that grows; `unavailable`: not offered here, again in a day. */
export type HoldReason = 'failed' | 'unavailable'

/** For a run that ends: what failed is left to the next run. */
export function holdForGood(): Holds {
  const held = new Set<string>()
  return {
    hold: (feed, scope) => {
      held.add(nameOf(feed, scope))
    },
    isHeld: (feed, scope = '') => held.has(nameOf(feed, '')) || held.has(nameOf(feed, scope)),
    release: () => undefined,
    heldUntil: () => undefined,
  }
}

const FIRST_MS = 5_000
const LONGEST_MS = 15 * 60_000

export interface HoldForAWhileDeps {
  /** Milliseconds that only grow. */
  elapsed: () => number
  /** A number from 0 up to 1, for jitter. */
  random: () => number
  /** How long what is not offered is left alone. */
  unavailableMs: number
}

interface Held {
  why: HoldReason
  until: number
  failures: number
}

/** For a process that goes on: the time grows with every failure in a row. */
export function holdForAWhile({ elapsed, random, unavailableMs }: HoldForAWhileDeps): Holds {
  const held = new Map<string, Held>()
  const isHeld = (name: string) => (held.get(name)?.until ?? Number.NEGATIVE_INFINITY) > elapsed()
  return {
    hold(feed, scope, why) {
      const name = nameOf(feed, scope)
      const failures = (held.get(name)?.failures ?? 0) + 1
      const longest = Math.min(FIRST_MS * 2 ** (failures - 1), LONGEST_MS)
      // Half of it is certain, so that a fault never costs a request a second.
      const ms = why === 'unavailable' ? unavailableMs : (longest * (1 + random())) / 2
      held.set(name, { why, until: elapsed() + ms, failures: why === 'unavailable' ? 0 : failures })
    },
    isHeld: (feed, scope = '') => isHeld(nameOf(feed, '')) || isHeld(nameOf(feed, scope)),
    release(feed, scope = '') {
      held.delete(nameOf(feed, scope))
    },
    heldUntil(resource, why) {
      const ends = [...held]
        .filter(([name, one]) => name.startsWith(`${resource}.`) && (why ?? one.why) === one.why)
        .filter(([, { until }]) => until > elapsed())
        .map(([, { until }]) => until)
      return ends.length === 0 ? undefined : Math.min(...ends)
    },
  }
}

function nameOf(feed: string, scope: string): string {
  return `${feed}\u0000${scope}`
}
