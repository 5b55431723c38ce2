import { CATALOG, TABLES, tableNamed } from '../../catalog/catalog.ts'
import type { Cascade, ItemFeed, ResourceName, Table } from '../../catalog/resource.ts'
import { ResourceError } from '../../errors.ts'
import { quote } from '../../store/database/sql.ts'
import { columnsOfRow, type RowKey } from '../../store/deletions/suspicions.ts'
import type { EngineContext } from '../context.ts'
import { DAY, scaled } from '../schedule/intervals.ts'
import { undecidedSince } from './denial.ts'
import { guardDecision, type Loss, liveRowsToCount } from './guard.ts'
import { tableOfPart } from './part.ts'

/**
 * Deletes what is confirmed, all of a resource together, unless the mass-deletion guard holds it back. A hold lasts a
 * day: nothing of the resource is deleted until then, and what was confirmed stays noted, so that it is not asked for
 * again and again. Then a confirming round begins: everything noted is forgotten, every list is read once more, and
 * what that round confirms is deleted. The operator may accept what is confirmed before that.
 */

export const HOLD_MS = DAY

/** What applying needs of the context, so that a command can do it without one. */
export type Applying = Pick<EngineContext, 'store' | 'counts' | 'now'>

type Confirmed = ReturnType<EngineContext['store']['suspicions']['confirmed']>[number]

/** @param isRoundComplete every list was read to its end since the round began */
export function settleDeletions(
  context: EngineContext,
  resource: ResourceName,
  isRoundComplete: boolean,
): void {
  const { state } = context.store
  const { heldSince } = state.get(resource)
  if (heldSince !== null && context.isConfirming(resource)) {
    if (!isRoundComplete || hasUndecided(context, resource)) return
    state.hold(resource, null)
    applyAll(context, resource)
    return
  }
  if (heldSince !== null && tablesOf(resource).some(({ name }) => context.store.suspicions.any(name))) {
    reportHold(context, resource)
    return
  }
  // Everything that was held back has been shown again.
  if (heldSince !== null) state.hold(resource, null)
  const decision = guardDecision(lossesOf(context, resource))
  if (decision.kind === 'apply') applyAll(context, resource)
  else if (decision.kind === 'hold') {
    state.hold(resource, context.now())
    reportHold(context, resource)
  }
}

export interface Accepted {
  /** Rows that were confirmed, and are deleted now. */
  rows: number
  /** A confirming round is under way: it deletes the rest when it ends. */
  isConfirming: boolean
}

/**
 * Applies what the guard holds back of a resource and ends the hold. Undefined where nothing is held back. To be called
 * inside a transaction.
 */
export function acceptDeletions(context: Applying, resource: ResourceName): Accepted | undefined {
  const { state, suspicions } = context.store
  const { heldSince, heldRound, round, reason } = state.get(resource)
  if (heldSince === null) return undefined
  const tables = tablesOf(resource)
  const rows = tables.reduce((sum, { name }) => sum + suspicions.confirmed(name).length, 0)
  applyAll(context, resource)
  // What was accepted must not make the guard hold back the next few rows of the day.
  for (const owner of new Set([
    resource,
    ...tables.flatMap(({ cascades }) => cascades.map(({ table }) => ownerOf(table))),
  ])) {
    state.forgetDeleted(owner)
  }
  const isConfirming = heldRound === round
  if (!isConfirming) {
    state.hold(resource, null)
    if (reason?.startsWith(HELD_REASON)) state.healthy(resource)
  }
  return { rows, isConfirming }
}

/**
 * True once what was held back is to be looked for again. A hold from the future was noted under a wrong clock: it ends
 * as soon as it is as far away.
 */
export function isHoldOver({ clock, store, options }: EngineContext, resource: ResourceName): boolean {
  const { heldSince } = store.state.get(resource)
  if (heldSince === null) return false
  return Math.abs(clock.now() - Date.parse(heldSince)) >= scaled(HOLD_MS, options)
}

/** The tables that hold a resource's own rows, or parts that are read by themselves. */
export function tablesOf(resource: ResourceName): Table[] {
  return [...TABLES.values()]
    .filter(placed => placed.resource === resource && placed.root === undefined)
    .map(({ table }) => table)
}

