import { PAGING, readPage } from '../../api/paging.ts'
import { DAY, type EngineContext, WEEK } from '../context.ts'
import type { Reply } from '../job.ts'
import { keyOf } from '../snapshot.ts'
import { setbackError } from '../walk.ts'
import { type ItemHandler, type ItemWork, readAgain } from './work.ts'

/** The answer is the list of records that belong to the one asked for, perhaps in several pages. */
export const linksAnswer: ItemHandler = {
  plan: planLinks,
  params: ({ scope }) => ({ scope: scope.split('<')[0] ?? '' }),
  query: linksQuery,
  answer: storeLinks,
  absent: (context, work) => readAgain(context, work, DAY),
}

/** The three kinds of pairs, each stored once, in this direction. */
const LINKED_PAIRS = [
  ['deal', 'company'],
  ['deal', 'contact'],
  ['company', 'contact'],
] as const

/**
 * Each kind of pair is asked for from the side with fewer records. The task's scope is `listed<asking`: the object
 * whose list is filtered, and the one that the record asked for is of.
 */
function planLinks({ store, now }: EngineContext, id: string): void {
  const count = store
    .prepare('SELECT count(*) FROM crm_records WHERE object = ? AND _deleted_at IS NULL')
    .pluck()
  const size = new Map(['deal', 'company', 'contact'].map(object => [object, count.get(object) as number]))
  const scopes = LINKED_PAIRS.map(([one, other]) => {
    const [asking, listed] = (size.get(one) ?? 0) <= (size.get(other) ?? 0) ? [one, other] : [other, one]
    return { asking, listed, scope: `${listed}<${asking}` }
  })
  const add = store.prepare(
    `INSERT OR IGNORE INTO sync_tasks (feed, scope, key, sort_at, due_at)
     SELECT ?, ?, id, updated_at, ? FROM crm_records WHERE object = ? AND _deleted_at IS NULL`,
  )
  const drop = store.prepare(
    `DELETE FROM sync_tasks WHERE feed = ? AND scope = ? AND NOT EXISTS (
       SELECT 1 FROM crm_records r WHERE r.object = ? AND r.id = sync_tasks.key AND r._deleted_at IS NULL)`,
  )
  store
    .prepare('DELETE FROM sync_tasks WHERE feed = ? AND scope NOT IN (?, ?, ?)')
    .run(id, ...scopes.map(({ scope }) => scope))
  for (const { asking, scope } of scopes) {
    add.run(id, scope, now(), asking)
    drop.run(id, scope, asking)
  }
}

function linksQuery({ task, cursor }: ItemWork): Readonly<Record<string, string>> {
  return { related_id: task.key, limit: String(PAGING['v2-cursor'].maxLimit), ...cursor }
}

function storeLinks(context: EngineContext, work: ItemWork, value: unknown, reply: Reply): void {
  const { task, resource, feed } = work
  const page = readPage('v2-cursor', value, linksQuery(work))
  const keys = page.items.flatMap(item => keyOf(item, ['id']) ?? [])
  context.counts(resource.name).rowsRead += keys.length
  const gathered = [...new Set([...work.gathered, ...keys])]
  if (page.next !== null && work.asked.includes(page.next['cursor'] ?? '')) throw setbackError('repeated')
  if (page.next !== null) {
    work.more = true
    work.cursor = page.next
    work.asked.push(page.next['cursor'] ?? '')
    work.gathered = gathered
    return
  }
  if (context.store.freshness.admits(reply.ticket, feed.table, `${task.scope} ${task.key}`)) {
    replaceLinks(context, work, gathered)
  }
  readAgain(context, work, WEEK)
}

function replaceLinks(
  { store, counts }: EngineContext,
  { task, resource }: ItemWork,
  related: readonly string[],
): void {
  const [listed = '', asking = ''] = task.scope.split('<')
  const forward = LINKED_PAIRS.some(([from, to]) => from === asking && to === listed)
  const [object, relatedObject] = forward ? [asking, listed] : [listed, asking]
  const [mine, theirs] = forward ? ['record_id', 'related_id'] : ['related_id', 'record_id']
  const stored = store
    .prepare(`SELECT ${theirs} FROM crm_record_links WHERE object = ? AND related_object = ? AND ${mine} = ?`)
    .pluck()
    .all(object, relatedObject, task.key) as string[]
  const wanted = new Set(related)
  const known = new Set(stored)
  const remove = store.prepare(
    `DELETE FROM crm_record_links WHERE object = ? AND related_object = ? AND ${mine} = ? AND ${theirs} = ?`,
  )
  const add = store.prepare(
    `INSERT OR IGNORE INTO crm_record_links (object, related_object, ${mine}, ${theirs}) VALUES (?, ?, ?, ?)`,
  )
  const tally = counts(resource.name)
  for (const key of stored) {
    if (!wanted.has(key)) tally.rowsDeleted += remove.run(object, relatedObject, task.key, key).changes
  }
  for (const key of wanted) {
    if (!known.has(key)) tally.rowsChanged += add.run(object, relatedObject, task.key, key).changes
  }
}
