import { type PropertiesOf, propertiesOf } from '../../../catalog/bookkeeping/table-declaration.ts'
import { TASK_TABLE } from '../../../catalog/bookkeeping/tables.ts'

/**
 * A pending read of a single key: a first read, retry, probe or re-read. The database stores it, so a restart loses
 * none.
 */
export type Task = PropertiesOf<typeof TASK_TABLE>

export interface TaskKey {
  feed: string
  scope?: string
  key: string
}

/** Value of `round` for tasks that a backfill reads at their due time, not once in each round. */
export const BY_DUE_TIME = -1

/** Selects the columns of a `Task`. */
export const TASK_COLUMNS = propertiesOf(TASK_TABLE)
