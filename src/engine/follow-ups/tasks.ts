import { tableNamed } from '../../catalog/catalog.ts'
import type { Cause } from '../../catalog/resource.ts'
import type { Cell } from '../../catalog/row.ts'
import type { Store, StoredItem } from '../../store/store.ts'
import { feedNamed } from '../feeds.ts'

function isDoubted({ rowState, suspicions }: Store, feed: string, key: string): boolean {
  const row = { table: feedNamed(feed).feed.table, scope: '', key }
  const state = rowState(row)
  return state === 'withheld' || state === 'deleted' || suspicions.find(row) !== undefined
}

export function followCause(
  store: Store,
  cause: Cause,
  table: string,
  { item, written }: StoredItem,
  now: string,
  caused: (feed: string, key: string) => void,
): void {
  if (written.status === 'unchanged' || !cause.on.includes(written.status)) return
  const columns = Object.entries(tableNamed(table).columns)
  const cell = (name: string): Cell => {
    const index = columns.findIndex(([column]) => column === name)
    const ours = columns[index]?.[1].source.from === 'parley'
    return item.cells[index] ?? (ours ? written.before?.[index] : null) ?? null
  }
  const met = Object.entries(cause.when ?? {}).every(([name, values]) => values.includes(String(cell(name))))
  const key = cell(cause.key)
  if (!met || typeof key !== 'string' || key === '') return
  const sortAt = cause.sort === undefined ? null : (cell(cause.sort) as string | null)
  // A row that is suspected, withheld or deleted is shown again by what names it.
  const how = cause.how === 'add' && isDoubted(store, cause.feed, key) ? 'demand' : cause.how
  store.tasks[how]({ feed: cause.feed, key, sortAt, dueAt: now })
  caused(cause.feed, key)
}
