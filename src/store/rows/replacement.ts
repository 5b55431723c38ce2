import type { Cell } from '../../catalog/parsed-item.ts'
import type { Column } from '../../catalog/resource.ts'
import { decodeJson } from '../../json.ts'

/**
 * Decides what sets `_changed_at`: a stored value that is replaced by another or removed. A value where there was none
 * completes the row and does not count. Pure.
 */

export function replacesCell(column: Pick<Column, 'kind'>, stored: Cell, given: Cell): boolean {
  if (stored === null || stored === given) return false
  if (column.kind !== 'json' || typeof stored !== 'string' || typeof given !== 'string') return true
  return differs(decodeJson(stored).value, decodeJson(given).value)
}

/**
 * Whether a field without a column has another value than before. Removed and added fields do not count: a removed one
 * may have its own column since an upgrade, and an added one may be new in the API for all rows at once.
 */
export function replacesExtra(stored: Cell, given: string | null): boolean {
  if (typeof stored !== 'string' || given === null) return false
  const [before, after] = [decodeJson(stored).value, decodeJson(given).value]
  if (!isContainer(before) || !isContainer(after)) return false
  return Object.keys(before).some(
    name => before[name] !== null && Object.hasOwn(after, name) && differs(before[name], after[name]),
  )
}

/**
 * Whether two decoded values differ. A null field equals a missing one. Iterative, so that deep nesting cannot exceed
 * the call stack.
 */
function differs(before: unknown, after: unknown): boolean {
  const open: [unknown, unknown][] = [[before, after]]
  for (let pair = open.pop(); pair !== undefined; pair = open.pop()) {
    const [left, right] = pair
    if (Object.is(left, right)) continue
    if (!isContainer(left) || !isContainer(right) || Array.isArray(left) !== Array.isArray(right)) return true
    if (Array.isArray(left) && left.length !== right['length']) return true
    for (const name of new Set([...Object.keys(left), ...Object.keys(right)])) {
      open.push([fieldOf(left, name), fieldOf(right, name)])
    }
  }
  return false
}

function fieldOf(container: Record<string, unknown>, name: string): unknown {
  return Object.hasOwn(container, name) ? container[name] : null
}

function isContainer(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
