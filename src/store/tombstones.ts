import { tableNamed } from '../catalog.ts'
import type { Cascade } from '../resource.ts'
import type { Group, MessageMerge } from './message-merge.ts'
import { quote } from './sql.ts'
import type { Prepare } from './statements.ts'

export interface TombstoneDeps {
  prepare: Prepare
  /** Tables whose rows are merged into another one. */
  merges: ReadonlyMap<string, { merge: MessageMerge; groupBy: string }>
}

/** Marks rows as deleted, together with all that goes with them. Returns how many rows were live before. */
export type Tombstone = (table: string, keys: readonly (readonly string[])[], now: string) => number

export function createTombstone({ prepare, merges }: TombstoneDeps): Tombstone {
  const tombstone: Tombstone = (name, keys, now) => {
    const table = tableNamed(name)
    const where = table.key.map(column => `${quote(column)} = ?`).join(' AND ')
    const mark = prepare(`UPDATE ${quote(name)} SET _deleted_at = ? WHERE ${where} AND _deleted_at IS NULL`)
    const groups: Group[] = []
    let count = 0
    for (const key of keys) {
      if (mark.run(now, ...key).changes === 0) continue
      count += 1
      const row = prepare(`SELECT * FROM ${quote(name)} WHERE ${where}`).get(...key) as Row
      for (const cascade of table.cascades) apply(cascade, row, now)
      const merged = merges.get(name)
      if (merged) groups.push({ header: row[merged.groupBy] as string | null, id: row['id'] as string })
    }
    merges.get(name)?.merge.refresh(groups, now)
    return count
  }

  const apply = (cascade: Cascade, row: Row, now: string) => {
    const columns = Object.entries(cascade.on)
    const where = columns.map(([theirs]) => `${quote(theirs)} = ?`).join(' AND ')
    const values = columns.map(([, mine]) => row[mine])
    const target = quote(cascade.table)
    if (cascade.effect === 'remove') {
      prepare(`DELETE FROM ${target} WHERE ${where}`).run(...values)
      return
    }
    const key = tableNamed(cascade.table).key.map(quote).join(', ')
    const live = prepare(`SELECT ${key} FROM ${target} WHERE ${where} AND _deleted_at IS NULL`).raw()
    tombstone(cascade.table, live.all(...values) as string[][], now)
  }

  return tombstone
}

type Row = Record<string, string | number | null>
