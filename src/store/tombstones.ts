import { CATALOG, tableNamed } from '../catalog.ts'
import type { Cascade, Derivation } from '../resource.ts'
import type { Freshness } from './freshness.ts'
import type { Group, MessageMerge } from './message-merge.ts'
import { quote } from './sql.ts'
import type { Prepare } from './statements.ts'
import type { Withdrawals } from './withdrawals.ts'

export interface TombstoneDeps {
  prepare: Prepare
  /** Tables whose rows are merged into another one. */
  merges: ReadonlyMap<string, Pick<Derivation, 'into' | 'groupBy'> & { merge: MessageMerge }>
  withdrawals: Withdrawals
  freshness: Freshness
}

/** Marks rows as deleted, together with all that goes with them. Returns how many rows were live before. */
export type Tombstone = (table: string, keys: readonly (readonly string[])[], now: string) => number

export function createTombstone({ prepare, merges, withdrawals, freshness }: TombstoneDeps): Tombstone {
  const tombstone: Tombstone = (name, keys, now) => {
    const table = tableNamed(name)
    const where = table.key.map(column => `${quote(column)} = ?`).join(' AND ')
    const mark = prepare(`UPDATE ${quote(name)} SET _deleted_at = ? WHERE ${where} AND _deleted_at IS NULL`)
    const merged = merges.get(name)
    const groups: Group[] = []
    let count = 0
    for (const key of keys) {
      if (mark.run(now, ...key).changes === 0) continue
      count += 1
      withdrawals.note(name, key, now)
      freshness.close(name, key.join('\u0000'))
      forgetFirstRead(name, key)
      const row = prepare(`SELECT * FROM ${quote(name)} WHERE ${where}`).get(...key) as Row
      for (const cascade of table.cascades) apply(cascade, row, now)
      if (merged) groups.push({ key: String(row[merged.groupBy]), isReplaced: true })
    }
    merged?.merge.refresh(groups, now)
    if (merged) withdrawals.follow(merged, new Set(groups.map(({ key }) => key)))
    return count
  }

  /** A row that comes back is pending again, which a read that was put off must not hold up. */
  const forgetFirstRead = (name: string, key: readonly string[]) => {
    for (const feed of FIRST_READS.get(name) ?? []) {
      prepare("DELETE FROM sync_tasks WHERE feed = ? AND scope = '' AND key = ?").run(feed, key.at(-1))
    }
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

/** By table: the item feeds whose first reads are its pending rows. */
const FIRST_READS: ReadonlyMap<string, readonly string[]> = firstReads()

function firstReads(): Map<string, string[]> {
  const reads = new Map<string, string[]>()
  for (const { name, feeds } of CATALOG) {
    for (const [feed, declared] of Object.entries(feeds)) {
      if (declared.mode !== 'item' || !declared.pending) continue
      const { table } = declared.pending
      reads.set(table, [...(reads.get(table) ?? []), `${name}.${feed}`])
    }
  }
  return reads
}

type Row = Record<string, string | number | null>
