import { longestBackoffMs } from '../../../base/backoff.ts'
import { DAY_MS, HOUR_MS } from '../../../base/clock.ts'
import { decodeJson, encodeJson } from '../../../base/json.ts'
import { tableNamed } from '../../../catalog/catalog.ts'
import type { ParsedItem } from '../../../declare/parsed-item.ts'
import type { ItemFeed } from '../../../declare/resource.ts'
import type { Denial } from '../../../store/deletions/suspicions.ts'
import type { TextResult } from '../../../store/rows/merge/texts.ts'
import type { StoredItem } from '../../../store/rows/write-items.ts'
import type { EngineContext } from '../../context/context.ts'
import { MONTH_MS, WEEK_MS } from '../../context/intervals.ts'
import type { Reply } from '../../context/job.ts'
import { noteDenial } from '../../deletions/denial.ts'
import { writeRows } from '../../follow-ups/write.ts'
import { askLaggingAgain } from '../lagging-answers.ts'
import { dropIfGone, type ItemHandler, type ItemWork, readAgain, recordOf, rowOf } from './item-handler.ts'

/** The answer is a copy of a message with its text. The text is stored in the merged message. */
export const bodyAnswer: ItemHandler = { answer: storeBody, absent: bodyAbsent, failed: bodyFailed }

function storeBody(context: EngineContext, work: ItemWork, value: unknown, reply: Reply): void {
  const { resource, feed, task } = work
  const report = context.parsing.report(work, task.key)
  const parsed = context.parsing.parser(feed.table)(recordOf(work, value), report)
  if (!parsed) {
    readAgain(context, work, DAY_MS)
    bodyFailed(context, work)
    return
  }
  const { text } = parsed.feedFields
  const fits = typeof text === 'string' || text == null
  const isStoredAsSent = text == null || (typeof text === 'string' && text.isWellFormed())
  if (!isStoredAsSent) report.drift(feed.table, 'text', 'unexpected type')
  const item = isStoredAsSent ? parsed : withTextInExtra(parsed, text)
  // `keepsLive`: a list and a single read may show different values. If both wrote the row, it would seem to change each time.
  const options = { ticket: reply.ticket, now: context.now(), keepsLive: true, shownBy: 'single' } as const
  const stored = writeRows(context, resource, feed.table, [item], options)
  // Nothing was stored, for example because the answer of a later request was stored already.
  const [entry] = stored
  if (entry === undefined) return
  // A text of another form says nothing about the stored text.
  if (!fits) {
    report.reject(feed.table, value, 'text is neither text nor null')
    readAgain(context, work, DAY_MS)
    bodyFailed(context, work)
    return
  }
  const wasRead = context.store.merge.textState(task.key) === 'present'
  const given = typeof text === 'string'
  if (given) context.store.suspicions.end(rowOf(work))
  else if (denyText(context, work, 'empty')) return
  const result: TextResult = given ? { state: 'present', text: text.toWellFormed() } : { state: 'empty' }
  if (context.store.merge.applyText(task.key, result, context.now())) {
    const counts = context.runs.counts(resource)
    counts.rowsChanged += 1
    if (given && !wasRead) counts.rowsNew += 1
  }
  if (!given) bodyAgain(context, work, false)
  else if (wasRead && mayLag(feed, entry)) askLaggingAgain(context, resource, task, { waiting: true })
  else context.store.tasks.remove(task)
}

/** Another copy of the e-mail may have the text. This one is read again too. */
function bodyFailed(context: EngineContext, { task }: ItemWork): void {
  context.store.merge.textFailed(task.key, context.now())
}

/**
 * Whether the answer differs from the stored row, whose columns come from the list. The message is read again because
 * the list showed a change, so a lagging replica may have sent such an answer, with the old text. A list and a single
 * read may also differ permanently.
 */
function mayLag({ table }: ItemFeed, { item, written: { before } }: StoredItem): boolean {
  return Object.values(tableNamed(table).columns).some(
    ({ source }, index) => source.from === 'payload' && before?.[index] !== item.cells[index],
  )
}

function withTextInExtra(item: ParsedItem, text: unknown): ParsedItem {
  const known = item.extra === null ? {} : (decodeJson(item.extra).value as object)
  return { ...item, extra: encodeJson({ ...known, text }) }
}

/**
 * Denies a stored text, or after a 404 the stored state `empty`. Returns true if a second denial has to confirm this:
 * the stored state then stays, and the text is read again an hour later.
 */
function denyText(context: EngineContext, work: ItemWork, means: Denial): boolean {
  const { store } = context
  const state = store.merge.textState(work.task.key)
  if (state !== 'present' && !(state === 'empty' && means === 'absent')) {
    store.suspicions.end(rowOf(work))
    return false
  }
  const verdict = noteDenial(context, rowOf(work), { means, afterMs: HOUR_MS })
  if (verdict.state === 'suspected') readAgain(context, work, HOUR_MS, { waiting: true })
  else store.suspicions.end(rowOf(work))
  return verdict.state === 'suspected'
}

function bodyAbsent(context: EngineContext, work: ItemWork): void {
  // A deleted copy may come back, and its text is then read again.
  if (dropIfGone(context, work)) return
  if (denyText(context, work, 'absent')) return
  context.store.merge.applyText(work.task.key, { state: 'gone' }, context.now())
  bodyAgain(context, work, true)
}

const BODY_YOUNG_MS = 30 * DAY_MS

/**
 * A hidden text may be shown later. A young message is read again after growing waits, an old message every 30 days.
 * After a 404 the waits of an old message grow too. The API answers 404 only for a message that no list shows, so a
 * message that stays listed was hidden only for a while.
 */
function bodyAgain(context: EngineContext, work: ItemWork, isGone: boolean): void {
  const { task } = work
  const age = task.sortAt === null ? 0 : context.clock.now() - Date.parse(task.sortAt)
  const attempts = task.attempts + 1
  const isYoung = age < BODY_YOUNG_MS
  const mostMs = isYoung ? WEEK_MS : MONTH_MS
  const afterMs = isYoung || isGone ? longestBackoffMs({ firstMs: 2 * HOUR_MS, mostMs }, attempts) : mostMs
  readAgain(context, work, afterMs, { attempts, waiting: isGone })
}
