import { DAY_MS, isoInstant } from '../../base/clock.ts'
import {
  type DeclaredFeed,
  feedsOf,
  ITEM_FEEDS,
  itemsOf,
  type ListFeed,
  listsOf,
} from '../../catalog/feeds.ts'
import type { Resource } from '../../declare/resource.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import type { Segment } from '../../store/sync/segments.ts'
import type { EngineContext } from '../context/context.ts'
import { scaled } from '../context/intervals.ts'
import { applyDeletions, isHoldOver, tablesOfResource } from '../deletions/apply.ts'
import { confirmAfterMs } from '../deletions/denial.ts'
import { hasFirstReads } from '../due/first-reads.ts'
import { latenessOf } from '../due/lateness.ts'
import { isNewEnough } from '../due/segment-conditions.ts'
import { openSegments, wantSegment } from '../due/wants.ts'
import { ITEM_HANDLERS } from '../modes/items/items.ts'
import { isSteppedOver } from '../modes/narrowing.ts'

/** The end of a resource's run, and of its round, in a backfill as in the daemon: deletions, state and rejects. */

export type ResourceOutcome = 'complete' | 'failed' | 'unavailable'

/**
 * Applies deletions, records the resource's state, and ends the round if it is complete. In the daemon the next round
 * begins. Called when nothing more of the resource is due, or when its round can end during a run (`isFullyRead`).
 * @param trusted false while a refusal does not show that a row is gone: no deletions are applied
 */
export function recordOutcome(context: EngineContext, resource: Resource, trusted: boolean): ResourceOutcome {
  const { name } = resource
  const { state } = context.store
  const { isTimed } = context.schedule
  const roundStartedAt = state.get(name).roundStartedAt ?? context.now()
  const isComplete = isRoundComplete(context, resource)
  if (trusted) settle(context, resource, isComplete)
  const now = context.now()
  const hasFailed = context.runs.failure(name) !== undefined
  const reason = context.backoffs.reason(name)
  const whole = !hasFailed && reason !== undefined && isWhollyWaiting(context, resource)
  const isHeldBack = state.get(name).heldSince !== null
  if (!hasFailed) state.succeeded(name, now)
  if (whole) state.unavailable(name, reason, now)
  else if (!hasFailed && !isHeldBack && isReadAsDue(context, resource)) noteHealthy(context, name)
  // In the daemon, the round can be complete without a failed part that waits separately (`isLeftOut`). A backfill is
  // complete if nothing of it has failed.
  const isRead = isComplete && !isUndecided(context, resource)
  const isOver = whole || (isRead && (isTimed || !hasFailed))
  if (isOver && !isHeldBack) {
    resolveRejects(context, resource, roundStartedAt)
    const asOf = isoInstant(context.server.from(Date.parse(roundStartedAt)))
    context.rounds.end(name, {
      complete: true,
      asOf,
      now,
      deletionsSince: isTimed ? isoInstant(context.clock.now() - scaled(DAY_MS, context.options)) : now,
    })
    if (isTimed) context.rounds.begin(name, 'timed')
  }
  if (hasFailed) return 'failed'
  return whole ? 'unavailable' : 'complete'
}

/**
 * Whether the round may end during a run: every list was read since the round began, and no first read is due. Under a
 * tight rate limit some read is always due, so the run itself may never end.
 */
export function isFullyRead(context: EngineContext, resource: Resource): boolean {
  return (
    isRoundComplete(context, resource) && !hasFirstReads(context, resource) && !isUndecided(context, resource)
  )
}

/** Whether a key that a list names is not stored, and the 404 of its single read is not confirmed yet. */
function isUndecided({ store }: EngineContext, resource: Resource): boolean {
  const reads = itemsOf(resource).filter(({ feed }) => feed.stores === 'row')
  return reads.some(({ id, feed: { table } }) =>
    store.tasks.repeated(id).some(key => store.stored.state({ table, scope: '', key }) === 'unknown'),
  )
}

