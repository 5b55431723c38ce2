import { longestBackoffMs } from '../../../base/backoff.ts'
import { DAY_MS, MINUTE_MS } from '../../../base/clock.ts'
import type { ParleyError } from '../../../base/errors.ts'
import { columnAt, resourceNamed } from '../../../catalog/catalog.ts'
import { listsOf } from '../../../catalog/feeds.ts'
import type { ReadRequest } from '../../../declare/resource.ts'
import type { RowState } from '../../../store/rows/row-state.ts'
import type { EngineContext } from '../../context/context.ts'
import { MONTH_MS, scaled, WEEK_MS } from '../../context/intervals.ts'
import type { Reply } from '../../context/job.ts'
import { noteDenial } from '../../deletions/denial.ts'
import { isUnlisted } from '../../deletions/unlisted.ts'
import { isDueInRound } from '../../due/segment-conditions.ts'
import { writeRows } from '../../follow-ups/write.ts'
import {
  type ItemHandler,
  type ItemWork,
  readAgain,
  recheckAfter,
  recordOf,
  rejectScope,
  rereadAfterMs,
  rowOf,
  waitUntilReady,
  withheldRereadAfterMs,
} from './item-handler.ts'

/** The answer is the whole payload of the requested row: meetings, playbooks, CRM objects. */
export const rowAnswer: ItemHandler = {
  answer: storeRow,
  absent: rowAbsent,
  failed: rowFailed,
  staysRejected: isListedWithoutAnswer,
  // The list also shows rows whose content is withheld, so only the single read can confirm such a denial.
  taskOf: (_store, { id }, { key, means }) => (means === 'withheld' ? { feed: id, key } : undefined),
}

function storeRow(context: EngineContext, work: ItemWork, value: unknown, reply: Reply): void {
  const { feed, task } = work
  const item = context.parsing.parser(feed.table)(
    recordOf(work, value),
    context.parsing.report(work, task.key),
  )
  if (!item) {
    readAgain(context, work, DAY_MS)
    return
  }
  const access = columnAt(feed.table, 'access')
  if (access >= 0) item.cells[access] = 'open'
  const filled = access >= 0 ? ['access'] : []
  writeRows(
    context,
    work.resource,
    feed.table,
    [item],
    { ticket: reply.ticket, now: context.now(), filled },
    feed.followUps,
  )
  const cell = (column = '') => item.cells[columnAt(feed.table, column)]
  const ready = !feed.readyWhen || cell(feed.readyWhen.column) === feed.readyWhen.is
  // A list of keys may not show the time of its rows, so the task may not have it.
  const time = cell(feed.time)
  const happenedAt = typeof time === 'string' ? time : task.sortAt
  if (ready) readAgain(context, work, rereadAfterMs(context, happenedAt))
  else waitUntilReady(context, work)
}

/**
 * Notes a record that is published and cannot be stored, since its read fails. Without a reject, the resource would be
 * complete although the record is missing. A key that nothing names any more is dropped.
 */
function rowFailed(context: EngineContext, work: ItemWork, error: ParleyError): void {
  const { stored, tasks } = context.store
  const { task } = work
  const state = stored.state(rowOf(work))
  if (state === 'open' || state === 'withheld') return
  if (isListed(context, work) || isNudged(context, work) || isAlwaysRead(work) || isNamed(context, work))
    noteUnanswered(
      context,
      work,
      `The API fails to answer for this record, and a later run requests it again: ${error.message}`,
    )
  else if (state === 'unknown') tasks.remove(task)
}

function noteUnanswered(context: EngineContext, work: ItemWork, reason: string): void {
  const { resource, id: feed, task } = work
  const item = { [(work.feed.read as ReadRequest).identity ?? 'id']: task.key }
  context.store.rejects.note({ resource, feed, scope: rejectScope(task), item, reason }, context.now())
}

/** Handles a refusal. What it means depends on the stored row, and on whether the list names this row. */
function rowAbsent(context: EngineContext, work: ItemWork, means: 'absent' | 'withheld'): void {
  if (isListedWithoutAnswer(context, work, means)) noteUnanswered(context, work, LISTED_AND_ABSENT)
  REFUSED[means][context.store.stored.state(rowOf(work))](context, work)
}

const REFUSED: Readonly<
  Record<'absent' | 'withheld', Record<RowState, (context: EngineContext, work: ItemWork) => void>>
> = {
  absent: {
    unknown: askUnknown,
    open: denyAbsent,
    withheld: denyAbsent,
    deleted: askDeleted,
  },
  withheld: {
    unknown: noteWithheld,
    deleted: noteWithheld,
    open: denyWithheld,
    withheld: readWithheldAgain,
  },
}

const LISTED_AND_ABSENT =
  'The list names this record, but the API answers 404 for it. A later run requests it again'

/**
 * Whether a record that answers 404 is named by its list all the same, as the second such answer shows, minutes after
 * the first. Such a record counts as one that could not be stored. A stored record may have been deleted since its list
 * was read. So in the daemon the list has to show it after a 404, which ends its suspicion. In a backfill it is enough
 * that the list shows it in this round.
 */
function isListedWithoutAnswer(
  context: EngineContext,
  work: ItemWork,
  means: 'absent' | 'withheld',
): boolean {
  const { store } = context
  const { resource, id, task } = work
  const state = store.stored.state(rowOf(work))
  if (means !== 'absent' || state === 'deleted' || task.attempts === 0) return false
  if (state === 'unknown') return isListed(context, work)
  // A record that is not ready has `attempts` too, and a deadline.
  if (task.deadline !== null || isUnlisted(context, resource, task.key)) return false
  const isShownSince = store.suspicions.find(rowOf(work)) === undefined
  return isShownSince || isShownInRound(context, work) || store.rejects.has(id, rejectScope(task))
}

