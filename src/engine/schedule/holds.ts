import { type Backoff, backoffMs } from '../../backoff.ts'

/** Feeds that cannot go on for now, and how long. Neighbours are not touched: each feed has a time of its own. */
export interface Holds {
  /** Could not be read: again after a while that grows. `scope`: one scope of the feed alone; '' for all of it. */
  fail(feed: string, scope: string): void
  /** Not offered here: again before a day is over; after a while that grows up to that where it was offered before. */
  setAside(feed: string, scope: string, why: SetAside): void
  isHeld(feed: string, scope?: string): boolean
  /** Whether the feed as a whole ('') or one scope of it could not be read, and was not answered well since. */
  hasFailed(feed: string, scope: string): boolean
  /** The scopes of a feed that are held by themselves. */
  heldScopes(feed: string): string[]
  /** Forgets what was noted of a scope, and of the feed as a whole, once the scope was answered well. */
  release(feed: string, scope?: string): void
  /** When the first of a resource's feeds that are held (for a cause) may go on, by `elapsed`; undefined for none. */
  heldUntil(resource: string, why?: HoldCause): number | undefined
  /** Why a part of a resource was not offered when it was last asked for. */
  reason(resource: string): string | undefined
}

export interface SetAside {
  /** In words. */
  reason: string
  /** The list of it was read before, so that one refusal may be a mistake. */
  wasOffered: boolean
}

export type HoldCause = 'failed' | 'unavailable'

/** For a run that ends: what failed is left to the next run, which may ask for it at once. */
export function holdForGood(): Holds {
  const held = new Set<string>()
  const reasons = new Map<string, string>()
  return {
    fail: (feed, scope) => {
      held.add(nameOf(feed, scope))
    },
    setAside: (feed, scope, { reason }) => {
      held.add(nameOf(feed, scope))
      reasons.set(nameOf(feed, scope), reason)
    },
    isHeld: (feed, scope = '') => held.has(nameOf(feed, '')) || held.has(nameOf(feed, scope)),
    hasFailed: (feed, scope) => held.has(nameOf(feed, scope)) && !reasons.has(nameOf(feed, scope)),
    heldScopes: feed => scopesOf(feed, held),
    release: () => undefined,
    heldUntil: (resource, why) => {
      if (why === 'unavailable') return undefined
      const hasFailed = [...held].some(name => isOf(resource, name) && !reasons.has(name))
      return hasFailed ? 0 : undefined
    },
    reason: resource => [...reasons].find(([name]) => isOf(resource, name))?.[1],
  }
}

/** Half of it is certain, so that a fault never costs a request a second. */
const BACKOFF: Backoff = { firstMs: 5_000, mostMs: 15 * 60_000, jitter: 0.5 }

export interface HoldForAWhileDeps {
  /** Milliseconds that only grow. */
  elapsed: () => number
  /** A number from 0 up to 1, for jitter. */
  random: () => number
  /** How long what is not offered is left alone. */
  unavailableMs: number
  /** How long at first where it was offered before. */
  refusedMs: number
}

interface Held {
  until: number
  failures: number
  /** Of what is not offered. */
  reason?: string
}

/** For a process that goes on: the time grows with every failure in a row. */
export function holdForAWhile({ elapsed, random, unavailableMs, refusedMs }: HoldForAWhileDeps): Holds {
  const held = new Map<string, Held>()
  const isHeld = (name: string) => (held.get(name)?.until ?? Number.NEGATIVE_INFINITY) > elapsed()
  const heldOf = (resource: string) => [...held].flatMap(([name, one]) => (isOf(resource, name) ? [one] : []))
  const refused: Backoff = { firstMs: refusedMs, mostMs: unavailableMs, jitter: 0 }
  /** What was under way as the hold began fails too, which says nothing more. */
  const hold = (name: string, waitMs: (failures: number) => number, reason?: string) => {
    if (isHeld(name)) return
    const failures = (held.get(name)?.failures ?? 0) + 1
    held.set(name, { until: elapsed() + waitMs(failures), failures, ...(reason !== undefined && { reason }) })
  }
  return {
    fail(feed, scope) {
      hold(nameOf(feed, scope), failures => backoffMs(BACKOFF, failures, random))
    },
    setAside(feed, scope, { reason, wasOffered }) {
      const waitMs = (failures: number) => (wasOffered ? backoffMs(refused, failures, random) : unavailableMs)
      hold(nameOf(feed, scope), waitMs, reason)
    },
    isHeld: (feed, scope = '') => isHeld(nameOf(feed, '')) || isHeld(nameOf(feed, scope)),
    hasFailed(feed, scope) {
      const noted = held.get(nameOf(feed, scope))
      return noted !== undefined && noted.reason === undefined
    },
    heldScopes: feed => scopesOf(feed, [...held.keys()].filter(isHeld)),
    release(feed, scope = '') {
      for (const name of [nameOf(feed, ''), nameOf(feed, scope)]) held.delete(name)
    },
    heldUntil(resource, why) {
      const ends = heldOf(resource)
        .filter(({ reason }) => why === undefined || (why === 'unavailable') === (reason !== undefined))
        .map(({ until }) => until)
        .filter(until => until > elapsed())
      return ends.length === 0 ? undefined : Math.min(...ends)
    },
    reason: resource => heldOf(resource).find(({ reason }) => reason !== undefined)?.reason,
  }
}

function nameOf(feed: string, scope: string): string {
  return `${feed}\u0000${scope}`
}

function scopesOf(feed: string, names: Iterable<string>): string[] {
  const prefix = nameOf(feed, '')
  return [...names].flatMap(name =>
    name.startsWith(prefix) && name !== prefix ? [name.slice(prefix.length)] : [],
  )
}

function isOf(resource: string, name: string): boolean {
  return name.startsWith(`${resource}.`)
}
