import { decodeJson } from '../../base/json.ts'
import { canonicalId, isUuid } from '../../base/uuid.ts'
import { columnAt } from '../../catalog/catalog.ts'
import { type DeclaredFeed, ITEM_FEEDS, LISTS } from '../../catalog/feeds.ts'
import type { Cell } from '../../declare/parsed-item.ts'
import type { SnapshotFeed } from '../../declare/resource.ts'
import type { StoredItem } from '../../store/rows/write-items.ts'
import type { EngineContext } from '../context/context.ts'
import { scaled, usualIntervalMs } from '../context/intervals.ts'
import { wantList } from '../due/wants.ts'
import { changedFeed, lastListedAt } from './changed-records.ts'

/** The most references to follow, one after another, from a record that changed. */
const MOST_STEPS = 3

/** A record that was read because its change was announced, or because such a record points at it. */
export interface ChangedRecord {
  object: string
  entry: StoredItem
  /** References followed from the record whose change was announced; 0 for that record itself. */
  step: number
}

/**
 * Writes tasks for the records that a changed record points at, if they are not stored. If the record points at a row
 * of another resource, and this row is not stored, the list of that resource becomes due at once.
 */
export function followRelations(
  context: EngineContext,
  { id: list, feed }: DeclaredFeed<SnapshotFeed>,
  { object, entry, step }: ChangedRecord,
): void {
  const { changes } = feed
  if (!changes || entry.written.status === 'unchanged') return
  const at = columnAt(feed.table, changes.values)
  const values = valuesOf(entry.item.cells[at])
  const before = valuesOf(entry.written.before?.[at])
  for (const { name, target } of context.store.relations(object)) {
    const value = values.get(name)
    if (!target || typeof value !== 'string' || value === '') continue
    // The values of a record are stored as they are sent, but ids are stored in canonical form.
    const id = canonicalId(value)
    const rowsList = listOf(target.resource)
    if (rowsList) {
      // Former members are on no list; without this check each change of their records would trigger a re-read.
      if (value !== before.get(name) && !context.store.stored.has(rowsList.feed.table, [id]))
        wantList(context, rowsList.id)
    } else if (target.object !== null && isUuid(id) && step < MOST_STEPS) {
      if (lastListedAt(context, list, target.object) === null) continue
      if (context.store.stored.has(feed.table, [target.object, id])) continue
      // A task without an event time has no retries, so its `attempts` counts steps.
      const task = { feed: changedFeed(list), scope: target.object, key: id }
      context.store.tasks.add({ ...task, dueAt: context.store.dueClock.after(0), attempts: step + 1 })
    }
  }
}

/**
 * In the daemon, makes the metadata of an object due at once when a changed record has a field that the metadata does
 * not name, as after a change in the CRM. Records may have such fields always. So this counts again only after as long
 * as between two reads of their list.
 */
export function demandUnknownFields(
  { store, schedule, options }: EngineContext,
  { feed }: DeclaredFeed<SnapshotFeed>,
  object: string,
  entries: readonly StoredItem[],
): void {
  const metadata = ITEM_FEEDS.find(
    item => item.feed.stores === 'row' && item.feed.table === feed.scope?.table,
  )
  if (!schedule.isTimed || !feed.changes || !metadata) return
  const changed = entries.filter(({ written }) => written.status !== 'unchanged')
  if (changed.length === 0) return
  const key = { feed: metadata.id, key: object }
  const earliest = store.dueClock.after(-scaled(usualIntervalMs(feed), options))
  if ((store.tasks.find(key)?.namedAt ?? '') > earliest) return
  const known = new Set(store.crmFields(object).map(({ name }) => name))
  if (known.size === 0) return
  const at = columnAt(feed.table, feed.changes.values)
  const hasUnknown = ({ item }: StoredItem) =>
    [...valuesOf(item.cells[at]).keys()].some(name => !known.has(name))
  const now = store.dueClock.after(0)
  if (changed.some(hasUnknown)) store.tasks.demand({ ...key, dueAt: now, namedAt: now })
}

/** The list without scopes that shows all rows of a resource; undefined when there is none. */
function listOf(resource: string | null): DeclaredFeed | undefined {
  const lists = LISTS.filter(list => list.resource === resource)
  return lists.find(({ feed }) => feed.mode === 'snapshot' && feed.lists === 'rows' && !feed.scope)
}

function valuesOf(cell: Cell | undefined): ReadonlyMap<string, unknown> {
  const value = typeof cell === 'string' ? decodeJson(cell).value : null
  return new Map(typeof value === 'object' && value !== null ? Object.entries(value) : [])
}
