import type { Log } from '../log.ts'
import type { ResourceName } from '../resource.ts'
import type { ParseReport } from './parse.ts'

/** Logs where payloads differ from the declarations: once per field, and never in people's words. */

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

/** Bounded: declared fields are few, and so are the unknown names that are kept apart. */
export function createDriftLog(log: Log): (resource: ResourceName) => ParseReport['drift'] {
  const logged = new Set<string>()
  const unknown = new Map<string, Set<string>>()
  const bounded = (table: string, name: string): string => {
    const names = unknown.get(table) ?? new Set()
    unknown.set(table, names)
    if (!names.has(name) && names.size >= MOST_NAMES) return ANY
    names.add(name)
    return name
  }
  return resource => (table, name, reason) => {
    const field = reason === 'unknown field' ? bounded(table, name) : name
    const difference = `${table}.${field} ${reason}`
    if (logged.has(difference)) return
    logged.add(difference)
    log.warn('The API sent a field that has no column; it is kept in _extra', {
      resource,
      table,
      field,
      reason,
    })
  }
}
