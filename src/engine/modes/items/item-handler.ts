import { readSingle } from '../../../api/paging.ts'
import { longestBackoffMs } from '../../../base/backoff.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../base/clock.ts'
import type { ParleyError } from '../../../base/errors.ts'
import { type DeclaredFeed, feedNamed } from '../../../catalog/feeds.ts'
import type { ItemFeed, ReadRequest } from '../../../declare/resource.ts'
import type { RowKey, Suspicion } from '../../../store/deletions/suspicions.ts'
import type { Store } from '../../../store/store.ts'
import { BY_DUE_TIME, type Task, type TaskKey } from '../../../store/sync/tasks/task.ts'
import type { EngineContext } from '../../context/context.ts'
import { MONTH_MS, WEEK_MS } from '../../context/intervals.ts'
import type { Batches, Reply } from '../../context/job.ts'
import { tableOfPart } from '../../deletions/row-parts.ts'
import { keyOf } from '../../parse/key.ts'
import type { PageGuard } from '../page-guard.ts'
import { wrongIdentityError } from '../refusals.ts'
import type { ScopeList } from '../refused-scope.ts'

/** Handles the answers of single reads: one handler for each kind of item. */
export interface ItemHandler {
  query?(work: ItemWork): Readonly<Record<string, string>>
  /** Parameters of the path other than the key. */
  params?(task: Task): Readonly<Record<string, string>>
  /** For reads of one scope of a list: that list. If the API refuses such a read as unavailable, the scope waits. */
  list?(work: ItemWork): ScopeList
  /** Writes the tasks of this round. It runs once the parents are read, and no task is read before it has ended. */
  plan?(context: EngineContext, id: string): Batches
  answer(context: EngineContext, work: ItemWork, value: unknown, reply: Reply): void
  /** Handles a refusal, such as a 404, that the feed declares as `absent` or `withheld`. */
  absent(context: EngineContext, work: ItemWork, meaning: 'absent' | 'withheld'): void
  /** Whether a refused item still counts as one that could not be stored. By default it does not. */
  staysRejected?(context: EngineContext, work: ItemWork, meaning: 'absent' | 'withheld'): boolean
  /** Called after a failed read was put off. */
  failed?(context: EngineContext, work: ItemWork, error: ParleyError): void
  /** The task that requests a denied row once more; undefined when a list decides whether the row is gone. */
  taskOf?(store: Store, read: Pick<ItemWork, 'id' | 'feed'>, row: DeniedRow): TaskKey | undefined
}

export type DeniedRow = RowKey & Pick<Suspicion, 'means'>

export interface ItemWork extends DeclaredFeed<ItemFeed> {
  task: Task
  /** Whether the item is read before all others. */
  isUrgent: boolean
  /** True when the answer is a list and has another page. */
  more: boolean
  /**
   * For a list of several pages: the ticket of its first request. The whole list counts as one request that is in
   * flight until its final page, so an older page never overwrites what a later request wrote.
   */
  ticket: number | undefined
  /** When the request was sent. For a list of several pages, when its first page was requested. */
  sentAt: string | undefined
  cursor: Readonly<Record<string, string>> | null
  gathered: string[]
  /** Whether a page of the list had an item that could not be stored. */
  hasRejects: boolean
  guard: PageGuard
}

/**
 * What a denial of the read suspects: the row, or a part of it, whose suspicions are separate from those of the row.
 */
export const rowOf = ({ feed, task }: ItemWork): RowKey => ({
  table: tableOfPart(feed),
  scope: '',
  key: task.key,
})

/** The scope of an answer's rejects. One key may have several scopes, each with a separate answer. */
export function rejectScope({ scope, key }: Pick<Task, 'scope' | 'key'>): string {
  return scope === '' ? key : `${scope} ${key}`
}

/** The record of a single read. @throws RetryError when it is not the one requested */
export function recordOf({ feed, task }: ItemWork, value: unknown): Record<string, unknown> {
  const read = feed.read as ReadRequest
  const record = readSingle(value, read.placement, read.identity)
  if (Array.isArray(record)) throw wrongIdentityError()
  if (read.identity === undefined || keyOf(record, [read.identity]) === task.key) return record
  throw wrongIdentityError()
}

