import { errorCode } from '../../base/errors.ts'
import { nameFor } from './metadata.ts'
import type { CrmTableState, TypedTable } from './table-state.ts'

/** A change of a typed table that people may already query, and its reason. Pure. */
export interface TypedTableChange {
  /** `failed`: dropped after an error, until the metadata changes or the next start. */
  kind: 'replaced' | 'dropped' | 'failed'
  table: string
  reason: string
}

/** Undefined when the object has the same table as before, or had none. */
export function tableChange(
  before: CrmTableState | undefined,
  after: CrmTableState | undefined,
): TypedTableChange | undefined {
  const [had, has] = [before?.made, after?.made]
  if (had === undefined || had.columns === has?.columns) return undefined
  const { table } = had
  if (after === undefined) return { kind: 'dropped', table, reason: 'its object no longer exists' }
  const difference = has && differenceOf(had, has)
  if (difference === undefined)
    return { kind: 'dropped', table, reason: 'another program dropped it; parley creates it again' }
  return { kind: 'replaced', table, reason: `the fields of its object have changed (${difference})` }
}

/** The reason has the code of the error alone, since its message may quote a value. */
export function failedTable(
  object: string,
  state: CrmTableState | undefined,
  error: unknown,
): TypedTableChange {
  const reason = `writing it failed (${errorCode(error) ?? 'unknown error'})`
  return { kind: 'failed', table: state?.made?.table ?? nameFor(object), reason }
}

/** Undefined when the columns are the same: then another program has dropped the table. */
function differenceOf(had: TypedTable, has: TypedTable): string | undefined {
  const earlier = new Map(had.columns.map(column => [column.column, JSON.stringify(column)]))
  const names = new Set(has.columns.map(({ column }) => column))
  const added = has.columns.filter(({ column }) => !earlier.has(column)).length
  const removed = had.columns.filter(({ column }) => !names.has(column)).length
  const common = has.columns.filter(({ column }) => earlier.has(column))
  const changed = common.filter(column => earlier.get(column.column) !== JSON.stringify(column)).length
  const isReordered = had.columns.map(({ column }) => column).join('\n') !== [...names].join('\n')
  if (added + removed + changed === 0 && !isReordered) return undefined
  return `columns added: ${added}, removed: ${removed}, changed: ${changed}`
}
