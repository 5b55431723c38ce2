import type { RowOf } from '../../catalog/bookkeeping/table-declaration.ts'
import type { SUSPICION_TABLE } from '../../catalog/bookkeeping/tables.ts'
import { tableNamed } from '../../catalog/catalog.ts'
import { isLive, quote } from '../database/sql.ts'
import type { Prepare } from '../database/sqlite-types.ts'
import { onlyRow } from '../database/statements.ts'

/** One row of a table. `scope` holds all key columns but the last, joined by NUL; '' where the key is one column. */
export interface RowKey {
  table: string
  scope: string
  key: string
}

/**
 * What a denial says of a row. `absent`: it is no longer published. `withheld`: it exists but may not be read. `empty`:
 * its list of parts is empty.
 */
export type Denial = SuspicionRow['means']

type SuspicionRow = RowOf<typeof SUSPICION_TABLE>

export interface Suspicion {
  /** Time of the first denial. */
  since: string
  means: Denial
  /** True when a second request has denied the row too. */
  confirmed: boolean
}

/** Restricts rows to a scope, and to keys that do not match a GLOB pattern. Default: all rows. */
interface RowsOf {
  scope?: string | null | undefined
  butKeys?: string | null | undefined
}

/** @param values the values of the row's key columns */
export function keyOfValues(table: string, values: readonly string[]): RowKey {
  return { table, scope: values.slice(0, -1).join('\u0000'), key: values.at(-1) ?? '' }
}

/** The values of a row's key columns. A scope of one column may contain the separator. */
export function keyValuesOf({ table, scope, key }: RowKey): string[] {
  if (scope === '') return [key]
  const isOneColumn = tableNamed(table).key.length === 2
  return [...(isOneColumn ? [scope] : scope.split('\u0000')), key]
}

export type Suspicions = ReturnType<typeof createSuspicions>

/** Rows that the API has denied and that analysts still see. `engine/deletions/deletion-states.ts` describes the states. */
export function createSuspicions(prepare: Prepare) {
  const where = 'table_name = ? AND scope = ? AND key = ?'
  const find = prepare<Pick<Suspicion, 'since'> & Pick<SuspicionRow, 'means' | 'confirmed'>>(
    `SELECT missing_since AS since, means, confirmed FROM sync_suspicions WHERE ${where}`,
  )
  const note = prepare(
    `INSERT INTO sync_suspicions (table_name, scope, key, missing_since, means) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET missing_since = excluded.missing_since, means = excluded.means, confirmed = 0`,
  )
  const confirm = prepare(`UPDATE sync_suspicions SET confirmed = 1 WHERE ${where}`)
  const end = prepare(`DELETE FROM sync_suspicions WHERE ${where}`)
  const endAll = prepare('DELETE FROM sync_suspicions WHERE table_name = ?')
  const any = prepare('SELECT 1 FROM sync_suspicions WHERE table_name = ? LIMIT 1').pluck()
  const confirmed = prepare<Pick<SuspicionRow, 'scope' | 'key' | 'means'>>(
    'SELECT scope, key, means FROM sync_suspicions WHERE table_name = ? AND confirmed = 1',
  )
  const undecided = `FROM sync_suspicions
    WHERE table_name = @table AND (@scope IS NULL OR scope = @scope) AND confirmed = 0 AND missing_since >= @since
      AND (@butKeys IS NULL OR key NOT GLOB @butKeys)`
  const count = prepare<number>(`SELECT count(*) ${undecided}`).pluck()
  const earliest = prepare<string | null>(`SELECT min(missing_since) ${undecided}`).pluck()
  const latest = prepare<string | null>(
    'SELECT max(missing_since) FROM sync_suspicions WHERE table_name = ? AND confirmed = 0',
  ).pluck()
  return {
    find({ table, scope, key }: RowKey): Suspicion | undefined {
      const row = find.get(table, scope, key)
      return row && { ...row, confirmed: row.confirmed === 1 }
    },
    /** Records a first denial. Replaces an earlier suspicion of the row, confirmed or not. */
    note({ table, scope, key }: RowKey, { since, means }: Pick<Suspicion, 'since' | 'means'>) {
      note.run(table, scope, key, since, means)
    },
    confirm({ table, scope, key }: RowKey) {
      confirm.run(table, scope, key)
    },
    /** Ends the suspicion of a row that the API shows. Returns whether there was a suspicion. */
    end: ({ table, scope, key }: RowKey) => end.run(table, scope, key).changes > 0,
    endAll(table: string) {
      endAll.run(table)
    },
    /** Ends the suspicions of link rows whose owner (`livesWith`) is not live. */
    endWithoutOwner(table: string) {
      const { livesWith } = tableNamed(table)
      if (livesWith === undefined) return
      const owner = tableNamed(livesWith.table)
      const isOwner = `${Object.values(livesWith.on).map(quote).join(' || char(0) || ')} = sync_suspicions.scope`
      prepare(
        `DELETE FROM sync_suspicions WHERE table_name = ? AND NOT EXISTS (
           SELECT 1 FROM ${quote(owner.name)} WHERE ${isOwner} AND ${isLive(owner)})`,
      ).run(table)
    },
    /** True while any row of the table is suspected or confirmed. */
    hasAny: (table: string) => any.get(table) === 1,
    confirmedRows: (table: string) => confirmed.all(table),
    /** Number of suspected rows, not confirmed, that were first denied at an instant or later. */
    countUndecided: (table: string, since: string) =>
      onlyRow(count, { table, since, scope: null, butKeys: null }),
    /** The earliest denial of the rows that `countUndecided` counts. */
    earliestUndecided: (table: string, since: string, { scope = null, butKeys = null }: RowsOf = {}) =>
      earliest.get({ table, since, scope, butKeys }) ?? undefined,
    latestUndecided: (table: string) => latest.get(table) ?? undefined,
    /** Number of a table's rows that analysts see as live, counted no further than `atMost`. */
    liveRows(table: string, atMost: number) {
      const live = `SELECT 1 FROM ${quote(table)} WHERE ${isLive(tableNamed(table))} LIMIT +?`
      return onlyRow(prepare<number>(`SELECT count(*) FROM (${live})`).pluck(), atMost)
    },
  }
}