/** Schedules the next read of an item. */
export function readAgain(
  context: EngineContext,
  { resource, task }: ItemWork,
  afterMs: number,
  state: { attempts?: number; waiting?: boolean; deadline?: string | null } = {},
): void {
  context.store.tasks.done(task, {
    round: context.rounds.number(resource),
    dueAt: context.after(afterMs),
    sortAt: task.sortAt,
    ...state,
  })
}

const NOT_READY = { firstMs: 10 * MINUTE_MS, mostMs: DAY_MS }

/** Schedules the read that may confirm a suspicion. In a backfill too it is due after `afterMs`, not once per round. */
export function recheckAfter(
  context: EngineContext,
  { task }: ItemWork,
  afterMs: number,
  { deadline = null }: { deadline?: string | null } = {},
): void {
  context.store.tasks.done(task, {
    deadline,
    round: BY_DUE_TIME,
    dueAt: context.store.dueClock.after(afterMs),
    attempts: task.attempts + 1,
    sortAt: task.sortAt,
  })
}

/** Schedules the next read of an item that the API has not finished: at growing intervals for a week, then weekly. */
export function waitUntilReady(context: EngineContext, work: ItemWork): void {
  const attempts = work.task.attempts + 1
  const deadline = work.task.deadline ?? context.after(WEEK_MS)
  const past = context.store.dueClock.now() > deadline
  const afterMs = past ? WEEK_MS : longestBackoffMs(NOT_READY, attempts)
  readAgain(context, work, afterMs, { attempts, deadline, waiting: true })
}

/** The interval for an item that may still change: a tenth of its age, from an hour to a week. */
export function rereadAfterMs(context: EngineContext, happenedAt: string | null): number {
  return Math.min(Math.max(ageOf(context, happenedAt) / 10, HOUR_MS), WEEK_MS)
}

/**
 * The interval for an item whose content the API withholds: a quarter of the time since the item's event, or until a
 * future event, from an hour to 30 days.
 */
export function withheldRereadAfterMs(context: EngineContext, happenedAt: string | null): number {
  return Math.min(Math.max(Math.abs(ageOf(context, happenedAt)) / 4, HOUR_MS), MONTH_MS)
}

const ageOf = ({ clock }: EngineContext, happenedAt: string | null): number =>
  happenedAt === null ? WEEK_MS : clock.now() - Date.parse(happenedAt)

/**
 * As `rereadAfterMs`, for a part of a row, such as a transcript. A change of the row makes the part due at once, so the
 * interval is at least a day.
 */
export function rereadPartAfterMs(context: EngineContext, happenedAt: string | null): number {
  return Math.max(rereadAfterMs(context, happenedAt), DAY_MS)
}

/** After the first refusal of a part, makes the read of its parent row due. The answer shows what the refusal means. */
export function askDetail({ store }: EngineContext, { feed, task }: ItemWork): void {
  if (feed.partOf !== undefined && task.attempts === 0)
    store.tasks.demand({ feed: feed.partOf, key: task.key, dueAt: store.dueClock.after(0) })
}

/**
 * Removes the task of a part whose row is deleted or withheld, perhaps since the request was sent. Returns true when it
 * does: the answer must then not be stored. When the row comes back, its parts are read again.
 * @param options `isRefused`: the API has no such part. The task is then also removed if the row is not stored and has
 *   no task, since nothing names the part any more.
 */
export function dropIfGone(
  { store }: EngineContext,
  { feed, task: { key }, task }: ItemWork,
  { isRefused = false } = {},
): boolean {
  const { partOf } = feed
  // The text of an e-mail is stored in the row of its copy, which no single read reads.
  const { table } = partOf === undefined ? feed : feedNamed(partOf).feed
  const state = store.stored.state({ table, scope: '', key })
  const isNamed = () => partOf !== undefined && store.tasks.find({ feed: partOf, key }) !== undefined
  const isUnnamed = isRefused && state === 'unknown' && !isNamed()
  const isGone = state === 'deleted' || state === 'withheld' || isUnnamed
  if (isGone) store.tasks.remove(task)
  return isGone
}
