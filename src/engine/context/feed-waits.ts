import { type Backoff, backoffMs } from '../../base/backoff.ts'
import { type Clock, isoInstant } from '../../base/clock.ts'
import { RESOURCE_NAMES } from '../../declare/resource-names.ts'
import { type FailureKind, FEED_GATE, failureGates, type Gate } from '../../store/sync/gates.ts'
import { WEEK_MS } from './intervals.ts'

export type FeedWaits = ReturnType<typeof growingBackoff>

export interface Unavailability {
  reason: string
  /** True when the list was read before: a single refusal may then be an error of the API. */
  wasOffered: boolean
}

/** Jitter shortens a wait by half at most, so that a feed that fails is never requested every second. */
const AFTER_FAILURE: Backoff = { firstMs: 5_000, mostMs: 15 * 60_000, jitter: 0.5 }

export interface GrowingBackoffDeps {
  clock: Pick<Clock, 'now' | 'elapsed'>
  /**
   * The gates of an earlier process. A feed behind a gate may be tried at once. If it fails again, it waits as long as
   * in that process.
   */
  before?: readonly Gate[]
  /** A number from 0 up to 1, for jitter. */
  random: () => number
  /** The waits of a failed feed. */
  failed?: Backoff
  /** The longest wait of an unavailable feed. */
  unavailableMs: number
  /** The first wait of an unavailable feed that was available before. */
  refusedMs: number
}

interface Wait {
  gate: Gate<FailureKind>
  /** `gate.until` by the monotonic clock. */
  endsAt: number
  ms: number
  /** Whether a request in flight tests whether the wait may end. */
  isOnTrial?: boolean
}

const FAILING = 'Its last requests have failed'

/** Sorts after every instant. Only in memory: a wait until the end of a run is no stored gate. */
const NEVER = '~'

/**
 * A gate that no request has tested for this long after its wait is dropped: the feed or scope is not read any more,
 * for example because its CRM object is gone.
 */
const FORGOTTEN_MS = WEEK_MS

/**
 * Feeds that wait after a failure, and how long. A failure does not affect other feeds: each has its own backoff. For the
 * daemon: the wait grows with every failure in a row.
 */
