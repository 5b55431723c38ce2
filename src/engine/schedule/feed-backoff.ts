import { type Backoff, backoffMs } from '../../backoff.ts'

/** Feeds that wait after a failure, and how long. A failure does not affect other feeds: each has its own backoff. */
export interface FeedBackoffs {
  /** Could not be read: waits, longer after each failure. `scope`: one scope of the feed alone; '' for all of it. */
  failed(feed: string, scope: string): void
  /** Not offered here: waits up to a day; less at first where it was offered before. */
  unavailable(feed: string, scope: string, why: Unavailability): void
  isWaiting(feed: string, scope?: string): boolean
  /** Whether the feed as a whole ('') or one scope of it could not be read, and was not answered well since. */
  hasFailed(feed: string, scope: string): boolean
  /** The scopes of a feed that wait by themselves. */
  waitingScopes(feed: string): string[]
  /** Ends the backoff of a scope, and of the feed as a whole, once the scope was answered well. */
  answered(feed: string, scope?: string): void
  /** When the first of a resource's waiting feeds (with this cause) may go on, by `elapsed`; undefined for none. */
  waitsUntil(resource: string, why?: WaitCause): number | undefined
  /** Why a part of a resource was not offered when it was last asked for. */
  reason(resource: string): string | undefined
}

export interface Unavailability {
  /** In words. */
  reason: string
  /** The list of it was read before, so that one refusal may be a mistake. */
  wasOffered: boolean
}

export type WaitCause = 'failed' | 'unavailable'

/** For a run that ends: a feed that failed waits until the next run, which may ask for it at once. */
export function backoffForTheRun(): FeedBackoffs {
  const waiting = new Set<string>()
  const reasons = new Map<string, string>()
  return {
    failed: (feed, scope) => {
      waiting.add(nameOf(feed, scope))
    },
    unavailable: (feed, scope, { reason }) => {
      waiting.add(nameOf(feed, scope))
      reasons.set(nameOf(feed, scope), reason)
    },
    isWaiting: (feed, scope = '') => waiting.has(nameOf(feed, '')) || waiting.has(nameOf(feed, scope)),
    hasFailed: (feed, scope) => waiting.has(nameOf(feed, scope)) && !reasons.has(nameOf(feed, scope)),
    waitingScopes: feed => scopesOf(feed, waiting),
    answered: () => undefined,
    waitsUntil: (resource, why) => {
      if (why === 'unavailable') return undefined
      const hasFailed = [...waiting].some(name => isOf(resource, name) && !reasons.has(name))
      return hasFailed ? 0 : undefined
    },
    reason: resource => [...reasons].find(([name]) => isOf(resource, name))?.[1],
  }
}

/** Half of it is certain, so that a fault never costs a request a second. */
const BACKOFF: Backoff = { firstMs: 5_000, mostMs: 15 * 60_000, jitter: 0.5 }

export interface GrowingBackoffDeps {
  /** Milliseconds that only grow. */
  elapsed: () => number
  /** A number from 0 up to 1, for jitter. */
  random: () => number
  /** How long a feed that is not offered waits. */
  unavailableMs: number
  /** How long it waits at first where it was offered before. */
  refusedMs: number
}

interface Wait {
  until: number
  failures: number
  /** Why the feed is not offered; absent after a failure. */
  reason?: string
}

/** For a process that goes on: the time grows with every failure in a row. */
export function growingBackoff({
  elapsed,
  random,
  unavailableMs,
  refusedMs,
}: GrowingBackoffDeps): FeedBackoffs {
  const waits = new Map<string, Wait>()
  const isWaiting = (name: string) => (waits.get(name)?.until ?? Number.NEGATIVE_INFINITY) > elapsed()
  const waitsOf = (resource: string) =>
    [...waits].flatMap(([name, one]) => (isOf(resource, name) ? [one] : []))
  const refused: Backoff = { firstMs: refusedMs, mostMs: unavailableMs, jitter: 0 }
  /** Requests that were in flight when the wait began fail too, which says nothing more. */
  const begin = (name: string, waitMs: (failures: number) => number, reason?: string) => {
    if (isWaiting(name)) return
    const failures = (waits.get(name)?.failures ?? 0) + 1
    waits.set(name, {
      until: elapsed() + waitMs(failures),
      failures,
      ...(reason !== undefined && { reason }),
    })
  }
  return {
    failed(feed, scope) {
      begin(nameOf(feed, scope), failures => backoffMs(BACKOFF, failures, random))
    },
    unavailable(feed, scope, { reason, wasOffered }) {
      const waitMs = (failures: number) => (wasOffered ? backoffMs(refused, failures, random) : unavailableMs)
      begin(nameOf(feed, scope), waitMs, reason)
    },
    isWaiting: (feed, scope = '') => isWaiting(nameOf(feed, '')) || isWaiting(nameOf(feed, scope)),
    hasFailed(feed, scope) {
      const noted = waits.get(nameOf(feed, scope))
      return noted !== undefined && noted.reason === undefined
    },
    waitingScopes: feed => scopesOf(feed, [...waits.keys()].filter(isWaiting)),
    answered(feed, scope = '') {
      for (const name of [nameOf(feed, ''), nameOf(feed, scope)]) waits.delete(name)
    },
    waitsUntil(resource, why) {
      const ends = waitsOf(resource)
        .filter(({ reason }) => why === undefined || (why === 'unavailable') === (reason !== undefined))
        .map(({ until }) => until)
        .filter(until => until > elapsed())
      return ends.length === 0 ? undefined : Math.min(...ends)
    },
    reason: resource => waitsOf(resource).find(({ reason }) => reason !== undefined)?.reason,
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