/**
 * Whether the list has shown a key in this round of a backfill. A key that is not unlisted was shown by the list's last
 * complete pass.
 */
function isShownInRound({ store, schedule, rounds }: EngineContext, { resource, task }: ItemWork): boolean {
  if (schedule.isTimed) return false
  const list = `${resource}.list`
  const round = rounds.number(resource)
  return store.segments
    .of(list, '')
    .some(
      pass => !isDueInRound(pass, round) || (pass.passRound === round && store.seen.has(list, '', task.key)),
    )
}

/** A row is gone when both its list and its single read deny it. While the list names it, a 404 confirms nothing. */
function denyAbsent(context: EngineContext, work: ItemWork): void {
  const confirms = isUnlisted(context, work.resource, work.task.key)
  const verdict = noteDenial(context, rowOf(work), { confirms })
  if (verdict.state === 'suspected') askAgain(context, work, verdict.askAgainMs)
  else readAgain(context, work, DAY_MS)
}

function denyWithheld(context: EngineContext, work: ItemWork): void {
  const verdict = noteDenial(context, rowOf(work), { means: 'withheld' })
  if (verdict.state === 'suspected') askAgain(context, work, verdict.askAgainMs)
  else readWithheldAgain(context, work)
}

/** For a 403 on a row that is not stored, or is deleted. It removes no content, so no second answer has to confirm it. */
function noteWithheld(context: EngineContext, work: ItemWork): void {
  context.runs.counts(work.resource).rowsChanged += context.store.withhold(
    work.feed.table,
    [[work.task.key]],
    context.now(),
  )
  readWithheldAgain(context, work)
}

function readWithheldAgain(context: EngineContext, work: ItemWork): void {
  readAgain(context, work, withheldRereadAfterMs(context, work.task.sortAt))
}

/** Schedules a read for when a second refusal counts. Later reads come at growing intervals until the list decides. */
function askAgain(context: EngineContext, work: ItemWork, askAgainMs: number): void {
  if (askAgainMs === 0) askGrowing(context, work)
  else recheckAfter(context, work, askAgainMs)
}

/** Each wait is as long as all earlier waits together, so an item that takes minutes to be ready is read soon. */
function askGrowing(
  context: EngineContext,
  work: ItemWork,
  { waiting = true, deadline = null }: { waiting?: boolean; deadline?: string | null } = {},
): void {
  const attempts = work.task.attempts + 1
  const firstMs = work.feed.readyWhen ? 10 * MINUTE_MS : DAY_MS
  const afterMs = longestBackoffMs({ firstMs, mostMs: MONTH_MS }, attempts)
  readAgain(context, work, afterMs, { attempts, waiting, deadline })
}

/** How soon a key that a list names is requested again after a 404. */
const SOON_MS = 2 * MINUTE_MS

/** How long a naming by a list counts. An older one may have been wrong, or the row is gone. */
const NAMED_FOR_MS = WEEK_MS

/**
 * Handles a 404 for a row of which only the key is known. The row may be published later, as long as anything names it.
 * The first 404 of a key that a list shows or a webhook has named may be wrong: until a second one, the resource is not
 * complete (`isUndecided`). A key that is always read and that no list shows is not offered, as a scope that was never
 * offered (`refused-scope.ts`): nothing waits for it.
 */
function askUnknown(context: EngineContext, work: ItemWork): void {
  const { attempts, deadline } = work.task
  const isKnown = isListed(context, work) || isNudged(context, work)
  if (isKnown && attempts === 0) recheckAfter(context, work, scaled(SOON_MS, context.options), { deadline })
  else if (!isKnown && isAlwaysRead(work)) askGrowing(context, work, { waiting: false })
  else if (isKnown || isNamed(context, work)) askGrowing(context, work, { deadline })
  else context.store.tasks.remove(work.task)
}

function isListed({ store, options }: EngineContext, { task }: ItemWork): boolean {
  const { namedAt } = store.tasks.find(task) ?? task
  return namedAt !== null && namedAt > store.dueClock.after(-scaled(NAMED_FOR_MS, options))
}

/** Whether a webhook has named the key of late. The list may never show it. */
const isNudged = ({ store }: EngineContext, { task: { deadline } }: ItemWork): boolean =>
  deadline !== null && deadline > store.dueClock.now()

/**
 * A deleted row is read again a day after its deletion, a week and a month later, since a row that comes back may be on
 * no list. While a live row names the deleted row, it is read every week.
 */
function askDeleted(context: EngineContext, work: ItemWork): void {
  const attempts = work.task.attempts + 1
  const afterMs = isNamed(context, work) ? WEEK_MS : [WEEK_MS, MONTH_MS][attempts - 1]
  if (afterMs === undefined) context.store.tasks.remove(work.task)
  else readAgain(context, work, afterMs, { attempts })
}

/** Whether the key is requested whatever its list shows. Many workspaces have no such row. */
const isAlwaysRead = ({ resource, task: { key } }: ItemWork): boolean =>
  listsOf(resourceNamed(resource)).some(({ feed }) => feed.mode === 'snapshot' && feed.always?.includes(key))

const isNamed = ({ store }: EngineContext, { feed: { table }, task: { key } }: ItemWork): boolean =>
  store.stored.isNamed({ table, key })
