import { isoInstant, MINUTE_MS } from '../../base/clock.ts'
import { ResourceError, reasonWithHint } from '../../base/errors.ts'
import { type DeclaredFeed, type ListFeed, listsOf } from '../../catalog/feeds.ts'
import type { Resource } from '../../declare/resource.ts'
import type { ResourceState } from '../../store/sync/resource-state.ts'
import { dateTimeText } from '../../terminal/wording.ts'
import type { EngineContext } from '../context/context.ts'
import { longestWaitMs } from '../context/intervals.ts'
import { partsOf } from './due.ts'
import { isNewEnough } from './segment-conditions.ts'

/**
 * Checks that the daemon keeps its schedule: every available list has a due time at most a week ahead, and is read
 * within twice its interval. A list that breaks one of these rules makes its resource `failing`.
 */

/** A list with its due time and its last passes. All times are in ms, by the same clock. */
export interface ListSchedule {
  /** `resource.feed` */
  feed: string
  /** When the list is read next; undefined when no part of the list falls due. */
  dueAt: number | undefined
  /** When the last complete pass of each part began, and the interval until the next one. */
  parts: readonly { listedAt: number; intervalMs: number }[]
}

export interface Lateness {
  feed: string
  reason: 'never-due' | 'late'
  /** When the last complete pass of the late part began. For `never-due`, the oldest such time among all parts. */
  listedAt: number | undefined
  /** After how long without a complete pass the part is late; 0 for `never-due`. */
  allowedMs: number
}

/** A delay of up to this long is never reported, however short the interval: the machine may be busy. */
const LEAST_GRACE_MS = MINUTE_MS

/** Once the API is back, or this process goes on, lists have at most this time to be read before they count as late. */
export const CATCHING_UP_MS = 10 * MINUTE_MS

/** Pure. @param longestMs how far ahead the next due time may lie */
export function latenessAt(
  lists: readonly ListSchedule[],
  { now, longestMs }: { now: number; longestMs: number },
): Lateness | undefined {
  for (const { feed, dueAt, parts } of lists) {
    const listedAt = parts.length === 0 ? undefined : Math.min(...parts.map(part => part.listedAt))
    if (dueAt === undefined || dueAt > now + longestMs + LEAST_GRACE_MS)
      return { feed, reason: 'never-due', listedAt, allowedMs: 0 }
    const late = parts.find(part => now - part.listedAt > allowedMs(part))
    if (late) return { feed, reason: 'late', listedAt: late.listedAt, allowedMs: allowedMs(late) }
  }
  return undefined
}

function allowedMs({ intervalMs }: { intervalMs: number }): number {
  return Math.max(2 * intervalMs, intervalMs + LEAST_GRACE_MS)
}

/** The schedules of a resource's lists, by the server's clock. Unavailable lists are left out. */
export function schedulesOf(context: EngineContext, resource: Resource): ListSchedule[] {
  return listsOf(resource).flatMap(list => scheduleOf(context, list) ?? [])
}

function scheduleOf(context: EngineContext, list: DeclaredFeed<ListFeed>): ListSchedule | undefined {
  const { schedule, backoffs, server, options } = context
  const offered = partsOf(context, list).filter(({ segment }) => !segment?.unavailableSince)
  if (offered.length === 0) return undefined
  const waitMs = Math.min(...offered.map(part => part.waitMs))
  const parts = offered.flatMap(({ segment }) =>
    // A list that waits after a failure is reported as failing, not as late. Spans before `sync.since` are not read.
    !segment ||
    segment.closed ||
    segment.listedAt === null ||
    backoffs.isWaiting(list.id) ||
    !isNewEnough(list, segment, options)
      ? []
      : { listedAt: Date.parse(segment.listedAt), intervalMs: schedule.intervalMs(list, segment) },
  )
  return { feed: list.id, dueAt: Number.isFinite(waitMs) ? server.now() + waitMs : undefined, parts }
}

/** Whether and why a resource is not read on schedule. */
export const latenessOf = (context: EngineContext, resource: Resource): Lateness | undefined =>
  latenessAt(schedulesOf(context, resource), {
    now: context.server.now(),
    longestMs: longestWaitMs(context.options),
  })

const LATE = 'not read within twice its interval'
const NEVER_DUE = 'not scheduled to be read again'
/** Matches the reasons that this file writes. */
const LATENESS = new RegExp(`^[^ ]+: (${LATE}|${NEVER_DUE}) `)

function latenessError({ feed, reason, listedAt }: Lateness): ResourceError {
  const since = listedAt === undefined ? 'never' : dateTimeText(isoInstant(listedAt))
  if (reason === 'late') {
    return new ResourceError(`${feed}: ${LATE} (last complete pass began: ${since})`, {
      code: 'late',
      hint: 'The API may be slow or refuse requests, or api.max_requests_per_day may be too low. Run parley doctor.',
    })
  }
  return new ResourceError(`${feed}: ${NEVER_DUE} (last complete pass began: ${since})`, {
    code: 'never-due',
    hint: `This is a bug in parley: please report it. Run parley resync ${feed.split('.')[0]} to read it again.`,
  })
}

/** Takes over the late resources of an earlier session, which has reported them. */
export function adoptLateness({ store, late }: EngineContext, resources: readonly Resource[]): void {
  for (const { name } of resources) if (isNotedLate(store.state.get(name))) late.add(name)
}

/**
 * Records lateness in the state of each late resource, and clears it once the resource is read on schedule again. Both
 * happen even during a run that never ends, and each is logged once. A failure with another reason keeps its
 * reason. While the API is away nothing becomes late: `sync_status` says why.
 */
export function noteLateness(context: EngineContext, resources: readonly Resource[]): void {
  for (const resource of resources) {
    const noted = context.store.state.get(resource.name)
    const isOtherFailure = noted.failingSince !== null && !isNotedLate(noted)
    if (noted.firstCompleteAt === null || isOtherFailure) continue
    const lateness = latenessOf(context, resource)
    if (lateness === undefined) noteOnSchedule(context, noted)
    else if (!isExcused(context, resource, lateness)) noteLate(context, noted, latenessError(lateness))
  }
}

/** Whether the API was away, or this process has not been reading for as long as the list may take. */
function isExcused(
  { clock, awakeSince, excusedUntil }: EngineContext,
  { name }: Resource,
  { allowedMs: usualMs }: Lateness,
): boolean {
  const now = clock.elapsed()
  return (excusedUntil.get(name) ?? 0) > now || now - awakeSince < Math.min(usualMs, CATCHING_UP_MS)
}

const isNotedLate = ({ failingSince, reason }: ResourceState): boolean =>
  failingSince !== null && LATENESS.test(reason ?? '')

function noteLate(
  { store, late, log, now }: EngineContext,
  noted: ResourceState,
  error: ResourceError,
): void {
  const { resource } = noted
  late.add(resource)
  if (isNotedLate(noted)) return
  store.state.failing(resource, reasonWithHint(error), now())
  const { code, message: reason, hint } = error
  log.error('Resource is not read on schedule', { resource, code, reason, hint })
}

/** `late` decides about the log line: the end of a run may have cleared the failure in the state already. */
function noteOnSchedule({ store, late, log }: EngineContext, noted: ResourceState): void {
  const { resource, unavailableSince } = noted
  if (isNotedLate(noted)) store.state.healthy(resource)
  if (unavailableSince === null && late.delete(resource))
    log.info('Resource is read on schedule again', { resource })
}
