import { MAX_LIMITS, readPage } from '../../../api/paging.ts'
import { DAY_MS, HOUR_MS } from '../../../base/clock.ts'
import { UUID_GLOB } from '../../../base/uuid.ts'
import { feedNamed } from '../../../catalog/feeds.ts'
import type { ItemFeed } from '../../../declare/resource.ts'
import type { ResourceName } from '../../../declare/resource-names.ts'
import { keyValuesOf, type RowKey } from '../../../store/deletions/suspicions.ts'
import type { AssociationsOfRecord } from '../../../store/rows/links.ts'
import type { Store } from '../../../store/store.ts'
import type { TasksOfRecords } from '../../../store/sync/tasks/association-tasks.ts'
import type { TaskKey } from '../../../store/sync/tasks/task.ts'
import type { EngineContext } from '../../context/context.ts'
import { WEEK_MS } from '../../context/intervals.ts'
import type { Batches, Reply } from '../../context/job.ts'
import { CONFIRM_AFTER_MS } from '../../deletions/deletion-states.ts'
import { noteDenial } from '../../deletions/denial.ts'
import {
  type AssociationKind,
  type AssociationPlan,
  type Direction,
  directionOf,
  directionsOf,
  isForward,
  isPlanned,
  lastPlan,
  opposite,
  savePlan,
  scopeOf,
} from '../../follow-ups/associations.ts'
import { keyOf } from '../../parse/key.ts'
import { byRange } from '../../scheduler/batch-plan.ts'
import { requireProgress } from '../page-guard.ts'
import type { ScopeList } from '../refused-scope.ts'
import { type ItemHandler, type ItemWork, readAgain, recheckAfter, rejectScope } from './item-handler.ts'

/**
 * The answer is the list of records associated with the requested record, perhaps in several pages. For each kind of
 * association, the plan chooses the object whose records are all requested at intervals. A changed record of the other
 * object is requested once, and again each week while an item of its answer cannot be stored.
 */
export const linksAnswer: ItemHandler = {
  plan: planLinks,
  params: ({ scope }) => ({ scope: directionOf(scope).listed }),
  list: scopeListOf,
  query: linksQuery,
  answer: storeLinks,
  absent: (context, work) => readAgain(context, work, DAY_MS),
  taskOf: linkTask,
}

// ----------------------------------------------------------------------------------------------- plan

/**
 * The direction changes only when the object `asking` has more than this many times the records of the object `listed`:
 * after a change, all records are read again.
 */
const MUCH_LARGER = 2

/**
 * Writes the tasks of each kind of association, in the direction that needs fewer requests. The cost depends only on
 * the records that were added or deleted since the last plan. The new plan is stored at the end, so a run that was
 * interrupted plans again. Records that are added or deleted during the plan wait for the next one.
 */
function* planLinks(context: EngineContext, id: string): Batches {
  const { store, now, schedule } = context
  const { associationTasks } = store
  const { table, kinds } = declaredAssociations(id)
  const last = lastPlan(store, id)
  const at = now()
  const upTo = store.stored.newestId(table)
  const sizes = yield* grownSizes(store, table, last, upTo)
  const directions = kinds.map(kind => chooseDirection(kind, sizes, last.scopes))
  const scopes = directions.map(scopeOf)
  const tasksOf = (direction: Direction): TasksOfRecords => ({
    feed: id,
    scope: scopeOf(direction),
    records: table,
    object: direction.asking,
  })
  for (const direction of directions) {
    const after = last.scopes.includes(scopeOf(direction)) ? last.upTo : 0
    // The API refuses an id that is no UUID (spec: related_id).
    yield* byRange(after, upTo, range =>
      associationTasks.addRange(tasksOf(direction), range, {
        keys: UUID_GLOB,
        dueAt: store.dueClock.after(0),
      }),
    )
  }
  for (const direction of kinds.flatMap(directionsOf))
    associationTasks.removeDeleted(tasksOf(direction), last.at)
  for (const direction of directions.map(opposite)) {
    const scope = scopeOf(direction)
    // This direction is not chosen. In the daemon, its tasks are for changed records and stay, unless the last plan
    // chose it. A backfill removes its tasks, since it reads all associations in the opposite, chosen direction.
    if (schedule.isTimed && !last.scopes.includes(scope)) continue
    while (associationTasks.removeSome({ feed: id, scope }, REMOVED_AT_ONCE)) yield
  }
  savePlan(store, id, { upTo, at, sizes, scopes })
}

