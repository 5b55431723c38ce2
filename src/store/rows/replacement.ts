import { decodeJson, isJsonObject, isSameValue } from '../../base/json.ts'
import type { Cell } from '../../declare/parsed-item.ts'
import type { Column } from '../../declare/resource.ts'

/**
 * Decides what sets `_changed_at`: a stored value that is replaced by another value or removed. A value in place of
 * null completes the row and does not count. Pure.
 */

export function replacesCell(column: Pick<Column, 'kind' | 'source'>, stored: Cell, given: Cell): boolean {
  // This cell follows from other cells, which are compared themselves.
  if (column.source.from === 'row') return false
  if (stored === null || stored === given) return false
  if (column.kind !== 'json' || typeof stored !== 'string' || typeof given !== 'string') return true
  return differs(decodeJson(stored).value, decodeJson(given).value)
}

/**
 * Whether a field without a column has another value than before. Removed and added fields do not count: a removed
 * field may have its own column since an upgrade, and an added field may be new in the API for all rows at once.
 */
export function replacesExtra(stored: Cell, given: string | null): boolean {
  if (typeof stored !== 'string' || given === null) return false
  const [before, after] = [decodeJson(stored).value, decodeJson(given).value]
  if (!isJsonObject(before) || !isJsonObject(after)) return false
  return Object.keys(before).some(
    name => before[name] !== null && Object.hasOwn(after, name) && differs(before[name], after[name]),
  )
}

const differs = (before: unknown, after: unknown): boolean =>
  !isSameValue(before, after, { nullIsMissing: true })
