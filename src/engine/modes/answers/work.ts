import { readSingle } from '../../../api/paging.ts'
import { longestBackoffMs } from '../../../backoff.ts'
import type { ItemFeed, ReadRequest, Resource } from '../../../catalog/resource.ts'
import { isoInstant } from '../../../clock.ts'
import { BY_DUE_TIME, type Task } from '../../../store/sync/tasks.ts'
import type { EngineContext } from '../../context.ts'
import { DAY, HOUR, MINUTE, WEEK } from '../../schedule/intervals.ts'
import type { Batches } from '../../scheduler/batches.ts'
import type { Reply } from '../../scheduler/job.ts'
import { wrongIdentity } from '../expected.ts'
import type { ScopeList } from '../refused-scope.ts'

/** What is done with the answer of a single read: one handler for each kind of item. */
export interface ItemHandler {
  query?(work: ItemWork): Readonly<Record<string, string>>
  /** What fills the path besides the key. */
  params?(task: Task): Readonly<Record<string, string>>
  /** The list that is asked, where its scopes may not be offered. */
  list?(work: ItemWork): ScopeList
  /** Writes the tasks of this round once the parents are read; until then nothing is asked for. */
  plan?(context: EngineContext, id: string): Batches
  answer(context: EngineContext, work: ItemWork, value: unknown, reply: Reply): void
  /** 404, or 403 where that is declared as withheld. */
  absent(context: EngineContext, work: ItemWork, meaning: 'absent' | 'withheld'): void
}

export interface ItemWork {
  resource: Resource
  id: string
  feed: ItemFeed
  task: Task
  /** True when the item's own list goes on on another page. */
  more: boolean
  /** Of its first page, which is prolonged until the last is stored. */
  ticket: number | undefined
  /** When the request for its first page was sent. */
  sentAt: string | undefined
  cursor: Readonly<Record<string, string>> | null
  gathered: string[]
  /** Cursors of its pages so far. */
  asked: string[]
}

export const whereOf = ({ resource, id }: ItemWork) => ({ resource: resource.name, feed: id })

/**
 * Under what the rejects of an answer are noted: a record may be asked for in several directions, each with an answer.
 */
export function rejectScope({ scope, key }: Pick<Task, 'scope' | 'key'>): string {
  return scope === '' ? key : `${scope} ${key}`
}

/** The record of a single read. An answer for something else than was asked for is no answer. */
export function recordOf({ feed, task }: ItemWork, value: unknown): Record<string, unknown> {
  const read = feed.read as ReadRequest
  const record = readSingle(value, read.placement, read.identity)
  if (!Array.isArray(record) && (read.identity === undefined || record[read.identity] === task.key))
    return record
  throw wrongIdentity()
}

interface Again {
  afterMs: number
  attempts?: number
  waiting?: boolean
  deadline?: string | null
}

export function again(context: EngineContext, { resource, task }: ItemWork, next: Again): void {
  const { afterMs, ...rest } = next
  context.store.tasks.done(task, {
    round: context.round(resource.name),
    dueAt: context.after(afterMs),
    sortAt: task.sortAt,
    ...rest,
  })
}

export function readAgain(context: EngineContext, work: ItemWork, afterMs: number): void {
  again(context, work, { afterMs })
}

const NOT_READY = { firstMs: 10 * MINUTE, mostMs: DAY }

/** For the second look at a suspicion: read at that time, by a backfill too. */
export function readAt(context: EngineContext, { task }: ItemWork, afterMs: number): void {
  context.store.tasks.done(task, {
    round: BY_DUE_TIME,
    dueAt: isoInstant(context.clock.now() + afterMs),
    attempts: task.attempts + 1,
    sortAt: task.sortAt,
  })
}

/** Not ready at the API: asked again at growing intervals until a deadline, then weekly. */
export function waitFor(context: EngineContext, work: ItemWork): void {
  const attempts = work.task.attempts + 1
  const deadline = work.task.deadline ?? context.after(WEEK)
  const past = context.now() > deadline
  const afterMs = past ? WEEK : longestBackoffMs(NOT_READY, attempts)
  again(context, work, { afterMs, attempts, deadline, waiting: true })
}

/** What can change later is read again at intervals that grow with its age. Pure but for the clock. */
export function rereadAfter({ clock }: EngineContext, happenedAt: string | null): number {
  const age = happenedAt === null ? WEEK : clock.now() - Date.parse(happenedAt)
  return Math.min(Math.max(age / 10, HOUR), WEEK)
}

/** A part of a meeting is refused: the meeting's detail decides what that means. */
export function askDetail({ store, now }: EngineContext, { task }: ItemWork): void {
  if (task.attempts === 0) store.tasks.demand({ feed: 'meetings.detail', key: task.key, dueAt: now() })
}

/**
 * An answer for a part of a meeting that was withdrawn after it was asked for: nothing of it is kept. Returns whether
 * that is so; when the meeting comes back its parts are read again.
 */
export function isTooLate({ store }: EngineContext, { task }: ItemWork): boolean {
  const withdrawn = store
    .prepare("SELECT 1 FROM meetings WHERE id = ? AND (_deleted_at IS NOT NULL OR access = 'withheld')")
    .get(task.key)
  if (withdrawn !== undefined) store.tasks.remove(task)
  return withdrawn !== undefined
}
