import { TABLES } from '../../catalog/catalog.ts'
import type { Feed } from '../../catalog/resource.ts'
import type { RowKey } from '../../store/deletions/suspicions.ts'
import type { Task } from '../../store/sync/tasks.ts'
import type { EngineContext } from '../context.ts'
import { DAY } from '../due/intervals.ts'
import type { FeedName } from '../feeds.ts'
import { accessLostError } from './refusals.ts'

/**
 * The API may refuse one scope of a feed, such as the records of one CRM object, as not offered. What follows depends on
 * what the scope's list returned before:
 *
 * | history       | the resource | asked again                                     |
 * | ------------- | ------------ | ----------------------------------------------- |
 * | has-rows      | is failing   | after 5 s, then after longer waits up to 15 min  |
 * | was-listed    | goes on      | after a minute, then after longer waits          |
 * | never-offered | goes on      | before a day is over, also by the next process   |
 */
export type ScopeHistory = 'has-rows' | 'was-listed' | 'never-offered'

/** The list that shows all rows of a scope. */
export interface ScopeList {
  /** `resource.feed` */
  list: string
  feed: Feed
  /** As the list names it: the object. */
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

/** Whether a scope has a list that was not refused as not offered at its last read. */
export function isOffered(
  { store }: Pick<EngineContext, 'store'>,
  { list, scope }: Pick<ScopeList, 'list' | 'scope'>,
): boolean {
  return store.segments.of(list, scope).some(({ unavailableSince }) => unavailableSince === null)
}

interface ScopeRefusal {
  where: FeedName
  /** The scope of the feed's tasks. */
  scope: string
  /** The tasks of the refused request; none for a list. */
  tasks?: readonly Task[]
  status: number
  message: string
}

/** Makes the tasks of a refused scope wait, so that tasks of other scopes go on. */
export function refuseTasks(context: EngineContext, refusal: ScopeRefusal, of: ScopeList): void {
  const { where, scope } = refusal
  const history = scopeHistory(context, of)
  if (history === 'never-offered') {
    const round = context.round(where.resource)
    context.store.tasks.skipScope(where.feed, scope, { round, dueAt: context.after(DAY) })
  }
  if (history === 'has-rows') failScope(context, refusal, of)
  else markScopeUnavailable(context, refusal, history)
}

/** Backs off a refused scope that has rows. Its parent row may be about to go; otherwise the key lost a permission. */
export function failScope(
  context: EngineContext,
  { where, scope, tasks, status, message }: ScopeRefusal,
  of: ScopeList,
): void {
  const parent = parentOf(of)
  if (parent && context.store.suspicions.find(parent)) context.backoffs.failed(where.feed, scope)
  else {
    if (parent) readAgainAtOnce(context, parent)
    context.backOff(where, accessLostError(status, message, of.scope), { scope, tasks })
  }
}

function parentOf({ feed, scope }: ScopeList): RowKey | undefined {
  if (feed.mode !== 'snapshot' || !feed.scope) return undefined
  return { table: feed.scope.table, scope: '', key: scope }
}

/** Has a row, and the list that names it, read again at once. */
function readAgainAtOnce(context: EngineContext, { table, key }: RowKey): void {
  const resource = TABLES.get(table)?.resource
  context.store.tasks.demand({ feed: `${resource}.detail`, key, dueAt: context.now() })
  context.demandedLists.add(`${resource}.list`)
}

/** Stops asking for a refused scope without rows for a while. */
export function markScopeUnavailable(
  context: EngineContext,
  { where, scope, status, message }: ScopeRefusal,
  history: Exclude<ScopeHistory, 'has-rows'>,
): void {
  const reason = `${scope}: the API answers ${status}: ${message}`
  context.markUnavailable(where, reason, { scope, wasOffered: history === 'was-listed' })
}
