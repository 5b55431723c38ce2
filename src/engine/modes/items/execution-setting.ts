import { isNullData, readSingle } from '../../../api/paging.ts'
import { DAY_MS } from '../../../base/clock.ts'
import { encodeJson } from '../../../base/json.ts'
import type { ReadRequest } from '../../../declare/resource.ts'
import type { PartColumn } from '../../../store/rows/part-columns.ts'
import { sameJson } from '../../../store/rows/payload-writer.ts'
import type { EngineContext } from '../../context/context.ts'
import { WEEK_MS } from '../../context/intervals.ts'
import { noteDenial } from '../../deletions/denial.ts'
import { SETTING_COLUMN } from '../../deletions/row-parts.ts'
import { type ItemHandler, type ItemWork, readAgain, recheckAfter, rowOf } from './item-handler.ts'

/** The answer is a document of unknown shape, stored in one column of its playbook. */
export const settingAnswer: ItemHandler = { answer: storeSetting, absent: settingAbsent }

function storeSetting(context: EngineContext, work: ItemWork, value: unknown): void {
  if (isNullData(value)) {
    settingAbsent(context, work)
    return
  }
  const read = work.feed.read as ReadRequest
  context.runs.counts(work.resource).rowsRead += 1
  context.store.suspicions.end(rowOf(work))
  replaceSetting(context, work, encodeJson(readSingle(value, read.placement)))
  readAgain(context, work, WEEK_MS)
}

function settingAbsent(context: EngineContext, work: ItemWork): void {
  if (context.store.parts.get(columnOf(work)) === null) {
    readAgain(context, work, DAY_MS)
    return
  }
  const verdict = noteDenial(context, rowOf(work))
  if (verdict.state === 'suspected') {
    recheckAfter(context, work, verdict.askAgainMs)
    return
  }
  context.store.suspicions.end(rowOf(work))
  replaceSetting(context, work, null)
  readAgain(context, work, DAY_MS)
}

/** The column that has the setting, in the playbook's row. */
const columnOf = ({ feed, task }: ItemWork): PartColumn => ({
  table: feed.table,
  column: SETTING_COLUMN,
  id: task.key,
})

function replaceSetting(context: EngineContext, work: ItemWork, setting: string | null): void {
  const { parts } = context.store
  const part = columnOf(work)
  if (sameJson(parts.get(part), setting)) return
  context.runs.counts(work.resource).rowsChanged += parts.replace(part, setting, context.now())
}