/** The confirming round has to find everything again by itself. */
export function forgetConfirmed({ store }: EngineContext, resource: ResourceName): void {
  for (const { name } of tablesOf(resource)) store.suspicions.endAll(name)
}

/** True while an answer that decides on a row of the resource is expected soon. */
export function hasUndecided(context: EngineContext, resource: ResourceName): boolean {
  const since = undecidedSince(context)
  return tablesOf(resource).some(({ name }) => context.store.suspicions.countUndecided(name, since) > 0)
}

// ---------------------------------------------------------------------------------------------- losses

function lossesOf(context: EngineContext, resource: ResourceName): Loss[] {
  const { suspicions, state } = context.store
  const { deletedInRound } = state.get(resource)
  const since = undecidedSince(context)
  return tablesOf(resource).flatMap(table => {
    if (!suspicions.any(table.name)) return []
    const rows = suspicions.confirmed(table.name)
    const confirmed = rows.length === 0 ? 0 : rows.length + deletedInRound
    const undecided = suspicions.countUndecided(table.name, since)
    const live = liveRows(context, table, confirmed + undecided) + deletedInRound
    const own: Loss = { table: table.name, live, confirmed, undecided }
    const dependants = [...table.cascades, ...(LIVE_WITH.get(table.name) ?? [])]
    return [own, ...dependants.map(dependant => cascadeLoss(context, table, dependant, rows))]
  })
}

/** Of parts that are read by themselves, the rows that have any. */
function liveRows({ store }: EngineContext, { name, kind }: Table, gone: number): number {
  return kind === 'child' ? store.transcripts.count() : store.suspicions.liveRows(name, liveRowsToCount(gone))
}

type Dependant = Pick<Cascade, 'table' | 'on'>

/** By table: link tables whose rows leave their live view with its rows. */
const LIVE_WITH: ReadonlyMap<string, readonly Dependant[]> = new Map(
  [...TABLES.values()].flatMap(({ table: { kind, name, livesWith } }) =>
    kind === 'link' && livesWith ? [[livesWith.table, [{ table: name, on: livesWith.on }]] as const] : [],
  ),
)

/** What goes with the confirmed rows counts in the table that it goes from. */
function cascadeLoss(
  { store }: EngineContext,
  table: Table,
  cascade: Dependant,
  rows: readonly Confirmed[],
): Loss {
  const gone = rows.reduce((sum, row) => sum + countCascade(store, table, cascade, row), 0)
  const before = store.state.get(ownerOf(cascade.table)).deletedInRound
  const confirmed = gone === 0 ? 0 : gone + before
  const live = store.suspicions.liveRows(cascade.table, liveRowsToCount(confirmed)) + before
  return { table: cascade.table, live, confirmed, undecided: 0 }
}

function countCascade(
  { prepare }: EngineContext['store'],
  table: Table,
  { table: target, on }: Dependant,
  row: Pick<RowKey, 'scope' | 'key'>,
): number {
  const key = columnsOfRow(row)
  const isEntity = tableNamed(target).kind === 'entity'
  const where = Object.keys(on).map(column => `${quote(column)} = ?`)
  const values = Object.values(on).map(mine => key[table.key.indexOf(mine)])
  const live = isEntity ? ['_deleted_at IS NULL'] : []
  const sql = `SELECT count(*) FROM ${quote(target)} WHERE ${[...where, ...live].join(' AND ')}`
  return prepare(sql)
    .pluck()
    .get(...values) as number
}

function ownerOf(table: string): ResourceName {
  const placed = TABLES.get(table)
  if (!placed) throw new TypeError(`${table} belongs to no resource`)
  return placed.resource
}

// ----------------------------------------------------------------------------------------------- apply

function applyAll(context: Applying, resource: ResourceName): void {
  for (const table of tablesOf(resource)) {
    if (!context.store.suspicions.any(table.name)) continue
    const rows = context.store.suspicions.confirmed(table.name)
    if (rows.length === 0) continue
    remove(context, resource, table, rows)
    for (const { scope, key, means } of rows) {
      context.store.suspicions.end({ table: table.name, scope, key })
      dropReads(context, resource, key, means)
    }
  }
}

