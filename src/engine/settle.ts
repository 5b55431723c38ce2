import { TABLES, tableNamed } from '../catalog.ts'
import { ResourceError } from '../errors.ts'
import type { ResourceName } from '../resource.ts'
import { DAY, type EngineContext } from './context.ts'

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

/** Tombstones what the resource's round has confirmed to be absent, or holds it back. */
export function settleAbsences(context: EngineContext, resource: ResourceName): void {
  const { store, clock } = context
  const tables = [...TABLES.values()]
    .filter(placed => placed.resource === resource && placed.table.kind === 'entity')
    .map(({ table }) => table.name)
    .filter(table => store.absences.any(table))
  const absent = tables.map(table => ({ table, rows: store.absences.confirmed(table) }))
  const tooMuch = absent.find(({ table, rows }) =>
    isTooMuch({ live: store.absences.liveRows(table), absent: rows.length }),
  )
  const { heldSince } = store.state.get(resource)
  if (tooMuch) {
    const ripe =
      heldSince !== null && clock.now() >= Date.parse(heldSince) + HOLD_MS * context.options.intervalScale
    if (!ripe) {
      store.state.hold(resource, heldSince ?? context.now())
      for (const { table } of absent) store.absences.clearAll(table)
      context.fail({ resource, feed: `${resource}.round` }, heldBack(tooMuch.table, tooMuch.rows.length))
      return
    }
  }
  for (const { table, rows } of absent) {
    const keyed = tableNamed(table).key.length > 1
    const keys = rows.map(({ scope, key }) => (keyed ? [scope, key] : [key]))
    context.counts(resource).rowsDeleted += store.tombstone(table, keys, context.now())
    for (const { scope, key } of rows) store.absences.clear(table, scope, key)
  }
  if (heldSince !== null) store.state.hold(resource, null)
}

function heldBack(table: string, count: number): ResourceError {
  return new ResourceError(
    `${count} rows of ${table} seem to be gone, which is more than is believed at once`,
    {
      code: 'too-many-absent',
      hint: 'Nothing was marked as deleted. If it is true, run it again in a day; else check the key and the workspace.',
    },
  )
}
