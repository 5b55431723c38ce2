import { readSingle } from '../../api/paging.ts'
import { encodeJson } from '../../json.ts'
import type { ReadRequest } from '../../resource.ts'
import { sameJson } from '../../store/rows.ts'
import { quote } from '../../store/sql.ts'
import { DAY, type EngineContext, WEEK } from '../context.ts'
import { type ItemHandler, type ItemWork, readAgain } from './work.ts'

/** The answer is a document of unknown shape, kept in one column of its playbook. */
export const settingAnswer: ItemHandler = {
  answer: storeSetting,
  absent: (context, work) => readAgain(context, work, DAY),
}

function storeSetting(context: EngineContext, work: ItemWork, value: unknown): void {
  const { feed, task } = work
  const read = feed.read as ReadRequest
  const setting = encodeJson(readSingle(value, read.placement))
  const table = quote(feed.table)
  const counts = context.counts(work.resource.name)
  counts.rowsRead += 1
  const stored = context.store
    .prepare(`SELECT execution_setting FROM ${table} WHERE id = ?`)
    .pluck()
    .get(task.key)
  if (!sameJson((stored ?? null) as string | null, setting)) {
    const update = context.store.prepare(
      `UPDATE ${table} SET execution_setting = @setting, _synced_at = @now,
         _changed_at = iif(execution_setting IS NULL, _changed_at, @now)
       WHERE id = @key AND _deleted_at IS NULL`,
    )
    counts.rowsChanged += update.run({ setting, now: context.now(), key: task.key }).changes
  }
  readAgain(context, work, WEEK)
}
