import type { NotedChanges } from '../changes/noted-changes.ts'
import type { Prepare } from '../database/sqlite-types.ts'
import { createMeta, readNote } from '../sync/meta.ts'
import type { CrmColumn } from './columns.ts'

/** The state of the typed tables, stored in `sync_meta` in the transaction that changes them. */

export interface TypedTable {
  table: string
  columns: readonly CrmColumn[]
}

export interface CrmTableState {
  /** The present table, which people read. */
  made?: TypedTable
  /** The table that replaces `made` once it is complete. `next` holds every record up to the greatest id in it. */
  next?: TypedTable
  /** Replaced tables, which are emptied in batches before they are dropped: dropping a large table takes long. */
  leaving: readonly string[]
}

export function tableNamesOf({ made, next, leaving }: CrmTableState): string[] {
  return [made, next].flatMap(table => (table ? [table.table] : [])).concat(leaving)
}

export type CrmTableStates = ReturnType<typeof createCrmTableStates>

const PREFIX = 'crm_table '
/** Key of a counter of writes. A rollback makes it differ from the counter in memory, so the states are read again. */
const COUNT = 'crm_tables'

/** The states by object, for a connection that may only read. */
export const readCrmTableStates = (prepare: Prepare): ReadonlyMap<string, CrmTableState> =>
  statesReader(prepare)()

function statesReader(prepare: Prepare): () => Map<string, CrmTableState> {
  const read = prepare<[string, string]>('SELECT key, value FROM sync_meta WHERE key >= ? AND key < ?').raw()
  return () =>
    new Map(
      read.all(PREFIX, `${PREFIX.trimEnd()}!`).flatMap(([key, value]) => {
        const state = readNote<CrmTableState>(() => value, key)
        return state ? [[key.slice(PREFIX.length), state]] : []
      }),
    )
}

/** @param changes gets each table whose state changes, since the table may have been replaced */
export function createCrmTableStates(prepare: Prepare, changes: Pick<NotedChanges, 'wholeTable'>) {
  const meta = createMeta(prepare)
  const read = statesReader(prepare)
  let known = new Map<string, CrmTableState>()
  let knownAt: string | undefined

  const storedCount = () => meta.get(COUNT) ?? '0'
  const reload = () => {
    const at = storedCount()
    if (at === knownAt) return
    known = read()
    knownAt = at
  }
  const raiseCount = () => {
    knownAt = String(Number(storedCount()) + 1)
    meta.set(COUNT, knownAt)
  }

  return {
    /** The current states by object. A table keeps the same `columns` array, except after a rollback. */
    all: (): ReadonlyMap<string, CrmTableState> => {
      reload()
      return known
    },
    save(object: string, state: CrmTableState) {
      reload()
      meta.set(PREFIX + object, JSON.stringify(state))
      known.set(object, state)
      raiseCount()
      if (state.made) changes.wholeTable(state.made.table)
    },
    remove(object: string) {
      reload()
      meta.remove(PREFIX + object)
      known.delete(object)
      raiseCount()
    },
  }
}
