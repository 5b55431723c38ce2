import { DAY_MS } from '../../base/clock.ts'
import { FEEDS, type FeedName } from '../../catalog/feeds.ts'
import type { Feed } from '../../declare/resource.ts'
import type { RowKey } from '../../store/deletions/suspicions.ts'
import type { Task } from '../../store/sync/tasks/task.ts'
import type { EngineContext } from '../context/context.ts'
import { backOff, markUnavailable } from '../due/back-off.ts'
import { wantList } from '../due/wants.ts'
import { accessLostError } from './refusals.ts'

/**
 * The API may refuse one scope of a feed as `unavailable`, such as the records of one CRM object. What the engine does
 * depends on the history of the scope's list:
 *
 * - has-rows: live rows of the scope are stored.
 * - was-listed: none are stored, but a pass over the list was completed.
 * - never-offered: neither.
 *
 * In a backfill, the scope waits until the next run. In the daemon it waits as follows, before scaling:
 *
 * | history       | the resource   | the scope is requested again                       |
 * | ------------- | -------------- | -------------------------------------------------- |
 * | has-rows      | is failing     | after 5 s, then after longer waits up to 15 min    |
 * | was-listed    | is not failing | after a minute, then after longer waits up to 18 h |
 * | never-offered | is not failing | after 18 h by its list, after a day by its tasks   |
 *
 * A refusal that is declared `absent`, such as the 404 for the meetings of one collection, may mean that the parent row
 * is deleted (`handleAbsent` in snapshot/snapshot.ts). refusals.ts handles all other refusals.
 */
export type ScopeHistory = 'has-rows' | 'was-listed' | 'never-offered'

/** The list that shows all rows of a scope. */
export interface ScopeList {
  /** `resource.feed` */
  list: string
  feed: Feed
  /** The scope of the list, such as a CRM object. */
  scope: string
}

export function scopeHistory(
  { store }: Pick<EngineContext, 'store'>,
  { list, feed, scope }: ScopeList,
): ScopeHistory {
  if (store.stored.hasLiveOf(feed.table, scope)) return 'has-rows'
  const wasListed = store.segments.of(list, scope).some(({ listedAt }) => listedAt !== null)
  return wasListed ? 'was-listed' : 'never-offered'
}

/** Whether the list has a segment for the scope, and its last read was not refused as unavailable. */
export function isOffered(
  { store }: Pick<EngineContext, 'store'>,
  { list, scope }: Pick<ScopeList, 'list' | 'scope'>,
): boolean {
  return store.segments.of(list, scope).some(({ unavailableSince }) => unavailableSince === null)
}

export interface ScopeRefusal {
  where: FeedName
  /** The scope of the feed `where`. */
  scope: string
  /** The tasks of the refused request; none for a list. */
  tasks?: readonly Task[]
  status: number
  message: string
}

/** Makes the tasks of a refused scope wait. Tasks of other scopes are not affected. */
export function refuseTasks(context: EngineContext, refusal: ScopeRefusal, of: ScopeList): void {
  const { where, scope } = refusal
  const history = scopeHistory(context, of)
  if (history === 'never-offered') {
    const round = context.rounds.number(where.resource)
    context.store.tasks.skipScope(where.id, scope, { round, dueAt: context.after(DAY_MS) })
  }
  if (history === 'has-rows') failScope(context, refusal, of)
  else markScopeUnavailable(context, refusal, history)
}

/**
 * Backs off a refused scope that has rows. If its parent row is suspected, the refusal is expected and is not reported.
 * Otherwise it is reported as a lost permission, and the parent row is read again to find out whether it still exists.
 *
 * @param options `isReported`: false for a refusal that may only mean that the parent row is deleted
 */
export function failScope(
  context: EngineContext,
  { where, scope, tasks, status, message }: ScopeRefusal,
  of: ScopeList,
  { isReported = true } = {},
): void {
  const parent = parentOf(of)
  const isSuspected = parent !== undefined && context.store.suspicions.find(parent) !== undefined
  if (parent && !isSuspected) readAgainAtOnce(context, parent)
  if (isSuspected || !isReported) context.backoffs.failed(where.id, scope)
  else backOff(context, where, accessLostError(status, message, of.scope), { scope, tasks })
}

function parentOf({ feed, scope }: ScopeList): RowKey | undefined {
  if (feed.mode !== 'snapshot' || !feed.scope) return undefined
  return { table: feed.scope.table, scope: '', key: scope }
}

/** Makes the single read of a row due at once if there is one, and in the daemon the lists of its table. */
function readAgainAtOnce(context: EngineContext, { table, key }: RowKey): void {
  for (const { id, feed } of FEEDS.filter(({ feed }) => feed.table === table)) {
    if (feed.mode !== 'item') wantList(context, id)
    else if (feed.stores === 'row')
      context.store.tasks.demand({ feed: id, key, dueAt: context.store.dueClock.after(0) })
  }
}

/** Makes a refused scope without rows wait, and records why it is unavailable. */
export function markScopeUnavailable(
  context: EngineContext,
  { where, scope, status, message }: ScopeRefusal,
  history: Exclude<ScopeHistory, 'has-rows'>,
): void {
  const reason = `${scope}: the API answers ${status}: ${message}`
  markUnavailable(context, where, reason, { scope, wasOffered: history === 'was-listed' })
}