/** Clears the failure in the resource's state, during a long run, once the failed part was read. */
export function noteRecovery(context: EngineContext, resource: Resource): void {
  const { state } = context.store
  const { failingSince, heldSince } = state.get(resource.name)
  if (failingSince === null || heldSince !== null || !context.runs.hasRecovered(resource.name)) return
  if (isReadAsDue(context, resource)) noteHealthy(context, resource.name)
}

/** Clears the failure in the resource's state, and logs that. Late resources are logged separately. */
export function noteHealthy(
  { store, backoffs, late, log, now }: Pick<EngineContext, 'store' | 'backoffs' | 'late' | 'log' | 'now'>,
  name: ResourceName,
): void {
  const { failingSince } = store.state.get(name)
  store.state.healthy(name, backoffs.reason(name) ?? null)
  if (failingSince === null || late.has(name)) return
  const duration = Math.max(0, Date.parse(now()) - Date.parse(failingSince))
  log.info('Resource is read again', { resource: name, duration_ms: duration })
}

/**
 * Resolves the rejects of lists that did not recur since the round began. This includes rejects from before
 * `sync.since` or from a closed period: no later pass would resolve them, and a reject stores the content of its item.
 * If the item is listed again, it is rejected again. Rejects of lists that could not be read stay.
 */
function resolveRejects(context: EngineContext, resource: Resource, before: string): void {
  const { segments, rejects } = context.store
  for (const { id: feed } of listsOf(resource)) {
    const all = segments.of(feed)
    const read = all.filter(one => !isPutOff(context, feed, one))
    // In a list without scopes, a reject has the key of its row as its scope, which says nothing about the segment.
    const isScoped = read.every(({ scope }) => scope !== '')
    if (read.length === all.length) rejects.resolve(feed, null, before, context.now())
    else if (isScoped) for (const { scope } of read) rejects.resolve(feed, scope, before, context.now())
  }
  resolveUnnamed(context, resource, before)
}

/**
 * Resolves the rejects of single reads that fail or answer 404, once no list and no row has named their key since the
 * round began, and drops these reads.
 */
function resolveUnnamed(context: EngineContext, resource: Resource, roundStartedAt: string): void {
  const { rejects, tasks, stored, dueClock } = context.store
  const roundMs = Math.max(0, context.clock.now() - Date.parse(roundStartedAt))
  // A naming is noted once a day.
  const namedSince = dueClock.after(-roundMs - scaled(DAY_MS, context.options))
  for (const {
    id: feed,
    feed: { stores, table },
  } of itemsOf(resource)) {
    if (stores !== 'row') continue
    for (const key of rejects.scopesOf(feed)) {
      const task = tasks.find({ feed, key })
      const isUnknown = stored.state({ table, scope: '', key }) === 'unknown'
      const isNamed = (task?.namedAt ?? '') >= namedSince || stored.isNamed({ table, key })
      // An item that was answered, but could not be stored, does not wait.
      const isAnswered = task?.failures === 0 && !(isUnknown && task.waiting)
      if (isAnswered || (task && isNamed)) continue
      rejects.resolve(feed, key, '~', context.now())
      if (task && isUnknown) tasks.remove(task)
    }
  }
}

function isReadAsDue(context: EngineContext, resource: Resource): boolean {
  const hasFailed = context.backoffs.hasFailedFeed(resource.name)
  const isLate = context.schedule.isTimed && latenessOf(context, resource) !== undefined
  return !hasFailed && !hasPutOff(context, resource) && !isLate
}

/**
 * Applies deletions. In the daemon, when a hold of the mass-deletion guard is over, it begins the confirming round
 * instead. A backfill begins it with its own rounds.
 */
export function settle(
  context: EngineContext,
  resource: Resource,
  isComplete = isRoundComplete(context, resource),
): void {
  const { name } = resource
  const { isTimed } = context.schedule
  // A backfill whose list has failed applies no deletions: it may have seen few answers. A failed single read does not
  // matter.
  if (!isTimed && !isComplete && context.runs.failure(name) !== undefined) return
  if (isTimed && isHoldOver(context, name) && !context.rounds.isConfirming(name)) {
    suspectAgain(context, name)
    context.rounds.begin(name, 'timed', { confirming: true })
    for (const { id } of listsOf(resource))
      for (const segment of openSegments(context, id)) wantSegment(context, segment, 0)
    return
  }
  applyDeletions(context, name, isComplete)
}

