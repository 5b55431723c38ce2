import { isDeepStrictEqual } from 'node:util'
import { tableNamed } from '../catalog.ts'
import type { Derivation } from '../resource.ts'
import type { Cell } from '../row.ts'
import { placeholders, quote } from './sql.ts'
import type { Prepare } from './statements.ts'

/** The children of merged rows, merged like them: one row for each key, each value from the first child that has it. */
export interface PartsMerge {
  /** The parts of a merged row that is new. `owners` are the rows that it is made of, in canonical order. */
  insert(key: string, owners: readonly string[]): void
  /** Brings the parts of a merged row to what they are now; writes nothing where they are so already. */
  refresh(key: string, owners: readonly string[]): PartsChange
  remove(key: string): void
}

/** `completed`: rows or values came where there were none; `replaced`: some went, or are others. */
export type PartsChange = 'none' | 'completed' | 'replaced'

export function createPartsMerge(prepare: Prepare, { from, into }: Derivation['parts']): PartsMerge {
  const target = tableNamed(into)
  const [ownKey = '', ...partKey] = target.key.map(quote)
  const values = Object.keys(target.columns)
    .filter(column => !target.key.includes(column))
    .map(quote)
  const [ownerKey = '', position = ''] = tableNamed(from).key.map(quote)
  const columns = [...partKey, ...values]
  const fill = values.map(column => `${column} = coalesce(${column}, excluded.${column})`)
  // Within an owner the first part comes first as well: the owners' parts are stored in the order of this column.
  const add = prepare(
    `INSERT INTO ${quote(into)} (${[ownKey, ...columns].join(', ')})
     SELECT ?, ${columns.join(', ')} FROM ${quote(from)}
     WHERE ${ownerKey} = ? AND ${partKey.map(column => `${column} IS NOT NULL`).join(' AND ')}
     ORDER BY ${position}
     ON CONFLICT DO UPDATE SET ${fill.join(', ')}`,
  )
  const partsOf = prepare(
    `SELECT ${columns.join(', ')} FROM ${quote(from)} WHERE ${ownerKey} = ? ORDER BY ${position}`,
  ).raw()
  const stored = prepare(`SELECT ${columns.join(', ')} FROM ${quote(into)} WHERE ${ownKey} = ?`).raw()
  const put = prepare(
    `REPLACE INTO ${quote(into)} (${[ownKey, ...columns].join(', ')}) VALUES (${placeholders(columns.length + 1)})`,
  )
  const removeOne = prepare(
    `DELETE FROM ${quote(into)} WHERE ${[ownKey, ...partKey].map(column => `${column} = ?`).join(' AND ')}`,
  )
  const removeAll = prepare(`DELETE FROM ${quote(into)} WHERE ${ownKey} = ?`)

  return {
    insert(key, owners) {
      for (const owner of owners) add.run(key, owner)
    },
    refresh(key, owners) {
      const parts = owners.flatMap(owner => partsOf.all(owner) as Cell[][])
      const wanted = mergedParts(parts, partKey.length)
      const present = mergedParts(stored.all(key) as Cell[][], partKey.length)
      let change: PartsChange = 'none'
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
    remove(key) {
      removeAll.run(key)
    },
  }
}

/** By their keys, which are the first `keyLength` cells; those without one are left out. Pure. */
export function mergedParts(
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
