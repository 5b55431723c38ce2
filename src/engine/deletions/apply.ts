import { DAY_MS } from '../../base/clock.ts'
import { ResourceError } from '../../base/errors.ts'
import { CATALOG, TABLES } from '../../catalog/catalog.ts'
import { ITEM_FEEDS, itemsOf, listsOf } from '../../catalog/feeds.ts'
import type { ItemFeed } from '../../declare/resource.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import type { Cascade, Table } from '../../declare/table.ts'
import { keyValuesOf } from '../../store/deletions/suspicions.ts'
import { dateTimeText } from '../../terminal/wording.ts'
import type { EngineContext } from '../context/context.ts'
import type { RunRecords } from '../context/counts-and-failures.ts'
import { scaled } from '../context/intervals.ts'
import { undecidedSince } from './denial.ts'
import { type DeletionCounts, guardDecision, liveRowsToCount, lossToReport } from './guard.ts'
import { finalProbeOf } from './probe-later.ts'
import { tableOfPart } from './row-parts.ts'

/**
 * Deletes all confirmed rows of a resource together, unless the mass-deletion guard holds them back. During a hold, no
 * confirmed row of the resource is deleted. The confirmed rows stay in `sync_suspicions`, so that they are not
 * requested again. After a day a confirming round begins (run/round-end.ts): it reads every list once more. At
 * its end, the rows that it has confirmed are deleted, however many they are, and the hold is over. The operator can
 * delete the confirmed rows earlier with `parley accept-deletions`.
 */

const HOLD_MS = DAY_MS

/** The part of the context that `acceptDeletions` needs, so that a command can call it without an engine. */
export type ApplyContext = Pick<EngineContext, 'store' | 'now' | 'after'> & {
  runs: Pick<RunRecords, 'counts'>
}

type Confirmed = ReturnType<EngineContext['store']['suspicions']['confirmedRows']>[number]

/** @param isRoundComplete true when every list was read to its end since the round began */
export function applyDeletions(
  context: EngineContext,
  resource: ResourceName,
  isRoundComplete: boolean,
): void {
  const { state } = context.store
  const { heldSince } = state.get(resource)
  endLinksWithoutOwner(context, resource)
  if (heldSince !== null && context.rounds.isConfirming(resource)) {
    if (!isRoundComplete || hasUndecided(context, resource)) return
    state.hold(resource, null)
    applyConfirmed(context, resource)
    return
  }
  const losses = lossesOf(context, resource)
  const heldLoss = heldSince === null ? undefined : lossToReport(losses)
  if (heldLoss) {
    reportHold(context, resource, heldLoss)
    return
  }
  // No suspicion of the resource is left, so nothing is held back any more.
  if (heldSince !== null) state.hold(resource, null)
  const decision = guardDecision(losses)
  if (decision.kind === 'apply') applyConfirmed(context, resource)
  else if (decision.kind === 'hold') {
    state.hold(resource, context.now())
    reportHold(context, resource, decision.loss)
  }
}

export interface AcceptedDeletions {
  /** The number of confirmed rows. They are deleted now. */
  rows: number
  /** True while a confirming round is in progress. At its end, it deletes the rows that it has confirmed by then. */
  isConfirming: boolean
}

/**
 * Deletes the confirmed rows of a resource that the guard holds back, and ends the hold. During a confirming round the
 * hold continues, and the end of the round ends it. Returns undefined when nothing is held back. Call it inside a
 * transaction.
 */
export function acceptDeletions(
  context: ApplyContext,
  resource: ResourceName,
): AcceptedDeletions | undefined {
  const { state } = context.store
  const { heldSince } = state.get(resource)
  if (heldSince === null) return undefined
  const rows = countConfirmed(context, resource)
  applyConfirmed(context, resource)
  for (const owner of new Set([resource, ...dependantsOf(resource)])) {
    // Otherwise the guard would count the accepted rows, and hold back even a few further deletions of the same day.
    state.forgetDeleted(owner)
    // The rows of dependants that were held back too are deleted with the accepted ones.
    if (countConfirmed(context, owner) === 0) endHold(context, owner)
  }
  return { rows, isConfirming: state.get(resource).heldSince !== null }
}

function countConfirmed({ store }: ApplyContext, resource: ResourceName): number {
  return tablesOfResource(resource).reduce(
    (sum, { name }) => sum + store.suspicions.confirmedRows(name).length,
    0,
  )
}

/** Ends a hold, unless a confirming round is in progress, which ends it. */
function endHold({ store: { state } }: ApplyContext, resource: ResourceName): void {
  const { heldSince, heldRound, round, reason } = state.get(resource)
  if (heldSince === null || heldRound === round) return
  state.hold(resource, null)
  if (reason?.startsWith(HELD_REASON)) state.healthy(resource)
}

/** The resources that lose rows when rows of this resource are deleted, also indirectly. */
function dependantsOf(resource: ResourceName): ResourceName[] {
  return tablesOfResource(resource)
    .flatMap(({ cascades }) => cascades.map(({ table }) => ownerOf(table)))
    .flatMap(owner => [owner, ...dependantsOf(owner)])
}

