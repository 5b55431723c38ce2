import { CATALOG, tableNamed } from '../../catalog/catalog.ts'
import type { SnapshotFeed } from '../../catalog/resource.ts'
import type { Cell } from '../../catalog/row.ts'
import { decodeJson } from '../../json.ts'
import { quote } from '../../store/database/sql.ts'
import type { StoredItem } from '../../store/store.ts'
import type { EngineContext } from '../context.ts'
import { isUuid } from '../parse/uuid.ts'
import { changedFeed, isKnown, lastListed } from './changed-records.ts'

/** From a record that changed to one that it points at, and from there on: so many steps. */
const MOST_STEPS = 3

/** A record that was stored because something said that it changed. */
export interface ChangedRecord {
  object: string
  entry: StoredItem
  /** Steps from the record that the news was about. */
  step: number
}

/** Has new records that changed ones point at read too, and the list of another resource where they are on that. */
export function followRelations(
  context: EngineContext,
  list: string,
  feed: SnapshotFeed,
  { object, entry, step }: ChangedRecord,
): void {
  const { changes } = feed
  if (!changes || entry.written.status === 'unchanged') return
  const columns = Object.keys(tableNamed(feed.table).columns)
  const at = columns.indexOf(changes.values)
  const values = valuesOf(entry.item.cells[at])
  const before = valuesOf(entry.written.before?.[at])
  // A task of this kind has no event, so that what counts attempts elsewhere counts its steps.
  const add = context.store.prepare(
    'INSERT OR IGNORE INTO sync_tasks (feed, scope, key, due_at, attempts) VALUES (?, ?, ?, ?, ?)',
  )
  for (const { name, targetObject, targetResource } of relationsOf(context, changes.relations, object)) {
    const value = values.get(name)
    if (typeof value !== 'string' || value === '') continue
    const rowsList = listOf(targetResource)
    if (rowsList) {
      // Who has left is on no list, and would have it read at every change of what once was theirs.
      if (value !== before.get(name) && !isKnown(context, rowsList.table, [value]))
        context.wishes.add(rowsList.id)
    } else if (targetObject !== null && isUuid(value) && step < MOST_STEPS) {
      const id = value.toLowerCase()
      if (lastListed(context, list, targetObject) === null) continue
      if (isKnown(context, feed.table, [targetObject, id])) continue
      add.run(changedFeed(list), targetObject, id, context.now(), step + 1)
    }
  }
}

interface Relation {
  name: string
  targetObject: string | null
  targetResource: string | null
}

function relationsOf(
  { store }: EngineContext,
  declared: NonNullable<SnapshotFeed['changes']>['relations'],
  object: string,
): Relation[] {
  const { table, where, name, targetObject, targetResource } = declared
  const select = store.prepare(
    `SELECT ${quote(name)} AS name, ${quote(targetObject)} AS targetObject, ${quote(targetResource)} AS targetResource
     FROM ${quote(table)} WHERE ${quote(declared.object)} = ? AND ${where}`,
  )
  return select.all(object) as Relation[]
}

/** The list that shows all rows of a resource by a key of their own. */
function listOf(resource: string | null): { id: string; table: string } | undefined {
  const declared = CATALOG.find(({ name }) => name === resource)
  for (const [name, feed] of Object.entries(declared?.feeds ?? {})) {
    if (feed.mode !== 'snapshot' || feed.lists !== 'rows' || feed.scope) continue
    return { id: `${resource}.${name}`, table: feed.table }
  }
  return undefined
}

function valuesOf(cell: Cell | undefined): ReadonlyMap<string, unknown> {
  const value = typeof cell === 'string' ? decodeJson(cell).value : null
  return new Map(typeof value === 'object' && value !== null ? Object.entries(value) : [])
}
