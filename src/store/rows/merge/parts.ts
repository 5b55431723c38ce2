import { isDeepStrictEqual } from 'node:util'
import { tableNamed } from '../../../catalog/catalog.ts'
import type { Cell } from '../../../declare/parsed-item.ts'
import type { Derivation } from '../../../declare/resource.ts'
import { isRow, placeholders, quote } from '../../database/sql.ts'
import type { Prepare } from '../../database/sqlite-types.ts'

/** `completed`: rows or values were only added. `replaced`: rows or values were changed or removed. */
export type Difference = 'none' | 'completed' | 'replaced'

/**
 * Merges the child rows (parts) of copies: one row for each key. Each value is that of the first part where it is not
 * null.
 */
export function createPartsMerge(prepare: Prepare, { from, into }: Derivation['parts']) {
  const target = tableNamed(into)
  const [ownKey = '', ...partKey] = target.key.map(quote)
  const values = Object.keys(target.columns)
    .filter(column => !target.key.includes(column))
    .map(quote)
  const [ownerKey = '', position = ''] = tableNamed(from).key.map(quote)
  const columns = [...partKey, ...values]
  const fill = values.map(column => `${column} = coalesce(${column}, excluded.${column})`)
  // Ordered by position: when an owner has two parts with the same key, the first part's values win.
  const add = prepare(
    `INSERT INTO ${quote(into)} (${[ownKey, ...columns].join(', ')})
     SELECT ?, ${columns.join(', ')} FROM ${quote(from)}
     WHERE ${ownerKey} = ? AND ${partKey.map(column => `${column} IS NOT NULL`).join(' AND ')}
     ORDER BY ${position}
     ON CONFLICT DO UPDATE SET ${fill.join(', ')}`,
  )
  const partsOf = prepare<Cell[]>(
    `SELECT ${columns.join(', ')} FROM ${quote(from)} WHERE ${ownerKey} = ? ORDER BY ${position}`,
  ).raw()
  const stored = prepare<Cell[]>(`SELECT ${columns.join(', ')} FROM ${quote(into)} WHERE ${ownKey} = ?`).raw()
  const put = prepare(
    `REPLACE INTO ${quote(into)} (${[ownKey, ...columns].join(', ')}) VALUES (${placeholders(columns.length + 1)})`,
  )
  const removeOne = prepare(`DELETE FROM ${quote(into)} WHERE ${isRow(target.key)}`)
  const removeAll = prepare(`DELETE FROM ${quote(into)} WHERE ${ownKey} = ?`)

  return {
    /** Inserts the parts of a new merged row. @param owners keys of the row's copies, in canonical order */
    insert(key: string, owners: readonly string[]) {
      for (const owner of owners) add.run(key, owner)
    },
    /** Updates the parts of a merged row. Writes only what differs. */
    refresh(key: string, owners: readonly string[]): Difference {
      const parts = owners.flatMap(owner => partsOf.all(owner))
      const wanted = mergedParts(parts, partKey.length)
      const present = mergedParts(stored.all(key), partKey.length)
      let change: Difference = 'none'
      for (const [name, cells] of wanted) {
        const before = present.get(name)
        if (before && isDeepStrictEqual(before, cells)) continue
        put.run(key, ...cells)
        const isReplaced = before?.some((cell, index) => cell !== null && cell !== cells[index])
        if (change === 'none' || isReplaced) change = isReplaced ? 'replaced' : 'completed'
      }
      for (const [name, cells] of present) {
        if (wanted.has(name)) continue
        removeOne.run(key, ...cells.slice(0, partKey.length))
        change = 'replaced'
      }
      return change
    },
    remove: (key: string) => void removeAll.run(key),
  }
}

/** Merges parts by their key, which is the first `keyLength` cells. Parts with a null in the key are left out. Pure. */
function mergedParts(
  parts: readonly (readonly Cell[])[],
  keyLength: number,
): ReadonlyMap<string, readonly Cell[]> {
  const merged = new Map<string, readonly Cell[]>()
  for (const cells of parts) {
    const key = cells.slice(0, keyLength)
    if (key.includes(null)) continue
    const name = JSON.stringify(key)
    const before = merged.get(name)
    merged.set(name, before ? before.map((cell, index) => cell ?? cells[index] ?? null) : cells)
  }
  return merged
}
