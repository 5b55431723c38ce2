import { isNullData, readSingle } from '../../../api/paging.ts'
import { DAY_MS } from '../../../base/clock.ts'
import { encodeJson } from '../../../base/json.ts'
import type { ReadRequest } from '../../../declare/resource.ts'
import type { RowKey } from '../../../store/deletions/suspicions.ts'
import { isSameJson } from '../../../store/rows/payload-writer.ts'
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
  if (storedSetting(context, work) === undefined) {
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

/** The row of the playbook, which has the setting in a column. */
const playbookOf = ({ feed, task }: ItemWork): RowKey => ({ table: feed.table, scope: '', key: task.key })

const storedSetting = ({ store }: EngineContext, work: ItemWork): string | undefined =>
  store.stored.valueOf(playbookOf(work), SETTING_COLUMN)

function replaceSetting(context: EngineContext, work: ItemWork, setting: string | null): void {
  if (isSameJson(storedSetting(context, work) ?? null, setting)) return
  const { rows } = context.store
  context.runs.counts(work.resource).rowsChanged += rows.replacePart(
    playbookOf(work),
    SETTING_COLUMN,
    setting,
    context.now(),
  )
}
