import { tableNamed } from '../../catalog.ts'
import { quote } from '../../store/sql.ts'
import { DAY, type EngineContext, WEEK } from '../context.ts'
import type { Reply } from '../job.ts'
import {
  type ItemHandler,
  type ItemWork,
  readAgain,
  recordOf,
  rereadAfter,
  waitFor,
  whereOf,
} from './work.ts'

/** The answer is the whole payload of the row that was asked for: meetings, playbooks, CRM objects. */
export const rowAnswer: ItemHandler = { answer: storeRow, absent: rowAbsent }

function storeRow(context: EngineContext, work: ItemWork, value: unknown, reply: Reply): void {
  const { feed, task } = work
  const where = whereOf(work)
  const item = context.parser(feed.table)(recordOf(work, value), context.report(where, task.key))
  if (!item) {
    readAgain(context, work, DAY)
    return
  }
  const columns = Object.keys(tableNamed(feed.table).columns)
  const access = columns.indexOf('access')
  if (access >= 0) item.cells[access] = 'open'
  const filled = access >= 0 ? ['access'] : []
  context.write(where, feed.table, [item], { ticket: reply.ticket, now: context.now(), filled }, feed.causes)
  const ready = !feed.readyWhen || item.cells[columns.indexOf(feed.readyWhen.column)] === feed.readyWhen.is
  if (ready) readAgain(context, work, rereadAfter(context, task.sortAt))
  else waitFor(context, work)
}

function rowAbsent(context: EngineContext, work: ItemWork, meaning: 'absent' | 'withheld'): void {
  if (meaning === 'withheld') {
    withhold(context, work)
    return
  }
  const { feed, task } = work
  const key = quote(tableNamed(feed.table).key.at(-1) ?? '')
  const live = context.store
    .prepare(`SELECT 1 FROM ${quote(feed.table)} WHERE ${key} = ? AND _deleted_at IS NULL`)
    .get(task.key)
  if (live) {
    context.store.absences.confirm(feed.table, '', task.key, context.now())
    dropParts(context, work)
    readAgain(context, work, WEEK)
  } else if (isStored(context, work)) {
    // Gone for good, as far as is known: a list or an activity that names it again brings the task back.
    context.store.tasks.remove(task)
  } else if (feed.readyWhen) {
    // Known by name only: it may be published later.
    waitFor(context, work)
  } else readAgain(context, work, DAY)
}

function isStored({ store }: EngineContext, { feed, task }: ItemWork): boolean {
  const key = quote(tableNamed(feed.table).key.at(-1) ?? '')
  return store.prepare(`SELECT 1 FROM ${quote(feed.table)} WHERE ${key} = ?`).get(task.key) !== undefined
}

/** What hangs on a row that is not to be read is not asked for either; its next change brings it back. */
function dropParts({ store }: EngineContext, { feed, task }: ItemWork): void {
  for (const cause of feed.causes ?? []) store.tasks.remove({ feed: cause.feed, key: task.key })
}

/** 403 on a meeting: it is known to be there, and no more. */
function withhold(context: EngineContext, work: ItemWork): void {
  const { feed, task } = work
  const { store } = context
  const now = context.now()
  const changed = store
    .prepare(
      `INSERT INTO ${quote(feed.table)} (id, access, transcript_state, _first_seen_at, _synced_at)
       VALUES (@key, 'withheld', 'withheld', @now, @now)
       ON CONFLICT DO UPDATE SET access = 'withheld', transcript_state = 'withheld', _synced_at = @now,
         _changed_at = iif(access = 'open', @now, _changed_at), _deleted_at = NULL
       WHERE access IS NOT 'withheld' OR _deleted_at IS NOT NULL`,
    )
    .run({ key: task.key, now }).changes
  context.counts(work.resource.name).rowsChanged += changed
  if (changed > 0) store.withdrawals.note(feed.table, [task.key], now)
  const results = store.prepare(
    'SELECT id FROM playbook_results WHERE meeting_id = ? AND _deleted_at IS NULL',
  )
  for (const { id } of results.all(task.key) as { id: string }[]) {
    store.absences.confirm('playbook_results', '', id, now)
  }
  dropParts(context, work)
  readAgain(context, work, rereadAfter(context, task.sortAt))
}
