import { CATALOG } from '../../catalog/catalog.ts'
import type { StoredItem } from '../../store/store.ts'
import type { Lane } from './job.ts'

/** Feeds that read rows of a table one by one, by that table's name. */
const READS_ROWS_OF: ReadonlyMap<string, string> = new Map(
  CATALOG.flatMap(({ name, feeds }) =>
    Object.entries(feeds).flatMap(([feed, declared]) =>
      declared.mode === 'item' && declared.pending
        ? [[declared.pending.table, `${name}.${feed}`] as const]
        : [],
    ),
  ),
)

/** Of one feed; beyond it they have no turn before the others. */
const MOST_URGENT = 1000

export interface Urgent {
  /** Keys that an answer in the head lane has just told of, by the item feed that reads them. */
  keys: ReadonlyMap<string, Set<string>>
  /** Says in which lane the answers are that are applied within `work`. */
  inLane<T>(lane: Lane, work: () => T): T
  /** Has a key read next where the answer that is applied came in the head lane. */
  add(feed: string, key: string): void
  /** Has what reads the row one by one read it next, as `add` does, where the row is new. */
  addNewRow(table: string, entry: StoredItem): void
}

/**
 * What the newest end has just told of is read before all that waits. Kept in memory: each key also stands in the
 * database as a task or as a pending row, so that a restart loses only its turn.
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
