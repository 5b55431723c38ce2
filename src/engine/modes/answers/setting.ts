import { readSingle } from '../../../api/paging.ts'
import type { ReadRequest } from '../../../catalog/resource.ts'
import { encodeJson } from '../../../json.ts'
import { quote } from '../../../store/database/sql.ts'
import type { RowKey } from '../../../store/deletions/suspicions.ts'
import { sameJson } from '../../../store/rows/rows.ts'
import type { EngineContext } from '../../context.ts'
import { noteDenial } from '../../deletions/denial.ts'
import { tableOfPart } from '../../deletions/part.ts'
import { DAY, WEEK } from '../../schedule/intervals.ts'
import { type ItemHandler, type ItemWork, readAgain, recheckAfter } from './work.ts'

/** The answer is a document of unknown shape, stored in one column of its playbook. */
export const settingAnswer: ItemHandler = { answer: storeSetting, absent: settingAbsent }

/** A setting is a part of its playbook and has separate suspicions. */
const partOf = ({ feed, task }: ItemWork): RowKey => ({ table: tableOfPart(feed), scope: '', key: task.key })

function storeSetting(context: EngineContext, work: ItemWork, value: unknown): void {
  const read = work.feed.read as ReadRequest
  context.counts(work.resource.name).rowsRead += 1
  context.store.suspicions.end(partOf(work))
  replaceSetting(context, work, encodeJson(readSingle(value, read.placement)))
  readAgain(context, work, WEEK)
}

function settingAbsent(context: EngineContext, work: ItemWork): void {
  if (storedSetting(context, work) === null) {
    readAgain(context, work, DAY)
    return
  }
  const verdict = noteDenial(context, partOf(work))
  if (verdict.state === 'suspected') {
    recheckAfter(context, work, verdict.askAgainMs)
    return
  }
  context.store.suspicions.end(partOf(work))
  replaceSetting(context, work, null)
  readAgain(context, work, DAY)
}

function storedSetting({ store }: EngineContext, { feed, task }: ItemWork): string | null {
  const find = store.prepare(`SELECT execution_setting FROM ${quote(feed.table)} WHERE id = ?`).pluck()
  return (find.get(task.key) ?? null) as string | null
}

function replaceSetting(context: EngineContext, work: ItemWork, setting: string | null): void {
  if (sameJson(storedSetting(context, work), setting)) return
  const update = context.store.prepare(
    `UPDATE ${quote(work.feed.table)} SET execution_setting = @setting, _synced_at = @now,
       _changed_at = iif(execution_setting IS NULL, _changed_at, @now)
     WHERE id = @key AND _deleted_at IS NULL`,
  )
  const { changes } = update.run({ setting, now: context.now(), key: work.task.key })
  context.counts(work.resource.name).rowsChanged += changes
}
