import { tableNamed } from '../../catalog/catalog.ts'
import type { Cell } from '../../catalog/parsed-item.ts'
import type { FollowUp } from '../../catalog/resource.ts'
import type { StoredItem } from '../../store/rows/write-items.ts'
import type { Store } from '../../store/store.ts'
import { feedNamed } from '../feeds.ts'

/** Whether the row that a feed reads is suspected, withheld or deleted. */
function isDenied({ stored, suspicions }: Store, feed: string, key: string): boolean {
  const row = { table: feedNamed(feed).feed.table, scope: '', key }
  const state = stored.state(row)
  return state === 'withheld' || state === 'deleted' || suspicions.find(row) !== undefined
}

export function writeTask(
  store: Store,
  followUp: FollowUp,
  table: string,
  { item, written }: StoredItem,
  now: string,
  addUrgent: (feed: string, key: string) => void,
): void {
  if (written.status === 'unchanged' || !followUp.on.includes(written.status)) return
  const columns = Object.entries(tableNamed(table).columns)
  const cell = (name: string): Cell => {
    const index = columns.findIndex(([column]) => column === name)
    const ours = columns[index]?.[1].source.from === 'parley'
    return item.cells[index] ?? (ours ? written.before?.[index] : null) ?? null
  }
  const met = Object.entries(followUp.when ?? {}).every(([name, values]) =>
    values.includes(String(cell(name))),
  )
  const key = cell(followUp.key)
  if (!met || typeof key !== 'string' || key === '') return
  const sortAt = followUp.sort === undefined ? null : (cell(followUp.sort) as string | null)
  // A denied row that another row now names may have come back, so it is read at once.
  const how = followUp.how === 'add' && isDenied(store, followUp.feed, key) ? 'demand' : followUp.how
  store.tasks[how]({ feed: followUp.feed, key, sortAt, dueAt: now })
  addUrgent(followUp.feed, key)
}
