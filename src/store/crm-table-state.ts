import type { CrmColumn } from './crm-columns.ts'
import type { Prepare } from './statements.ts'

/** What the database says of its typed tables, in `sync_meta`: kept with them in one transaction, read after a crash. */

export interface MadeTable {
  table: string
  columns: readonly CrmColumn[]
}

export interface CrmTableState {
  /** The table that people read. */
  made?: MadeTable
  /** The one that takes its place as soon as it holds every record; those up to the last id in it are in it. */
  next?: MadeTable
  /** Tables that were replaced, and are emptied bit by bit: dropping a large one takes long. */
  leaving: readonly string[]
}

export function tablesOf({ made, next, leaving }: CrmTableState): string[] {
  return [made, next].flatMap(table => (table ? [table.table] : [])).concat(leaving)
}

export interface CrmTableStates {
  /** By object, as the database has them now. A table's columns are the same array until its table is another one. */
  all(): ReadonlyMap<string, CrmTableState>
  save(object: string, state: CrmTableState): void
  remove(object: string): void
}

const PREFIX = 'crm_table '
/** Counts the writes, so that memory is known to be outdated after one was rolled back. */
const COUNT = 'crm_tables'

export function createCrmTableStates(prepare: Prepare): CrmTableStates {
  const count = prepare('SELECT value FROM sync_meta WHERE key = ?').pluck()
  const read = prepare('SELECT key, value FROM sync_meta WHERE key >= ? AND key < ?').raw()
  const write = prepare(
    'INSERT INTO sync_meta (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value',
  )
  const erase = prepare('DELETE FROM sync_meta WHERE key = ?')
  let known = new Map<string, CrmTableState>()
  let knownAt: string | undefined

  const counted = () => (count.get(COUNT) as string | undefined) ?? '0'
  const reload = () => {
    const at = counted()
    if (at === knownAt) return
    const rows = read.all(PREFIX, `${PREFIX.trimEnd()}!`) as [string, string][]
    known = new Map(
      rows.map(([key, value]) => [key.slice(PREFIX.length), JSON.parse(value) as CrmTableState]),
    )
    knownAt = at
  }
  const written = () => {
    knownAt = String(Number(counted()) + 1)
    write.run(COUNT, knownAt)
  }

  return {
    all: () => {
      reload()
      return known
    },
    save(object, state) {
      reload()
      write.run(PREFIX + object, JSON.stringify(state))
      known.set(object, state)
      written()
    },
    remove(object) {
      reload()
      erase.run(PREFIX + object)
      known.delete(object)
      written()
    },
  }
}
