import { isDeepStrictEqual } from 'node:util'
import type { Cell } from '../../../declare/parsed-item.ts'
import type { Prepare } from '../../database/sqlite-types.ts'

/** `completed`: rows or values were only added. `replaced`: rows or values were changed or removed. */
export type Difference = 'none' | 'completed' | 'replaced'

/** The key of a part within its e-mail, and its values. */
const KEY = ['role', 'handle']
const VALUES = ['display_name', 'contact_id']
const CELLS = [...KEY, ...VALUES].join(', ')

/**
 * Merges the participants (parts) of copies: one row for each key. Each value is that of the first part where it is not
 * null.
 */
export function createPartsMerge(prepare: Prepare) {
  const fill = VALUES.map(column => `${column} = coalesce(${column}, excluded.${column})`)
  // Ordered by position: when a copy has two parts with the same key, the first part's values win.
  const add = prepare(
    `INSERT INTO message_participants (header_message_id, ${CELLS})
     SELECT ?, ${CELLS} FROM message_copy_participants
     WHERE message_id = ? AND role IS NOT NULL AND handle IS NOT NULL ORDER BY position
     ON CONFLICT DO UPDATE SET ${fill.join(', ')}`,
  )
  const partsOf = prepare<Cell[]>(
    `SELECT ${CELLS} FROM message_copy_participants WHERE message_id = ? ORDER BY position`,
  ).raw()
  const stored = prepare<Cell[]>(
    `SELECT ${CELLS} FROM message_participants WHERE header_message_id = ?`,
  ).raw()
  const put = prepare(
    `REPLACE INTO message_participants (header_message_id, ${CELLS}) VALUES (?, ?, ?, ?, ?)`,
  )
  const removeOne = prepare(
    'DELETE FROM message_participants WHERE header_message_id = ? AND role = ? AND handle = ?',
  )
  const removeAll = prepare('DELETE FROM message_participants WHERE header_message_id = ?')

  return {
    /** Inserts the parts of a new merged row. @param owners keys of the row's copies, in canonical order */
    insert(key: string, owners: readonly string[]) {
      for (const owner of owners) add.run(key, owner)
    },
    /** Updates the parts of a merged row. Writes only what differs. */
    refresh(key: string, owners: readonly string[]): Difference {
      const parts = owners.flatMap(owner => partsOf.all(owner))
      const wanted = mergedParts(parts)
      const present = mergedParts(stored.all(key))
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
        removeOne.run(key, ...cells.slice(0, KEY.length))
        change = 'replaced'
      }
      return change
    },
    remove: (key: string) => void removeAll.run(key),
  }
}

/** Merges parts by their key. Parts with a null in the key are left out. Pure. */
function mergedParts(parts: readonly (readonly Cell[])[]): ReadonlyMap<string, readonly Cell[]> {
  const merged = new Map<string, readonly Cell[]>()
  for (const cells of parts) {
    const key = cells.slice(0, KEY.length)
    if (key.includes(null)) continue
    const name = JSON.stringify(key)
    const before = merged.get(name)
    merged.set(name, before ? before.map((cell, index) => cell ?? cells[index] ?? null) : cells)
  }
  return merged
}
