import type { ResourceName } from '../../catalog/resource.ts'
import type { Log } from '../../log.ts'
import type { ParseReport } from './report.ts'

/** Logs where payloads differ from the declarations: once per field and warehouse, and never in people's words. */

/** Of one table. More of them are no new version of the API, but an object keyed by values. */
const MOST_NAMES = 20
const LONGEST_NAME = 64
const API_NAME = /^[a-z][a-z0-9_]*$/i

/** Stands for all names of an object. */
const ANY = '*'

/**
 * What a log may call an unknown field. An item's own fields are the API's. An object inside the item may be keyed by
 * anything, such as the names of a CRM's fields, so its unknown names are one.
 *
 * @param path of the object that holds the field, with a dot at its end; empty for the item
 */
export function unknownFieldName(path: string, name: string): string {
  const isApiName = path === '' && name.length <= LONGEST_NAME && API_NAME.test(name)
  return path + (isApiName ? name : ANY)
}

type Drift = Parameters<ParseReport['drift']>

export interface DriftLogDeps {
  log: Pick<Log, 'warn'>
  /** What an earlier process has logged on this warehouse. */
  logged: readonly Drift[]
  /** Keeps what was logged for later processes. */
  note(logged: readonly Drift[]): void
}

/** Bounded: declared fields are few, and so are the unknown names that are kept apart. */
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
    log.warn(SAID[reason], { resource, table, field: drift[1] })
  }
}

const SAID: Readonly<Record<Drift[2], string>> = {
  'unknown field': 'The API sent a field that parley does not know; it is kept in _extra',
  'unexpected type': 'The API sent a value that does not fit its column; it is kept in _extra',
}

const keyOf = (drift: Drift): string => drift.join(' ')