const REMOVED_AT_ONCE = 5000

function declaredAssociations(id: string): { table: string; kinds: readonly AssociationKind[] } {
  const { feed } = feedNamed(id)
  if (feed.mode !== 'item' || !feed.associations) throw new TypeError(`${id} declares no associations`)
  return { table: feedNamed(feed.associations.of).feed.table, kinds: feed.associations.kinds }
}

function* grownSizes(
  { associationTasks }: Store,
  table: string,
  { upTo: after, sizes }: AssociationPlan,
  upTo: number,
): Generator<undefined, Record<string, number>, undefined> {
  const all = { ...sizes }
  yield* byRange(after, upTo, range => {
    for (const [object, rows] of associationTasks.countByObject(table, range))
      all[object] = (all[object] ?? 0) + rows
  })
  return all
}

function chooseDirection(
  kind: AssociationKind,
  sizes: Readonly<Record<string, number>>,
  asked: readonly string[],
): Direction {
  const size = (object: string) => sizes[object] ?? 0
  const directions = directionsOf(kind)
  const kept = directions.find(direction => asked.includes(scopeOf(direction)))
  if (kept && size(kept.asking) <= MUCH_LARGER * size(kept.listed)) return kept
  const [first, second] = directions
  return size(first.asking) <= size(first.listed) ? first : second
}

// --------------------------------------------------------------------------------------------- answer

function scopeListOf({ feed, task }: ItemWork): ScopeList {
  const of = feed.associations?.of ?? ''
  return { list: of, feed: feedNamed(of).feed, scope: directionOf(task.scope).listed }
}

function linksQuery({ task, cursor }: ItemWork): Readonly<Record<string, string>> {
  return { related_id: task.key, limit: String(MAX_LIMITS['v2-cursor']), ...cursor }
}

function storeLinks(context: EngineContext, work: ItemWork, value: unknown, reply: Reply): void {
  const page = readPage('v2-cursor', value, linksQuery(work))
  const report = context.parsing.report(work, rejectScope(work.task))
  const keys = page.items.flatMap(item => {
    const key = recordId(item)
    if (key === undefined) report.reject(work.feed.table, item, 'no identity: id is missing')
    return key === undefined ? [] : [key]
  })
  work.hasRejects ||= keys.length < page.items.length
  context.runs.counts(work.resource).rowsRead += keys.length
  const gathered = [...new Set([...work.gathered, ...keys])]
  requireProgress(work.guard, { next: page.next, hasNew: gathered.length > work.gathered.length })
  if (page.next !== null) {
    if (work.ticket === undefined) {
      work.ticket = reply.ticket
      context.store.freshness.prolong(reply.ticket)
    }
    work.more = true
    work.cursor = page.next
    work.gathered = gathered
    return
  }
  const replaced = replaceLinks(context, work, gathered, work.ticket ?? reply.ticket)
  if (replaced) askNext(context, work, replaced.askAgainMs)
}

/** The spec shows this list's items as objects, so a bare string is no item. */
function recordId(item: unknown): string | undefined {
  return typeof item === 'string' ? undefined : keyOf(item, ['id'])
}

function askNext(context: EngineContext, work: ItemWork, askAgainMs: number | undefined): void {
  const { store } = context
  const { task, id } = work
  if (askAgainMs !== undefined) recheckAfter(context, work, askAgainMs)
  // A reject is resolved by the next answer for the same record.
  else if (work.hasRejects || isPlanned(store, id, directionOf(task.scope))) readAgain(context, work, WEEK_MS)
  else store.tasks.remove(task)
}

