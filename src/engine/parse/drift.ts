import type { Log } from '../../base/log.ts'
import type { ResourceName } from '../../declare/resource-names.ts'

/**
 * Logs where payloads differ from the declarations: once per field and warehouse, all fields of an answer in one line,
 * and without any customer data.
 */

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

/** Where a parser reports payloads that do not fit the declarations. */
export interface ParseReport {
  /**
   * Reports a field without a column, or a value that does not fit its column. `field` never contains a value, nor a
   * name that may be a value.
   */
  drift(table: string, field: string, reason: 'unknown field' | 'unexpected type'): void
  /** Reports an item that cannot be stored. `within`: the key of the row that the item belongs to, if it is known. */
  reject(table: string, item: unknown, reason: string, within?: string): void
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
export function createDriftLog({ log, logged, note }: DriftLogDeps) {
  const known = new Set<string>()
  const kept = [...logged]
  const unknown = new Map<string, number>()
  const fresh = new Map<ResourceName, Drift[]>()
  const keep = (drift: Drift) => {
    const [table, , reason] = drift
    known.add(keyOf(drift))
    if (reason === UNKNOWN) unknown.set(table, (unknown.get(table) ?? 0) + 1)
  }
  for (const drift of logged) keep(drift)
  return {
    /** Receives what a parser finds in the payloads of a resource. */
    of:
      (resource: ResourceName): ParseReport['drift'] =>
      (table, name, reason) => {
        if (known.has(keyOf([table, name, reason]))) return
        const isTooMany = reason === UNKNOWN && (unknown.get(table) ?? 0) >= MOST_NAMES
        const drift: Drift = [table, isTooMany ? ANY : name, reason]
        if (known.has(keyOf(drift))) return
        keep(drift)
        fresh.set(resource, [...(fresh.get(resource) ?? []), drift])
      },
    /** Logs and stores the differences that are new since the last call. Call it in the answer's transaction. */
    flush(): void {
      if (fresh.size === 0) return
      kept.push(...[...fresh.values()].flat())
      note(kept)
      for (const [resource, drifts] of fresh) {
        const fields = drifts.map(fieldText).join(', ')
        log.warn(
          'The API sent fields that parley does not know, or with values that do not fit; they are kept in _extra',
          {
            resource,
            fields,
            command: 'parley status --fields',
          },
        )
      }
      fresh.clear()
    },
  }
}

const UNKNOWN = 'unknown field'

const fieldText = ([table, name, reason]: Drift): string =>
  `${table}.${name}${reason === UNKNOWN ? '' : ` (${reason})`}`

const keyOf = (drift: Drift): string => drift.join(' ')
