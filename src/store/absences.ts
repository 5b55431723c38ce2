import { quote } from './sql.ts'
import type { Prepare } from './statements.ts'

/** Rows that lists no longer show: suspected until there is evidence, confirmed until the round ends. */
export interface Absences {
  suspect(table: string, scope: string, key: string, now: string): void
  /** Keys suspected up to an instant, the begin of a pass. */
  suspectedBefore(table: string, scope: string, began: string): string[]
  confirm(table: string, scope: string, key: string, now: string): void
  confirmed(table: string): { scope: string; key: string }[]
  /** A key that was seen again, or that evidence shows to exist. */
  clear(table: string, scope: string, key: string): void
  clearAll(table: string): void
  /** How many keys of the table are suspected or confirmed. */
  count(table: string): number
  /** True while any key of the table is suspected or confirmed. */
  any(table: string): boolean
  /** Live rows of a table, for the safety catch. */
  liveRows(table: string): number
}

export function createAbsences(prepare: Prepare): Absences {
  const suspect = prepare(
    'INSERT OR IGNORE INTO sync_absences (table_name, scope, key, missing_since) VALUES (?, ?, ?, ?)',
  )
  const before = prepare(
    'SELECT key FROM sync_absences WHERE table_name = ? AND scope = ? AND missing_since <= ?',
  ).pluck()
  const confirm = prepare(
    `INSERT INTO sync_absences (table_name, scope, key, missing_since, confirmed) VALUES (?, ?, ?, ?, 1)
     ON CONFLICT DO UPDATE SET confirmed = 1`,
  )
  const confirmed = prepare('SELECT scope, key FROM sync_absences WHERE table_name = ? AND confirmed = 1')
  const clear = prepare('DELETE FROM sync_absences WHERE table_name = ? AND scope = ? AND key = ?')
  const clearAll = prepare('DELETE FROM sync_absences WHERE table_name = ?')
  const count = prepare('SELECT count(*) FROM sync_absences WHERE table_name = ?').pluck()
  const any = prepare('SELECT 1 FROM sync_absences WHERE table_name = ? LIMIT 1').pluck()
  return {
    suspect: (table, scope, key, now) => {
      suspect.run(table, scope, key, now)
    },
    suspectedBefore: (table, scope, at) => before.all(table, scope, at) as string[],
    confirm: (table, scope, key, now) => {
      confirm.run(table, scope, key, now)
    },
    confirmed: table => confirmed.all(table) as { scope: string; key: string }[],
    clear: (table, scope, key) => {
      clear.run(table, scope, key)
    },
    clearAll: table => {
      clearAll.run(table)
    },
    count: table => count.get(table) as number,
    any: table => any.get(table) === 1,
    liveRows: table =>
      prepare(`SELECT count(*) FROM ${quote(table)} WHERE _deleted_at IS NULL`)
        .pluck()
        .get() as number,
  }
}