/**
 * Prepares the confirming round after a hold of the mass-deletion guard (deletions/apply.ts). That round must find
 * every missing row by itself, so all suspicions of the resource end here. The round reads these again:
 *
 * - every list of the resource;
 * - each row that has a single read and that its list does not show (deletions/unlisted.ts);
 * - each row that only single reads deny, such as a transcript. Its suspicion starts again now.
 *
 * `settle` begins the round in the daemon, `beginRounds` (backfill.ts) in a backfill.
 */
export function suspectAgain(context: EngineContext, resource: ResourceName): void {
  const { store, server } = context
  const since = isoInstant(server.now())
  const dueAt = store.dueClock.after(confirmAfterMs(context))
  for (const { name: table } of tablesOfResource(resource)) {
    const denied = store.suspicions.confirmedRows(table).map(row => ({ ...row, table }))
    const reads = ITEM_FEEDS.filter(({ feed }) => feed.table === table)
    store.suspicions.endAll(table)
    for (const row of denied) {
      const [task] = reads.flatMap(read => ITEM_HANDLERS[read.feed.stores].taskOf?.(store, read, row) ?? [])
      if (!task) continue
      store.suspicions.note(row, { since, means: row.means })
      store.tasks.askAt({ ...task, dueAt })
    }
  }
}

/**
 * Whether every list was read completely since the round began, regardless of single reads. In the daemon, every parent
 * must have been complete at least once too. A backfill reads parents first, and says itself which of them has failed.
 */
function isRoundComplete(context: EngineContext, resource: Resource): boolean {
  if (context.schedule.isTimed && !resource.parents.every(context.rounds.wasComplete)) return false
  const round = context.rounds.number(resource.name)
  return listsOf(resource).every(list => {
    const all = context.store.segments.of(list.id)
    if (all.length === 0 && hasNoScopes(context, resource, list)) return true
    const read = all
      .filter(one => !isLeftOut(context, list, one))
      .filter(one => isNewEnough(list, one, context.options))
    return read.length > 0 && read.every(one => one.closed || one.listedRound >= round)
  })
}

/** Whether there is nothing to read, such as the meetings of collections in a workspace without collections. */
function hasNoScopes(
  { store }: EngineContext,
  { parents }: Resource,
  { feed }: DeclaredFeed<ListFeed>,
): boolean {
  const isScoped = feed.mode === 'snapshot' && feed.scope !== undefined
  return isScoped && parents.every(parent => store.state.get(parent).firstCompleteAt !== null)
}

/** Whether the round can be complete without this segment: it is unavailable or stepped over, or its scope failed. */
function isLeftOut(
  context: EngineContext,
  { id, feed: { mode } }: DeclaredFeed<ListFeed>,
  segment: Segment,
): boolean {
  const { unavailableSince, scope } = segment
  if (unavailableSince !== null || (scope !== '' && isPutOff(context, id, segment))) return true
  return (mode === 'timeline' || mode === 'periodic') && isSteppedOver(mode, segment)
}

/** Whether a part of a list failed and waits for its next try. */
function isPutOff({ backoffs }: EngineContext, feed: string, { scope, retryAt }: Segment): boolean {
  return retryAt !== null || backoffs.hasFailed(feed, scope)
}

/** Whether a part of any list was put off. */
function hasPutOff({ store }: EngineContext, resource: Resource): boolean {
  return feedsOf(resource).some(({ id }) => store.segments.of(id).some(({ retryAt }) => retryAt !== null))
}

/** Whether every feed waits. A list with scopes also counts as waiting when all its scopes are unavailable. */
function isWhollyWaiting({ backoffs, store }: EngineContext, resource: Resource): boolean {
  return feedsOf(resource).every(({ id, feed }) => {
    const isScoped = feed.mode === 'snapshot' && feed.scope !== undefined
    return (
      backoffs.isWaiting(id) ||
      (isScoped && store.segments.of(id).every(one => one.unavailableSince !== null))
    )
  })
}