function remove(context: Applying, resource: ResourceName, table: Table, rows: readonly Confirmed[]): void {
  const { store } = context
  if (table.kind === 'child') {
    const clear = ({ key, means }: Confirmed) => store.transcripts.clear(key, means, context.now())
    const cleared = rows.reduce((sum, row) => sum + clear(row), 0)
    context.counts(resource).rowsChanged += cleared
    store.state.deleted(resource, cleared, context.now())
    return
  }
  for (const cascade of table.cascades) {
    const gone = rows.reduce((sum, row) => sum + countCascade(store, table, cascade, row), 0)
    store.state.deleted(ownerOf(cascade.table), gone, context.now())
  }
  const absent = rows.filter(({ means }) => means === 'absent').map(columnsOfRow)
  const withheld = rows.filter(({ means }) => means === 'withheld').map(columnsOfRow)
  const deleted = store.tombstone(table.name, absent, context.now())
  context.counts(resource).rowsDeleted += deleted
  context.counts(resource).rowsChanged += store.withhold(table.name, withheld, context.now())
  store.state.deleted(resource, deleted + withheld.length, context.now())
}

/**
 * What hangs on a row that is deleted or withheld is not asked for, nor is a deleted row itself, until a list or an
 * activity names it again. A part that was denied before is not suspected any more: its row's denial explains it.
 */
function dropReads(
  { store }: Applying,
  resource: ResourceName,
  key: string,
  means: Confirmed['means'],
): void {
  for (const { feed, parts } of SINGLE_READS.get(resource) ?? []) {
    for (const part of parts) {
      store.tasks.remove({ feed: part.feed, key })
      store.suspicions.end({ table: part.table, scope: '', key })
    }
    if (means === 'absent') store.tasks.remove({ feed, key })
  }
}

const ITEM_FEEDS: readonly { resource: ResourceName; feed: string; declared: ItemFeed }[] = CATALOG.flatMap(
  ({ name, feeds }) =>
    Object.entries(feeds).flatMap(([feed, declared]) =>
      declared.mode === 'item' ? [{ resource: name, feed: `${name}.${feed}`, declared }] : [],
    ),
)

interface SingleRead {
  feed: string
  /** The reads that follow up an answer. */
  parts: readonly { feed: string; table: string }[]
}

/** By resource: the feeds that read its rows singly. */
const SINGLE_READS: ReadonlyMap<ResourceName, readonly SingleRead[]> = new Map(
  CATALOG.map(({ name }) => [
    name,
    ITEM_FEEDS.filter(({ resource, declared }) => resource === name && declared.stores === 'row').map(
      ({ feed, declared }) => ({ feed, parts: partsOf(declared) }),
    ),
  ]),
)

function partsOf({ followUps = [] }: ItemFeed): SingleRead['parts'] {
  return ITEM_FEEDS.filter(({ feed }) => followUps.some(followUp => followUp.feed === feed)).map(
    ({ feed, declared }) => ({ feed, table: tableOfPart(declared) }),
  )
}

// ---------------------------------------------------------------------------------------------- report

/** Every reason that a hold gives begins so. */
const HELD_REASON = 'Deletion of '

function reportHold(context: EngineContext, resource: ResourceName): void {
  const { store, options } = context
  const counts = tablesOf(resource).map(({ name }) => ({
    name,
    rows: store.suspicions.any(name) ? store.suspicions.confirmed(name).length : 0,
  }))
  const worst = counts.sort((one, other) => other.rows - one.rows)[0]
  const { rows, name: table } = worst ?? { rows: 0, name: resource }
  const { heldSince } = store.state.get(resource)
  const command = `parley accept-deletions ${resource}`
  const until = new Date(Date.parse(heldSince ?? context.now()) + scaled(HOLD_MS, options)).toISOString()
  context.fail(
    { resource, feed: `${resource}.round` },
    new ResourceError(
      `${HELD_REASON}${rows} rows of ${table} is held back until a complete pass after ${until} confirms it or ${command} accepts it (limit: 20 rows and 20 %)`,
      {
        code: 'mass-deletion',
        hint: `If the rows are really gone, do nothing, or run ${command} to delete them now. If not, check api.key and api.workspace_id.`,
      },
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
