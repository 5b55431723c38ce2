import { readDataList } from '../../../api/paging.ts'
import { tableNamed } from '../../../catalog/catalog.ts'
import type { Cell } from '../../../declare/parsed-item.ts'
import type { EngineContext } from '../../context/context.ts'
import type { Reply } from '../../context/job.ts'
import type { Verdict } from '../../deletions/deletion-states.ts'
import { noteDenial } from '../../deletions/denial.ts'
import { writeRows } from '../../follow-ups/write.ts'
import {
  askDetail,
  dropIfGone,
  type ItemHandler,
  type ItemWork,
  readAgain,
  recheckAfter,
  rereadPartAfterMs,
  waitUntilReady,
} from './item-handler.ts'

/** The answer is the complete list of a meeting's results, each stored as a row. */
export const resultsAnswer: ItemHandler = {
  answer: storeResults,
  absent: resultsAbsent,
  taskOf({ stored }, { id, feed }, row) {
    const key = stored.valueOf(row, requestColumn(feed.table))
    return key === undefined ? undefined : { feed: id, key }
  },
}

function storeResults(context: EngineContext, work: ItemWork, value: unknown, reply: Reply): void {
  const { feed, task } = work
  if (dropIfGone(context, work)) return
  const parse = context.parsing.parser(feed.table)
  const report = context.parsing.report(work, task.key)
  const list = readDataList(value)
  const items = list.flatMap(item => parse(item, report, task.key) ?? [])
  const written = { ticket: reply.ticket, now: context.now() }
  writeRows(context, work.resource, feed.table, items, written, feed.followUps)
  // One of the rejects may be a stored result, so rejects prevent a denial.
  const hasRejects = items.length < list.length
  const listed = new Set(items.map(({ cells }) => cells[0]))
  const verdict = hasRejects ? undefined : denyMissing(context, work, listed)
  if (verdict?.state === 'suspected') recheckAfter(context, work, verdict.askAgainMs)
  else if (list.length === 0) waitUntilReady(context, work)
  else readAgain(context, work, rereadPartAfterMs(context, task.sortAt))
}

/** The API has no results: not yet, or no longer. The meeting's detail shows whether the meeting still exists. */
function resultsAbsent(context: EngineContext, work: ItemWork): void {
  if (dropIfGone(context, work, { isRefused: true })) return
  askDetail(context, work)
  const verdict = denyMissing(context, work, new Set())
  if (verdict?.state === 'suspected') recheckAfter(context, work, verdict.askAgainMs)
  else waitUntilReady(context, work)
}

/** Denies stored results that the answer does not list. If one now needs a second denial, returns its verdict. */
function denyMissing(
  context: EngineContext,
  { feed, task }: ItemWork,
  listed: ReadonlySet<Cell | undefined>,
): Verdict | undefined {
  const stored = context.store.stored.liveIdsWith(feed.table, requestColumn(feed.table), task.key)
  const missing = stored.filter(id => !listed.has(id))
  const verdicts = missing.map(key => noteDenial(context, { table: feed.table, scope: '', key }))
  return verdicts.find(({ state }) => state === 'suspected')
}

/** The column that has the key of the request. */
function requestColumn(table: string): string {
  const columns = Object.entries(tableNamed(table).columns)
  const found = columns.find(([, { source }]) => source.from === 'request')
  if (!found) throw new TypeError(`${table} has no column with the key of the request`)
  return found[0]
}