/**
 * True when a hold has lasted a day, so that its confirming round may begin. Also true when a hold begins a day or more
 * in the future: a wrong clock stored that time.
 */
export function isHoldOver({ clock, store, options }: EngineContext, resource: ResourceName): boolean {
  const { heldSince } = store.state.get(resource)
  if (heldSince === null) return false
  return Math.abs(clock.now() - Date.parse(heldSince)) >= scaled(HOLD_MS, options)
}

/** The tables that a resource declares, without their child tables. `transcripts` has one for parts of meetings. */
export function tablesOfResource(resource: ResourceName): Table[] {
  return [...TABLES.values()]
    .filter(placed => placed.resource === resource && placed.root === undefined)
    .map(({ table }) => table)
}

/** True while a suspected row of the resource is expected to be confirmed or shown soon. */
function hasUndecided(context: EngineContext, resource: ResourceName): boolean {
  return tablesOfResource(resource).some(({ name }) => countUndecided(context, resource, name) > 0)
}

/**
 * Final probes are one request for each row, and may take longer than an hour for thousands of rows. So all suspected
 * rows count as undecided until these requests are over. Otherwise the guard would see only a part of the rows at a
 * time.
 */
function countUndecided(context: EngineContext, resource: ResourceName, table: string): number {
  const { suspicions, tasks } = context.store
  const isProbed = FINAL_PROBES.some(
    one => one.resource === resource && one.table === table && tasks.hasAny(one.feed),
  )
  return suspicions.countUndecided(table, isProbed ? '' : undecidedSince(context))
}

const FINAL_PROBES = CATALOG.flatMap(listsOf).flatMap(({ resource, id, feed }) =>
  'evidence' in feed && feed.evidence.by === 'ids'
    ? [{ resource, table: feed.table, feed: finalProbeOf(`${id}.probe`) }]
    : [],
)

// ---------------------------------------------------------------------------------------------- losses

/** What each table would lose; empty when no row of the resource is suspected or confirmed. */
function lossesOf(context: EngineContext, resource: ResourceName): DeletionCounts[] {
  const { suspicions, state } = context.store
  const { deletedInRound } = state.get(resource)
  return tablesOfResource(resource).flatMap(table => {
    if (!suspicions.hasAny(table.name)) return []
    const rows = suspicions.confirmedRows(table.name)
    const confirmed = rows.length === 0 ? 0 : rows.length + deletedInRound
    const undecided = countUndecided(context, resource, table.name)
    const live = liveRows(context, table, confirmed + undecided) + deletedInRound
    const own: DeletionCounts = { table: table.name, rows: rows.length, live, confirmed, undecided }
    const dependants = [...table.cascades, ...(LIVE_LINKS.get(table.name) ?? [])]
    return [own, ...dependants.map(dependant => cascadeLoss(context, table, dependant))]
  })
}

/** The number of live rows of a table. For a table of parts: the number of live rows that have the part. */
function liveRows({ store }: EngineContext, { name, kind }: Table, gone: number): number {
  return kind === 'child' ? store.transcripts.count() : store.suspicions.liveRows(name, liveRowsToCount(gone))
}

type Dependant = Pick<Cascade, 'table' | 'on'>

/**
 * By table: the link tables whose rows no longer count as live when a row of this table is deleted. The history of a
 * row stays, however long it is.
 */
const LIVE_LINKS: ReadonlyMap<string, readonly Dependant[]> = new Map(
  [...TABLES.values()].flatMap(({ table: { kind, name, livesWith } }) =>
    kind === 'link' && livesWith && name !== 'crm_record_changes'
      ? [[livesWith.table, [{ table: name, on: livesWith.on }]] as const]
      : [],
  ),
)

/**
 * The loss of another table: its rows that are deleted, or no longer count as live, together with the confirmed rows.
 */
function cascadeLoss({ store }: EngineContext, table: Table, cascade: Dependant): DeletionCounts {
  const gone = store.stored.countDependants(table.name, cascade)
  const before = store.state.get(ownerOf(cascade.table)).deletedInRound
  const confirmed = gone === 0 ? 0 : gone + before
  const live = store.suspicions.liveRows(cascade.table, liveRowsToCount(confirmed)) + before
  return { table: cascade.table, rows: gone, live, confirmed, undecided: 0 }
}

function ownerOf(table: string): ResourceName {
  const placed = TABLES.get(table)
  if (!placed) throw new TypeError(`${table} belongs to no resource`)
  return placed.resource
}

// ----------------------------------------------------------------------------------------------- apply

/**
 * Ends the suspicions of the meetings of a deleted collection. The collection's list is not read any more, so no answer
 * would end them. If the collection came back, one new denial would then delete a meeting from it.
 */
function endLinksWithoutOwner({ store: { suspicions } }: EngineContext, resource: ResourceName): void {
  for (const { name, kind } of tablesOfResource(resource))
    if (kind === 'link' && suspicions.hasAny(name)) suspicions.endWithoutOwner(name)
}

