import { ITEM_FEEDS } from '../../catalog/feeds.ts'
import type { StoredItem } from '../../store/rows/write-items.ts'
import type { Lane } from './job.ts'

/** By table, the feed that reads its rows one by one. */
const READS_ROWS_OF: ReadonlyMap<string, string> = new Map(
  ITEM_FEEDS.flatMap(({ id, feed: { pending } }) => (pending ? [[pending.table, id] as const] : [])),
)

/** Urgent keys per feed. Further keys are read in the usual order. */
const MOST_URGENT = 1000

export interface Urgent {
  /** Keys from recent answers of the head lane, by the item feed that reads them. */
  keys: ReadonlyMap<string, Set<string>>
  /** Sets the lane of the answer that `work` applies. */
  inLane<T>(lane: Lane, work: () => T): T
  /** Makes a key urgent if the answer came in the head lane. */
  add(feed: string, key: string): void
  /** Makes a new row urgent for the feed that reads it, under the same condition. */
  addNewRow(table: string, entry: StoredItem): void
}

/**
 * Keys from the newest end are read before all others. They are kept in memory only: each is also in the database as a
 * task or a pending row, so a restart loses only its priority.
 */
export function createUrgent(): Urgent {
  const keys = new Map<string, Set<string>>()
  let lane: Lane | undefined
  const addKey = (feed: string, key: string) => {
    const known = keys.get(feed) ?? new Set()
    if (known.size < MOST_URGENT) keys.set(feed, known.add(key))
  }
  return {
    keys,
    inLane(which, work) {
      lane = which
      try {
        return work()
      } finally {
        lane = undefined
      }
    },
    add(feed, key) {
      if (lane === 'head') addKey(feed, key)
    },
    addNewRow(table, { item, written }) {
      const feed = READS_ROWS_OF.get(table)
      if (lane !== 'head' || feed === undefined || written.status !== 'inserted') return
      const [key] = item.cells
      if (typeof key === 'string') addKey(feed, key)
    },
  }
}
