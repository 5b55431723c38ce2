import { isoInstant, MINUTE_MS } from '../../base/clock.ts'
import { isUuid } from '../../base/uuid.ts'
import { columnAt } from '../../catalog/catalog.ts'
import { feedNamed } from '../../catalog/feeds.ts'
import type { ParsedItem, ParsedRow, ReadCell } from '../../declare/parsed-item.ts'
import type { ItemFeed, RecordFollowUp, SnapshotFeed } from '../../declare/resource.ts'
import type { StoredItem } from '../../store/rows/write-items.ts'
import type { EngineContext } from '../context/context.ts'
import { isOffered } from '../modes/refused-scope.ts'
import { type Direction, directionsFrom, directionsOf, isPlanned, scopeOf } from './associations.ts'

/**
 * Writes tasks that read changed records before their list is read again. A stored row that points at a record, such as
 * an activity, announces that the record has changed. The tasks are written in the transaction that stores the row.
 */

/** The feed of tasks for changed rows of a snapshot. A task's scope is the object, its key the id. */
export function changedFeed(list: string): string {
  return `${list}.changed`
}

interface RecordRef {
  object: string
  id: string
}

/** Writes the tasks for the records that a stored row refers to. */
export function writeRecordTasks(
  context: EngineContext,
  followUp: RecordFollowUp,
  cell: ReadCell,
  { item, written }: StoredItem,
): void {
  const { resource, feed } = feedNamed(followUp.feed)
  const at = cell(followUp.at)
  const reference: DueFollowUp = { followUp, at: typeof at === 'string' ? at : null, item, cell }
  if (feed.mode === 'snapshot') demandChanged(context, reference, feed)
  else if (feed.mode === 'item' && feed.associations) {
    // Until the resource was complete once, all associations are read anyway, except perhaps those of a revived record.
    if (written.status !== 'revived' && !context.rounds.wasComplete(resource)) return
    demandAssociations(context, reference, feed, feed.associations)
  }
}

interface DueFollowUp {
  followUp: RecordFollowUp
  at: string | null
  item: ParsedItem
  cell: ReadCell
}

function demandChanged(
  context: EngineContext,
  { followUp, at, item, cell }: DueFollowUp,
  feed: SnapshotFeed,
): void {
  for (const { object, id } of referencedRecords(followUp, cell, item)) {
    if (!isNewerThanList(context, { list: followUp.feed, table: feed.table }, { object, id }, at)) continue
    const task = { feed: changedFeed(followUp.feed), scope: object, key: id }
    context.store.tasks.announce({ ...task, sortAt: at, dueAt: context.store.dueClock.after(0) })
  }
}

/**
 * Writes tasks that request associations from the record's side. The answer shows all associations of the record, so
 * removed ones are noticed.
 */
function demandAssociations(
  context: EngineContext,
  { followUp, at, item, cell }: DueFollowUp,
  feed: ItemFeed,
  { of, kinds }: NonNullable<ItemFeed['associations']>,
): void {
  const records = { list: of, table: feedNamed(of).feed.table }
  const named = referencedRecords(followUp, cell, item)
  const wanted: readonly (readonly [RecordRef, readonly Direction[]])[] = followUp.records.unassociatedOnly
    ? unassociated(context, feed, kinds, named)
    : named.map(one => [one, directionsFrom(kinds, one.object)])
  for (const [one, directions] of wanted) {
    if (followUp.records.child !== undefined && !isNewerThanList(context, records, one, at)) continue
    // Skips lists of an object that is not offered. Once the object is offered, its records are new and get tasks. A
    // planned direction is not skipped: a plan adds tasks only for records that are stored for the first time, so no
    // later plan would add one for a record that comes back while the other object is not offered.
    const isAskable = (direction: Direction) =>
      isOffered(context, { list: of, scope: direction.listed }) ||
      isPlanned(context.store, followUp.feed, direction)
    for (const direction of directions.filter(isAskable)) {
      const task = { feed: followUp.feed, scope: scopeOf(direction), key: one.id }
      context.store.tasks.demand({ ...task, sortAt: at, dueAt: context.store.dueClock.after(0) })
    }
  }
}

/** Records that are named together but have no stored association, each with the direction that would show it. */
function unassociated(
  { store }: EngineContext,
  feed: ItemFeed,
  kinds: NonNullable<ItemFeed['associations']>['kinds'],
  named: readonly RecordRef[],
): [RecordRef, Direction[]][] {
  return kinds.flatMap(kind => {
    const [from, to] = kind.map(object => named.filter(one => one.object === object))
    const [mine, theirs] = directionsOf(kind)
    return (from ?? []).flatMap(one =>
      (to ?? []).flatMap((other): [RecordRef, Direction[]][] =>
        store.stored.has(feed.table, [one.object, one.id, other.object, other.id])
          ? []
          : [
              [one, [mine]],
              [other, [theirs]],
            ],
      ),
    )
  })
}

/** The records that a row points at, each once, without ids that the API would refuse. */
function referencedRecords({ records }: RecordFollowUp, cell: ReadCell, item: ParsedItem): RecordRef[] {
  const rows = records.child === undefined ? [cell] : childRows(records.child, item)
  const meant = rows.filter(cell =>
    Object.entries(records.prefer ?? {}).every(([name, value]) => cell(name) === value),
  )
  const named = (meant.length > 0 ? meant : rows).flatMap(cell => {
    const [object, id] = [cell(records.object), cell(records.key)]
    return typeof object === 'string' && typeof id === 'string' && isUuid(id) ? [{ object, id }] : []
  })
  return [...new Map(named.map(one => [`${one.object}\u0000${one.id}`, one])).values()]
}

function childRows(child: string, { children }: ParsedItem): ReadCell[] {
  const reader =
    ({ cells }: ParsedRow): ReadCell =>
    column =>
      cells[columnAt(child, column)] ?? null
  return (children.get(child) ?? []).map(reader)
}

/**
 * The API may show a change this long after the event that names it, so a list that was read meanwhile lacks the
 * change.
 */
const PUBLISHED_WITHIN_MS = 15 * MINUTE_MS

/**
 * Whether a record may have changed since its list was last read: the event is newer or little older, or the record is
 * not stored. Both times are by the server's clock. False for a list that was never read, since its first pass will
 * show the record.
 */
function isNewerThanList(
  context: EngineContext,
  { list, table }: { list: string; table: string },
  record: RecordRef,
  at: string | null,
): boolean {
  const listedAt = lastListedAt(context, list, record.object)
  if (listedAt === null) return false
  const mayBeLater = at !== null && at > isoInstant(Date.parse(listedAt) - PUBLISHED_WITHIN_MS)
  return mayBeLater || !context.store.stored.has(table, [record.object, record.id])
}

export function lastListedAt({ store }: EngineContext, list: string, scope: string): string | null {
  const [pass] = store.segments.of(list, scope)
  return pass?.listedAt ?? null
}
