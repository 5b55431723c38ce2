import type { Prepare } from '../database/sqlite-types.ts'
import type { DerivedCell } from './derived-rows.ts'
import type { LocalTime } from './local-time.ts'
import type { Domains } from './sides.ts'
import type { WaitingKeys } from './waiting-keys.ts'

/** What the steps that follow changed keys share. */
export interface Deriving {
  prepare: Prepare
  waiting: WaitingKeys
  time: LocalTime
  /** The hour of the local day, from 0 to 23. */
  localHour(ms: number): number
  domains: Domains
  replyLimitDays: number
  /** SQL for the contacts and companies whose ids are in a JSON array, undefined where the CRM has none; the object of contacts. */
  crm: { contacts: string | undefined; companies: string | undefined; contactObject: string }
}

/** The rows of a query about the keys in the JSON array `:keys`. */
export const rowsFor = <Row>(prepare: Prepare, sql: string, keys: readonly DerivedCell[]): Row[] =>
  prepare<Row>(sql).all({ keys: JSON.stringify(keys) })

/** Lists of rows by what a function says of each. */
export function listsBy<Row, Key>(rows: readonly Row[], keyOf: (row: Row) => Key): Map<Key, Row[]> {
  const lists = new Map<Key, Row[]>()
  for (const row of rows) {
    const list = lists.get(keyOf(row))
    if (list) list.push(row)
    else lists.set(keyOf(row), [row])
  }
  return lists
}

/** Undefined for what is no instant. */
export function msOf(instant: string | null): number | undefined {
  const ms = instant === null ? Number.NaN : Date.parse(instant)
  return Number.isNaN(ms) ? undefined : ms
}
