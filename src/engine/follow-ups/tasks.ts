import { feedNamed } from '../../catalog/feeds.ts'
import type { ReadCell } from '../../declare/parsed-item.ts'
import type { FollowUp } from '../../declare/resource.ts'
import type { Store } from '../../store/store.ts'

/** Whether the row that a feed reads is suspected, withheld or deleted. */
function isDenied({ stored, suspicions }: Store, feed: string, key: string): boolean {
  const row = { table: feedNamed(feed).feed.table, scope: '', key }
  const state = stored.state(row)
  return state === 'withheld' || state === 'deleted' || suspicions.find(row) !== undefined
}

export function writeTask(
  store: Store,
  followUp: FollowUp,
  cell: ReadCell,
  now: string,
  addUrgent: (feed: string, key: string) => void,
): void {
  const key = cell(followUp.key)
  if (typeof key !== 'string' || key === '') return
  const sortAt = followUp.sort === undefined ? null : (cell(followUp.sort) as string | null)
  // A denied row that another row now names may have come back, so it is read at once.
  const how = followUp.how === 'add' && isDenied(store, followUp.feed, key) ? 'demand' : followUp.how
  store.tasks[how]({ feed: followUp.feed, key, sortAt, dueAt: now })
  addUrgent(followUp.feed, key)
}
