import type { Resource, ResourceName } from '../../catalog/resource.ts'
import { isoInstant } from '../../clock.ts'
import type { Segment } from '../../store/sync/segments.ts'
import type { EngineContext } from '../context.ts'
import { applyDeletions, forgetConfirmed, isHoldOver } from '../deletions/apply.ts'
import { isSteppedOver } from '../modes/narrowing.ts'
import { hasFirstReads } from './first-reads.ts'
import { DAY, scaled } from './intervals.ts'
import { latenessOf } from './lateness.ts'
import { isWanted } from './wanted.ts'

/**
 * Feeds of which a complete round has read everything that is ever read again, so that a reject that was not seen again
 * is settled. What lies before `sync.since` or in a closed period is among them: nothing would ever settle it, and a
 * reject holds an item's words. One that is listed again after all is noted again.
 */
export function feedsReadWhole({ name, feeds }: Resource): string[] {
  return Object.entries(feeds).flatMap(([feed, { mode }]) => (mode === 'item' ? [] : [`${name}.${feed}`]))
}

export type QuietOutcome = 'complete' | 'failed' | 'unavailable'

/** Says in the resource's state how it stands now that nothing of it is due. */
export function settleRun(context: EngineContext, resource: Resource, trusted: boolean): QuietOutcome {
  const { name } = resource
  const { state } = context.store
  const roundStartedAt = state.get(name).roundStartedAt ?? context.now()
  const isComplete = isRoundComplete(context, resource)
  if (trusted) settleInTime(context, name, isComplete)
  const now = context.now()
  const hasFailed = context.failure(name) !== undefined
  const reason = context.unavailability(name)
  const whole = !hasFailed && reason !== undefined && isWhollyWaiting(context, resource)
  const isHeldBack = state.get(name).heldSince !== null
  if (!hasFailed) state.succeeded(name, now)
  if (whole) state.unavailable(name, reason, now)
  else if (!hasFailed && !isHeldBack && isReadAsDue(context, resource)) state.healthy(name, reason ?? null)
  // What failed and is put off by itself does not keep the round from its end.
  if ((isComplete || whole) && !isHeldBack) {
    resolveRejects(context, resource, roundStartedAt)
    const asOf = isoInstant(context.server.from(Date.parse(roundStartedAt)))
    state.endRound(name, {
      complete: true,
      asOf,
      now,
      deletionsSince: isoInstant(context.clock.now() - scaled(DAY, context.options)),
    })
    context.beginRound(name, 'timed')
  }
  if (hasFailed) return 'failed'
  return whole ? 'unavailable' : 'complete'
}

/**
 * Under a tight limit something is always due, and no run ends. What its first reads have brought is known all the
 * same: the round ends once every list was read since it began and no first read is left.
 */
export function isReadThrough(context: EngineContext, resource: Resource): boolean {
  return isRoundComplete(context, resource) && !hasFirstReads(context, resource)
}

/** Takes the failures of a run that goes on for long out of the resource's state, once what failed was read. */
export function noteMadeGood(context: EngineContext, resource: Resource): void {
  const { state } = context.store
  const { failingSince, heldSince } = state.get(resource.name)
  if (failingSince === null || heldSince !== null || !context.isMadeGood(resource.name)) return
  if (isReadAsDue(context, resource))
    state.healthy(resource.name, context.unavailability(resource.name) ?? null)
}

/** Items that no list has shown since the round began, but for lists that could not be read. */
function resolveRejects(context: EngineContext, resource: Resource, before: string): void {
  const { segments, rejects } = context.store
  for (const feed of feedsReadWhole(resource)) {
    const all = segments.of(feed)
    const read = all.filter(({ retryAt }) => retryAt === null)
    // Without scopes, a reject is noted under the key of its row, which says nothing of where it was listed.
    const isScoped = read.every(({ scope }) => scope !== '')
    if (read.length === all.length) rejects.resolve(feed, null, before, context.now())
    else if (isScoped) for (const { scope } of read) rejects.resolve(feed, scope, before, context.now())
  }
}

function isReadAsDue(context: EngineContext, resource: Resource): boolean {
  const hasFailed = context.backoffs.waitsUntil(resource.name, 'failed') !== undefined
  return !hasFailed && !hasPutOff(context, resource) && latenessOf(context, resource) === undefined
}

/** What the guard held back is looked for again, by a round that begins when the hold is over. */
export function settleInTime(context: EngineContext, name: ResourceName, isRoundComplete: boolean): void {
  if (isHoldOver(context, name) && !context.isConfirming(name)) {
    forgetConfirmed(context, name)
    context.beginRound(name, 'timed', { confirming: true })
    return
  }
  applyDeletions(context, name, isRoundComplete)
}

/** Every list was read to its end since the round began; what has none is complete once its parents were. */
function isRoundComplete(context: EngineContext, resource: Resource): boolean {
  return resource.parents.every(context.wasComplete) && areListsRead(context, resource)
}

/** Every list was read to its end since the round began, whatever single reads came to. */
export function areListsRead(context: EngineContext, { name, feeds }: Resource): boolean {
  const lists = Object.entries(feeds).flatMap(([feedName, feed]) =>
    feed.mode === 'item' ? [] : [[feedName, feed] as const],
  )
  const round = context.round(name)
  const segments = lists.map(([feedName, feed]) => {
    const list = { resource: name, id: `${name}.${feedName}`, feed }
    const all = context.store.segments.of(list.id).filter(one => !isExcused(one))
    return all.filter(one => isWanted(list, one, context.options))
  })
  return segments.every(all => all.length > 0 && all.every(one => one.closed || one.listedRound >= round))
}

/** What is not offered, or is put off by itself since it cannot be read, keeps nothing else from being complete. */
function isExcused(segment: Segment): boolean {
  const { unavailableSince, retryAt, scope } = segment
  return unavailableSince !== null || (retryAt !== null && scope !== '') || isSteppedOver(segment)
}

/** Some part of a list could not be read and waits for its next try. */
function hasPutOff({ store }: EngineContext, { name, feeds }: Resource): boolean {
  return Object.keys(feeds).some(feed =>
    store.segments.of(`${name}.${feed}`).some(({ retryAt }) => retryAt !== null),
  )
}

/** Of a list in scopes every one is noted as not offered. */
function isWhollyWaiting({ backoffs, store }: EngineContext, { name, feeds }: Resource): boolean {
  return Object.entries(feeds).every(([feedName, feed]) => {
    const id = `${name}.${feedName}`
    const isScoped = feed.mode === 'snapshot' && feed.scope !== undefined
    return (
      backoffs.isWaiting(id) ||
      (isScoped && store.segments.of(id).every(one => one.unavailableSince !== null))
    )
  })
}
