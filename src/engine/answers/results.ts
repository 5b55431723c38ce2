import { readDataList } from '../../api/paging.ts'
import { quote } from '../../store/sql.ts'
import type { EngineContext } from '../context.ts'
import { denied } from '../deletions/denial.ts'
import type { Reply } from '../job.ts'
import {
  type ItemHandler,
  type ItemWork,
  isTooLate,
  partAbsent,
  readAgain,
  readAt,
  rereadAfter,
  waitFor,
  whereOf,
} from './work.ts'

/** The answer is the complete list of a meeting's results, each a row of its own. */
export const resultsAnswer: ItemHandler = { answer: storeResults, absent: partAbsent }

function storeResults(context: EngineContext, work: ItemWork, value: unknown, reply: Reply): void {
  const { feed, task } = work
  const where = whereOf(work)
  if (isTooLate(context, work)) return
  const parse = context.parser(feed.table)
  const report = context.report(where, task.key)
  const items = readDataList(value).flatMap(item => parse(item, report, task.key) ?? [])
  context.write(where, feed.table, items, { ticket: reply.ticket, now: context.now() })
  const listed = new Set(items.map(({ cells }) => cells[0]))
  const stored = context.store.prepare(
    `SELECT id FROM ${quote(feed.table)} WHERE meeting_id = ? AND _deleted_at IS NULL`,
  )
  const missed = (stored.all(task.key) as { id: string }[]).filter(({ id }) => !listed.has(id))
  const verdicts = missed.map(({ id }) => denied(context, { table: feed.table, scope: '', key: id }))
  const doubtful = verdicts.find(verdict => verdict.state === 'suspected')
  if (doubtful) readAt(context, work, doubtful.askAgainMs)
  else if (items.length === 0) waitFor(context, work)
  else readAgain(context, work, rereadAfter(context, task.sortAt))
}