function applyConfirmed(context: ApplyContext, resource: ResourceName): void {
  for (const table of tablesOfResource(resource)) {
    if (!context.store.suspicions.hasAny(table.name)) continue
    const rows = context.store.suspicions.confirmedRows(table.name)
    if (rows.length === 0) continue
    remove(context, resource, table, rows)
    for (const { scope, key, means } of rows) {
      context.store.suspicions.end({ table: table.name, scope, key })
      removeTasks(context, resource, key, means)
    }
  }
}

function remove(
  context: ApplyContext,
  resource: ResourceName,
  table: Table,
  rows: readonly Confirmed[],
): void {
  const { store } = context
  if (table.kind === 'child') {
    const clear = ({ key, means }: Confirmed) => store.transcripts.clear(key, means, context.now())
    const cleared = rows.reduce((sum, row) => sum + clear(row), 0)
    context.runs.counts(resource).rowsChanged += cleared
    store.state.deleted(resource, cleared, context.now())
    return
  }
  for (const cascade of table.cascades) {
    const gone = store.stored.countDependants(table.name, cascade)
    store.state.deleted(ownerOf(cascade.table), gone, context.now())
  }
  const valuesOf = (row: Confirmed) => keyValuesOf({ ...row, table: table.name })
  const absent = rows.filter(({ means }) => means === 'absent').map(valuesOf)
  const withheld = rows.filter(({ means }) => means === 'withheld').map(valuesOf)
  const countCascaded = (name: string, gone: number) => {
    context.runs.counts(ownerOf(name)).rowsDeleted += gone
  }
  const deleted = store.tombstone(table.name, absent, context.now(), countCascaded)
  for (const links of LIVE_LINKS.get(table.name) ?? []) store.suspicions.endWithoutOwner(links.table)
  context.runs.counts(resource).rowsDeleted += deleted
  const changed = store.withhold(table.name, withheld, context.now(), countCascaded)
  context.runs.counts(resource).rowsChanged += changed
  store.state.deleted(resource, deleted + withheld.length, context.now())
}

/**
 * Removes the tasks for the parts of a deleted or withheld row. Also ends the suspicions of the parts, since they are
 * deleted or withheld with the row. A deleted row keeps its single read, which may find it again
 * (`askDeleted` in modes/items/whole-record.ts).
 */
function removeTasks(
  { store, after }: ApplyContext,
  resource: ResourceName,
  key: string,
  means: Confirmed['means'],
): void {
  for (const { feed, parts } of SINGLE_READS.get(resource) ?? []) {
    for (const part of parts) {
      store.tasks.remove({ feed: part.feed, key })
      store.suspicions.end({ table: part.table, scope: '', key })
    }
    if (means !== 'absent') continue
    store.tasks.done({ feed, key }, { round: store.state.get(resource).round, dueAt: after(DAY_MS) })
  }
}

interface SingleRead {
  feed: string
  /** The feeds that read parts of the row as follow-ups of its answer. */
  parts: readonly { feed: string; table: string }[]
}

/** By resource: the feeds that read its rows one by one. */
const SINGLE_READS: ReadonlyMap<ResourceName, readonly SingleRead[]> = new Map(
  CATALOG.map(resource => [
    resource.name,
    itemsOf(resource)
      .filter(({ feed }) => feed.stores === 'row')
      .map(({ id, feed }) => ({ feed: id, parts: partsOf(feed) })),
  ]),
)

function partsOf({ followUps = [] }: ItemFeed): SingleRead['parts'] {
  return ITEM_FEEDS.filter(({ id }) => followUps.some(followUp => followUp.feed === id)).map(
    ({ id, feed }) => ({ feed: id, table: tableOfPart(feed) }),
  )
}

// ---------------------------------------------------------------------------------------------- report

/** The reason of every hold begins with this. */
const HELD_REASON = 'Deletion of '

/** @param loss the loss to report. Its table may be one that the deletions affect indirectly, as by a cascade. */
function reportHold(context: EngineContext, resource: ResourceName, loss: DeletionCounts): void {
  const { store, options } = context
  const { table, rows, confirmed } = loss
  const { heldSince } = store.state.get(resource)
  // The guard also counts rows that were deleted within a day. The limit may be exceeded only together with these.
  const what =
    confirmed > rows
      ? `${rows} more rows of ${table} (${confirmed} within a day)`
      : `${rows} rows of ${table}`
  const command = `parley accept-deletions ${resource}`
  const until = new Date(Date.parse(heldSince ?? context.now()) + scaled(HOLD_MS, options)).toISOString()
  context.runs.fail(
    { resource, id: `${resource}.round` },
    new ResourceError(
      `${HELD_REASON}${what} is held back until a complete pass after ${dateTimeText(until)} confirms it (limit: 20 rows and 20 %). To delete them now: ${command}`,
      { code: 'mass-deletion' },
    ),
    {
      isUnread: () => store.state.get(resource).heldSince !== null,
      lines: {
        begins: 'Deletions are held back',
        ends: 'Deletions are no longer held back',
        fields: { table, rows, until, command },
      },
    },
  )
}