export function growingBackoff({
  clock,
  random,
  before = [],
  failed = AFTER_FAILURE,
  unavailableMs,
  refusedMs,
}: GrowingBackoffDeps) {
  const waits = new Map<string, Wait>(
    failureGates(before)
      .filter(({ what }) => what.startsWith(FEED_GATE))
      .map(gate => {
        const endsAt = clock.elapsed() + Math.min(0, Date.parse(gate.until) - clock.now())
        return [gate.what.slice(FEED_GATE.length), { gate, endsAt, ms: Number.POSITIVE_INFINITY }]
      }),
  )
  const forget = () => {
    for (const [name, { endsAt }] of waits) if (endsAt + FORGOTTEN_MS < clock.elapsed()) waits.delete(name)
  }
  let changed: () => void = () => undefined
  const leftMs = (name: string) =>
    Math.max(0, (waits.get(name)?.endsAt ?? Number.NEGATIVE_INFINITY) - clock.elapsed())
  const isWaiting = (name: string) => leftMs(name) > 0
  const isOnTrial = (name: string) => waits.get(name)?.isOnTrial === true
  const waitMs = (feed: string, scope = '') => Math.max(leftMs(feed), leftMs(nameOf(feed, scope)))
  const waitsOf = (resource: string) =>
    [...waits].flatMap(([name, one]) => (name.startsWith(`${resource}.`) ? [one] : []))
  const refused: Backoff = { firstMs: refusedMs, mostMs: unavailableMs, jitter: 0 }
  /** Begins a wait, unless one is in progress: requests that were in flight at the start of that wait may fail too. */
  const begin = (
    name: string,
    waitMs: (failures: number) => number,
    why: Pick<Gate<FailureKind>, 'kind' | 'reason'>,
  ): void => {
    if (isWaiting(name)) return
    const { tries: before = 0, since = isoInstant(clock.now()) } = waits.get(name)?.gate ?? {}
    const tries = before + 1
    const ms = waitMs(tries)
    const gate = {
      ...why,
      what: `${FEED_GATE}${name}`,
      since,
      until: Number.isFinite(ms) ? isoInstant(clock.now() + ms) : NEVER,
      tries,
      resources: RESOURCE_NAMES.filter(resource => name.startsWith(`${resource}.`)),
    }
    waits.set(name, { gate, ms, endsAt: clock.elapsed() + ms })
    changed()
  }
  return {
    /** Makes a feed wait, longer after each failure in a row. `scope`: one scope of the feed, or '' for all of it. */
    failed(feed: string, scope: string): void {
      const why = { kind: 'failing', reason: FAILING } as const
      begin(nameOf(feed, scope), failures => backoffMs(failed, failures, random), why)
    },
    /** Makes an unavailable feed wait. If it was available before, the first wait is shorter. */
    unavailable(feed: string, scope: string, { reason, wasOffered }: Unavailability): void {
      const waitMs = (failures: number) => (wasOffered ? backoffMs(refused, failures, random) : unavailableMs)
      begin(nameOf(feed, scope), waitMs, { kind: 'unavailable', reason })
    },
    isWaiting: (feed: string, scope = ''): boolean =>
      waitMs(feed, scope) > 0 || isOnTrial(feed) || isOnTrial(nameOf(feed, scope)),
    /**
     * Called when a request of the feed is sent. If the feed or the scope has not been answered since its wait, other
     * requests of it wait until this request has its result. Call the returned function then.
     */
    trying(feed: string, scope = ''): () => void {
      const tried = [waits.get(feed), waits.get(nameOf(feed, scope))].filter(wait => wait !== undefined)
      for (const wait of tried) wait.isOnTrial = true
      return () => {
        for (const wait of tried) wait.isOnTrial = false
      }
    },
    /** How long the feed, or one scope of it, still waits, in ms; infinite when it waits until the end of the run. */
    waitMs,
    /** Whether the whole feed ('') or one scope of it has failed and not been read since. */
    hasFailed: (feed: string, scope: string): boolean =>
      waits.get(nameOf(feed, scope))?.gate.kind === 'failing',
    /** The scopes of a feed that wait separately. */
    waitingScopes(feed: string): string[] {
      const prefix = `${feed}/`
      const names = [...waits.keys()].filter(name => name.startsWith(prefix) && isWaiting(name))
      return names.map(name => name.slice(prefix.length))
    },
    /** Ends the backoff of a scope and of the whole feed, after a usable answer. */
    answered(feed: string, scope = ''): void {
      const ended = [feed, nameOf(feed, scope)].filter(name => waits.delete(name))
      if (ended.length > 0) changed()
    },
    /** Whether any feed of the resource, or a scope of one, waits after a failure. */
    hasFailedFeed: (resource: string): boolean =>
      waitsOf(resource).some(({ gate, endsAt }) => gate.kind === 'failing' && endsAt > clock.elapsed()),
    /** Why a feed of the resource was unavailable at its last request; undefined when no feed was. */
    reason: (resource: string): string | undefined =>
      waitsOf(resource).find(({ gate }) => gate.kind === 'unavailable')?.gate.reason,
    /** The feeds and scopes that have not been read since a wait of at least this long, in ms. */
    closed(leastMs: number): readonly Gate[] {
      forget()
      return [...waits.values()].filter(({ ms }) => ms >= leastMs).map(({ gate }) => gate)
    },
    /** Calls `listener` after each change of what is closed. */
    onChange(listener: () => void): void {
      changed = listener
    },
  }
}

/** For a backfill: a failed feed waits until the next run, which may request it at once. */
export function backoffForTheRun(): FeedWaits {
  const unending = Number.POSITIVE_INFINITY
  const waits = growingBackoff({
    clock: { now: () => 0, elapsed: () => 0 },
    random: () => 0,
    failed: { firstMs: unending, mostMs: unending, jitter: 0 },
    unavailableMs: unending,
    refusedMs: unending,
  })
  return {
    ...waits,
    answered: () => undefined,
    closed: () => [],
  }
}

function nameOf(feed: string, scope: string): string {
  return scope === '' ? feed : `${feed}/${scope}`
}
