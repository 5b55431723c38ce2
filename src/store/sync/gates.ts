import type { RowOf } from '../../catalog/bookkeeping/table-declaration.ts'
import type { GATE_TABLE } from '../../catalog/bookkeeping/tables.ts'
import { RESOURCE_NAMES, type ResourceName } from '../../declare/resource-names.ts'
import { hasTable } from '../database/existing-tables.ts'
import type { Prepare, Sqlite } from '../database/sqlite-types.ts'

type GateRow = RowOf<typeof GATE_TABLE>

/** A closed gate, with its reason: a row of `sync_gates`. An open gate has no row. */
export interface Gate<Kind extends GateRow['kind'] = GateRow['kind']>
  extends Omit<GateRow, 'resources' | 'kind'> {
  kind: Kind
  /** The resources of which nothing, or not everything, is read while the gate is closed. */
  resources: readonly ResourceName[]
}

/** Why a feed, a scope of a feed or a route is closed: its own requests fail, though the API as a whole answers. */
export const FAILURE_KINDS = ['failing', 'unavailable'] as const satisfies readonly GateRow['kind'][]
export type FailureKind = (typeof FAILURE_KINDS)[number]
/** Why the API as a whole, or a route with its own limit, is closed. */
export type ApiGateKind = Exclude<GateRow['kind'], FailureKind>

interface GateKind {
  /** What the kind means, as the beginning of a sentence. */
  is: string
  /** The same meaning, to stand before `since` or `for`. */
  hasBeen: string
  /** Whether the API or the access to it is at fault, and not only the number of requests. */
  isFault: boolean
}

export const GATE_KINDS: Readonly<Record<ApiGateKind, GateKind>> = {
  silent: {
    is: 'No request to the API succeeds',
    hasBeen: 'No request to the API has succeeded',
    isFault: true,
  },
  refused: { is: 'The API refuses access', hasBeen: 'The API has refused access', isFault: true },
  'asked-to-wait': {
    is: 'The API asked parley to wait',
    hasBeen: 'The API has throttled requests',
    isFault: false,
  },
  'day-used-up': {
    is: 'The requests of this day are used up',
    hasBeen: 'The requests of this day have been used up',
    isFault: false,
  },
}

/** Value of `what` for the gate of the whole API. */
export const API_GATE = 'api'
/** Prefix of `what` for the gate of a route, as in `route:/v1/meetings`. */
export const ROUTE_GATE = 'route:'
/** Prefix of `what` for the gate of a feed or of a scope of a feed, as in `feed:crm_records.list/deal`. */
export const FEED_GATE = 'feed:'

const isFailure = (gate: Gate): gate is Gate<FailureKind> => FAILURE_KINDS.some(kind => kind === gate.kind)
const isOfApi = (gate: Gate): gate is Gate<ApiGateKind> => !isFailure(gate)

/** The gates whose waiting reads have not failed themselves. */
export const apiGates = (gates: readonly Gate[]): Gate<ApiGateKind>[] => gates.filter(isOfApi)
/** The gates of feeds, scopes and routes that fail themselves. */
export const failureGates = (gates: readonly Gate[]): Gate<FailureKind>[] => gates.filter(isFailure)

export function createGates(prepare: Prepare) {
  const clear = prepare('DELETE FROM sync_gates')
  const close = prepare(
    `INSERT INTO sync_gates (what, kind, since, until, reason, resources, tries)
     VALUES (@what, @kind, @since, @until, @reason, @resources, @tries)`,
  )
  return {
    closed: () => closedGates(prepare),
    /** Replaces all rows. Call it in a transaction. */
    set(closed: readonly Gate[]) {
      clear.run()
      for (const gate of closed) close.run({ ...gate, resources: JSON.stringify(gate.resources) })
    },
  }
}

/** The closed gates. A database of an older version has none. */
export function readGates(db: Sqlite): Gate[] {
  return hasTable(db, 'sync_gates') ? closedGates(sql => db.prepare(sql)) : []
}

export function clearGates(db: Sqlite): void {
  if (hasTable(db, 'sync_gates')) db.exec('DELETE FROM sync_gates')
}

function closedGates(prepare: Prepare): Gate[] {
  const rows = prepare<GateRow>('SELECT * FROM sync_gates ORDER BY what').all()
  return rows.map(row => ({ ...row, resources: namesIn(row.resources) }))
}

/** The resources in a JSON list; none when another program has damaged the list. */
function namesIn(json: string): ResourceName[] {
  try {
    const names: unknown = JSON.parse(json)
    return Array.isArray(names) ? RESOURCE_NAMES.filter(name => names.includes(name)) : []
  } catch {
    return []
  }
}