/**
 * Stores the associations of a record as the answer lists them. An association that the answer does not list becomes
 * suspected, and `askAgainMs` says when the next answer can confirm that. The answers for both records show an
 * association. If the answer to a later request for the other record is already stored, the association stays as it is.
 * Returns undefined when a later answer for this record is already stored, or when this record is deleted.
 */
function replaceLinks(
  context: EngineContext,
  work: ItemWork,
  related: readonly string[],
  ticket: number,
): { askAgainMs: number | undefined } | undefined {
  const { store, runs } = context
  const { task, feed, resource } = work
  const { freshness } = store
  if (!freshness.admits(ticket, feed.table, `${task.scope} ${task.key}`)) return undefined
  const { listed, asking } = directionOf(task.scope)
  const isGone = (object: string, id: string) => isDeletedRecord(store, feed, object, id)
  if (isGone(asking, task.key)) {
    store.tasks.remove(task)
    return undefined
  }
  const associations = associationsOfRecord(store, work)
  const wanted = new Set(related)
  const known = new Set(associations.stored())
  const other = scopeOf({ listed: asking, asking: listed })
  const isOpen = (key: string) => !freshness.isOutdated(ticket, feed.table, `${other} ${key}`)
  const tally = runs.counts(resource)
  let askAgainMs: number | undefined
  for (const key of known) {
    if (!isOpen(key)) continue
    if (wanted.has(key)) store.suspicions.end(associations.row(key))
    // One of the rejects may be this association, so rejects prevent a denial.
    else if (!work.hasRejects) {
      const verdict = noteDenial(context, associations.row(key), {
        afterMs: confirmAfterMs(context, resource),
      })
      if (verdict.state === 'suspected') askAgainMs = verdict.askAgainMs
    }
  }
  for (const key of wanted) {
    if (known.has(key) || !isOpen(key) || isGone(listed, key)) continue
    const added = associations.add(key)
    tally.rowsChanged += added
    tally.rowsNew += added
  }
  return { askAgainMs }
}

/**
 * Only the list of records shows associations, in either direction. A list that leaves out records for some minutes
 * would deny an association twice, and the next read may be a week later. So the second denial counts an hour later.
 * Minutes are enough in a confirming round, a day after the first denials, and a backfill does not wait that long.
 */
function confirmAfterMs({ schedule, rounds }: EngineContext, resource: ResourceName): number {
  return schedule.isTimed && !rounds.isConfirming(resource) ? HOUR_MS : CONFIRM_AFTER_MS
}

/** False for a record that is not stored. */
function isDeletedRecord({ stored }: Store, { associations }: ItemFeed, object: string, id: string): boolean {
  if (!associations) return false
  const { table } = feedNamed(associations.of).feed
  return stored.state({ table, scope: object, key: id }) === 'deleted'
}

function associationsOfRecord({ links }: Store, { task, feed }: ItemWork): AssociationsOfRecord {
  const { listed, asking } = directionOf(task.scope)
  const isFirst = isForward(kindsOf(feed), { listed, asking })
  return links.ofRecord(feed.table, { object: asking, id: task.key, otherObject: listed, isFirst })
}

/** An association is requested in the direction that the last plan chose for its kind. */
function linkTask(store: Store, { id }: Pick<ItemWork, 'id'>, row: RowKey): TaskKey | undefined {
  const [object = '', record = '', otherObject = '', other = ''] = keyValuesOf(row)
  const directions = directionsOf([object, otherObject])
  const direction = directions.find(one => isPlanned(store, id, one)) ?? directions[0]
  return { feed: id, scope: scopeOf(direction), key: direction.asking === object ? record : other }
}

function kindsOf({ associations }: ItemFeed): readonly AssociationKind[] {
  return associations?.kinds ?? []
}
