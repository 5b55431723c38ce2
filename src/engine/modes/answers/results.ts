import { readDataList } from '../../../api/paging.ts'
import type { Cell } from '../../../catalog/row.ts'
import { quote } from '../../../store/database/sql.ts'
import type { EngineContext } from '../../context.ts'
import { denied } from '../../deletions/denial.ts'
import type { Verdict } from '../../deletions/suspicion.ts'
import { writeRows } from '../../follow-ups/write.ts'
import type { Reply } from '../../scheduler/job.ts'
import {
  askDetail,
  type ItemHandler,
  type ItemWork,
  isTooLate,
  readAgain,
  readAt,
  rereadAfter,
  waitFor,
  whereOf,
} from './work.ts'

/** The answer is the complete list of a meeting's results, each a row of its own. */
export const resultsAnswer: ItemHandler = { answer: storeResults, absent: resultsAbsent }

function storeResults(context: EngineContext, work: ItemWork, value: unknown, reply: Reply): void {
  const { feed, task } = work
  const where = whereOf(work)
  if (isTooLate(context, work)) return
  const parse = context.parser(feed.table)
  const report = context.report(where, task.key)
  const items = readDataList(value).flatMap(item => parse(item, report, task.key) ?? [])
  writeRows(context, where, feed.table, items, { ticket: reply.ticket, now: context.now() })
  const verdict = denyMissing(context, work, new Set(items.map(({ cells }) => cells[0])))
  if (verdict?.state === 'suspected') readAt(context, work, verdict.askAgainMs)
  else if (items.length === 0) waitFor(context, work)
  else readAgain(context, work, rereadAfter(context, task.sortAt))
}

/** No result is published, for now or for good; the meeting's detail tells whether the meeting is. */
function resultsAbsent(context: EngineContext, work: ItemWork): void {
  if (isTooLate(context, work)) return
  askDetail(context, work)
  const verdict = denyMissing(context, work, new Set())
  if (verdict?.state === 'suspected') readAt(context, work, verdict.askAgainMs)
  else waitFor(context, work)
}

/** Stored results that an answer does not hold are denied. Returns a verdict that waits for another answer, if any does. */
function denyMissing(
  context: EngineContext,
  { feed, task }: ItemWork,
  listed: ReadonlySet<Cell | undefined>,
): Verdict | undefined {
  const stored = context.store
    .prepare(`SELECT id FROM ${quote(feed.table)} WHERE meeting_id = ? AND _deleted_at IS NULL`)
    .pluck()
  const missing = (stored.all(task.key) as string[]).filter(id => !listed.has(id))
  const verdicts = missing.map(key => denied(context, { table: feed.table, scope: '', key }))
  return verdicts.find(({ state }) => state === 'suspected')
}
