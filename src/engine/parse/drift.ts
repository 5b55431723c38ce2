import type { ResourceName } from '../../catalog/names.ts'
import type { Log } from '../../log.ts'
import type { ParseReport } from './report.ts'

/** Logs where payloads differ from the declarations: once per field and warehouse, and without any customer data. */

/** Most unknown fields of one table to name. More do not mean a new API version, but an object keyed by values. */
const MOST_NAMES = 20
const LONGEST_NAME = 64
const API_NAME = /^[a-z][a-z0-9_]*$/i

/** Stands for every name in an object. */
const ANY = '*'

/**
 * The name of an unknown field in the log. The API names an item's own fields. An object inside the item may be keyed
 * by customer data, such as the names of a CRM's fields, so all its unknown fields share one name.
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
  /** Stores what was logged for later processes. */
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
