import type { ResourceName } from '../../catalog/resource-names.ts'
import type { Log } from '../../log.ts'
import type { ParseReport } from './report.ts'

/** Logs where payloads differ from the declarations: once per field and warehouse, and without any customer data. */

/**
 * The most unknown fields of one table that are logged by name. A new version of the API adds fewer. More names are
 * probably values that an object uses as keys.
 */
const MOST_NAMES = 20
const LONGEST_NAME = 64
const API_NAME = /^[a-z][a-z0-9_]*$/i

/** Logged instead of a name that may be customer data, and instead of names beyond `MOST_NAMES`. */
const ANY = '*'

/**
 * The name under which an unknown field is logged. The API chooses the names of an item's own fields. An object inside
 * the item may use customer data as keys, such as the names of a CRM's fields. So all unknown fields of such an object
 * are logged under one name.
 *
 * @param path of the object that has the field, ending with a dot; empty for the item
 */
export function unknownFieldName(path: string, name: string): string {
  const isApiName = path === '' && name.length <= LONGEST_NAME && API_NAME.test(name)
  return path + (isApiName ? name : ANY)
}

type Drift = Parameters<ParseReport['drift']>

export interface DriftLogDeps {
  log: Pick<Log, 'warn'>
  /** What earlier processes logged for this warehouse. */
  logged: readonly Drift[]
  /** Stores the logged drift for later processes. */
  note(logged: readonly Drift[]): void
}

/** Memory is bounded: there are few declared fields, and few unknown names are kept. */
export function createDriftLog({
  log,
  logged,
  note,
}: DriftLogDeps): (resource: ResourceName) => ParseReport['drift'] {
  const known = new Set<string>()
  const kept = [...logged]
  const unknown = new Map<string, number>()
  const keep = (drift: Drift) => {
    const [table, , reason] = drift
    known.add(keyOf(drift))
    if (reason === 'unknown field') unknown.set(table, (unknown.get(table) ?? 0) + 1)
  }
  for (const drift of logged) keep(drift)
  return resource => (table, name, reason) => {
    if (known.has(keyOf([table, name, reason]))) return
    const isTooMany = reason === 'unknown field' && (unknown.get(table) ?? 0) >= MOST_NAMES
    const drift: Drift = [table, isTooMany ? ANY : name, reason]
    if (known.has(keyOf(drift))) return
    keep(drift)
    kept.push(drift)
    note(kept)
    log.warn(MESSAGES[reason], { resource, table, field: drift[1] })
  }
}

const MESSAGES: Readonly<Record<Drift[2], string>> = {
  'unknown field': 'The API sent a field that parley does not know; it is kept in _extra',
  'unexpected type': 'The API sent a value that does not fit its column; it is kept in _extra',
}

const keyOf = (drift: Drift): string => drift.join(' ')
