import { CATALOG, TABLES, tableNamed } from '../catalog.ts'
import { ResourceError } from '../errors.ts'
import type { ResourceName } from '../resource.ts'
import { DAY, type EngineContext, scaled } from './context.ts'

/**
 * The safety catch: what a round found to be absent is tombstoned together at its end, unless it is so much that
 * the API's answer is the likelier mistake. Then nothing goes until a second round, an interval later, says the same.
 */

const MOST_ROWS = 20
const MOST_SHARE = 0.2
export const HOLD_MS = DAY

export interface Loss {
  live: number
  absent: number
}

export function isTooMuch({ live, absent }: Loss): boolean {
  return absent > MOST_ROWS && absent > live * MOST_SHARE
}

interface Absent {
  table: string
  rows: readonly { scope: string; key: string }[]
}

/**
 * For a backfill, at the end of a round: tombstones what it has confirmed to be absent, or holds it back until a
 * round an interval later says the same.
 */
export function settleAbsences(context: EngineContext, resource: ResourceName): void {
  const { store } = context
  const absent = absentRows(context, resource)
  const { heldSince, deletedInRound } = store.state.get(resource)
  const tooMuch = absent.find(found => isTooMuch(lossOf(context, found, deletedInRound)))
  if (tooMuch && !isRipe(context, heldSince)) {
    holdBack(context, resource, absent, tooMuch)
    return
  }
  bury(context, resource, absent)
  if (heldSince !== null) store.state.hold(resource, null)
}

/**
 * For the daemon, whenever the resource is quiet: the same, but what is held back is confirmed by a round of its
 * own, begun when the interval has passed.
 */
export function settleInTime(context: EngineContext, resource: ResourceName, isRoundComplete: boolean): void {
  const { store } = context
  const { heldSince, deletedInRound } = store.state.get(resource)
  if (heldSince === null) {
    const absent = absentRows(context, resource)
    const tooMuch = absent.find(found => isTooMuch(lossOf(context, found, deletedInRound)))
    if (tooMuch) holdBack(context, resource, absent, tooMuch)
    else bury(context, resource, absent)
    return
  }
  if (context.isConfirming(resource)) {
    if (!isRoundComplete) return
    bury(context, resource, absentRows(context, resource))
    store.state.hold(resource, null)
    return
  }
  // What was found meanwhile is found again, and only that counts.
  forget(context, absentRows(context, resource))
  if (isRipe(context, heldSince)) context.beginRound(resource, 'confirming')
}

/**
 * For the daemon, in a run that goes on for long: what is confirmed goes, unless that and what is still suspected
 * may be too much together. Then it waits for the end of the run.
 */
export function settleOnTheWay(context: EngineContext, resource: ResourceName): void {
  const { store } = context
  const { heldSince, deletedInRound } = store.state.get(resource)
  if (heldSince !== null) return
  const absent = absentRows(context, resource)
  const mayBeTooMuch = absent.some(found => {
    const { live } = lossOf(context, found, deletedInRound)
    return isTooMuch({
      live,
      absent: store.absences.count(found.table) + undecided(context, resource) + deletedInRound,
    })
  })
  if (!mayBeTooMuch) bury(context, resource, absent)
}

/** Rows of which it is still to be asked whether they are gone. */
function undecided({ store, now }: EngineContext, resource: ResourceName): number {
  const feeds = CATALOG.find(({ name }) => name === resource)?.feeds ?? {}
  const probes = Object.keys(feeds).map(feed => store.tasks.countDue(`${resource}.${feed}.probe`, now()))
  return probes.reduce((sum, count) => sum + count, 0)
}

function absentRows({ store }: EngineContext, resource: ResourceName): Absent[] {
  return [...TABLES.values()]
    .filter(placed => placed.resource === resource && placed.table.kind === 'entity')
    .map(({ table }) => table.name)
    .filter(table => store.absences.any(table))
    .map(table => ({ table, rows: store.absences.confirmed(table) }))
}

function lossOf({ store }: EngineContext, { table, rows }: Absent, deletedBefore: number): Loss {
  return {
    live: store.absences.liveRows(table) + deletedBefore,
    absent: rows.length === 0 ? 0 : rows.length + deletedBefore,
  }
}

function isRipe({ clock, options }: EngineContext, heldSince: string | null): boolean {
  return heldSince !== null && clock.now() >= Date.parse(heldSince) + scaled(HOLD_MS, options)
}

function holdBack(
  context: EngineContext,
  resource: ResourceName,
  absent: readonly Absent[],
  worst: Absent,
): void {
  const { state } = context.store
  state.hold(resource, state.get(resource).heldSince ?? context.now())
  forget(context, absent)
  context.fail({ resource, feed: `${resource}.round` }, heldBack(worst.table, worst.rows.length))
}

function forget({ store }: EngineContext, absent: readonly Absent[]): void {
  for (const { table } of absent) store.absences.clearAll(table)
}

function bury(context: EngineContext, resource: ResourceName, absent: readonly Absent[]): void {
  const { store } = context
  for (const { table, rows } of absent) {
    const isScoped = tableNamed(table).key.length > 1
    const keys = rows.map(({ scope, key }) => (isScoped ? [scope, key] : [key]))
    const deleted = store.tombstone(table, keys, context.now())
    context.counts(resource).rowsDeleted += deleted
    store.state.deleted(resource, deleted)
    for (const { scope, key } of rows) store.absences.clear(table, scope, key)
  }
}

function heldBack(table: string, count: number): ResourceError {
  return new ResourceError(
    `${count} rows of ${table} seem to be gone, which is more than is believed at once`,
    {
      code: 'too-many-absent',
      hint: 'Nothing was marked as deleted. It is looked at again in a day; if it cannot be true, check the key and the workspace.',
    },
  )
}
