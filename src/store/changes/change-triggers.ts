import { quote } from '../database/sql.ts'
import { DIVISIONS, type Division } from './divisions.ts'
import { WHOLE } from './part-notes.ts'

/**
 * The temporary triggers that note changed parts, as SQL. Each calls a function of the connection with the name of the
 * table and with cells. Pure.
 */
export const NOTING = {
  /** Parts of the table. */
  parts: 'noted_parts',
  /** Months to or from which a row has moved with all rows that it owns. */
  moves: 'noted_moves',
  /** Keys of the owners of changed rows. */
  owners: 'noted_owners',
  /** The key of a changed row. */
  key: 'noted_key',
} as const

const OWNERS: ReadonlySet<string> = new Set(
  [...DIVISIONS.values()].flatMap(division => (division.by === 'month-of-owner' ? [division.owner] : [])),
)

type Row = 'NEW' | 'OLD'

/** @param columns those whose values are exported */
export function changeTriggers(table: string, division: Division, columns: readonly string[]): string[] {
  const on = (name: string, when: string, ...calls: string[]) => trigger(table, name, when, calls)
  switch (division.by) {
    case 'month': {
      const month = (row: Row) => `substr(${row}.${quote(division.column)}, 1, 7)`
      const alone = OWNERS.has(table) ? NOTING.moves : NOTING.parts
      const moves = `UPDATE OF ${quote(division.column)}`
      return [
        on('insert', 'INSERT', call(alone, table, month('NEW'))),
        // The rows of a deleted owner no longer have a time.
        on('delete', 'DELETE', call(alone, table, month('OLD'), 'NULL')),
        on('update', updateOf(columns), call(NOTING.parts, table, month('OLD'), month('NEW'))),
        on('move', moves, call(NOTING.moves, table, month('OLD'), month('NEW'))),
      ].filter((_, place) => place < 3 || OWNERS.has(table))
    }
    case 'month-of-owner': {
      const owner = (row: Row) => `${row}.${quote(division.on.mine)}`
      return [
        on('insert', 'INSERT', call(NOTING.owners, table, owner('NEW'))),
        on('delete', 'DELETE', call(NOTING.owners, table, owner('OLD'))),
        on('update', updateOf(columns), call(NOTING.owners, table, owner('OLD'), owner('NEW'))),
      ]
    }
    case 'key': {
      const key = (row: Row) => division.columns.slice(0, 2).map(column => `${row}.${quote(column)}`)
      const note = (row: Row) => call(NOTING.key, table, ...key(row))
      return [
        on('insert', 'INSERT', note('NEW')),
        on('delete', 'DELETE', note('OLD')),
        on('update', updateOf(columns), note('OLD'), note('NEW')),
      ]
    }
  }
}

/** The triggers of a table that is not exported but from which an exported view is computed. */
export function viewSourceTriggers(table: string, columns: readonly string[]): string[] {
  return [
    ['insert', 'INSERT'],
    ['delete', 'DELETE'],
    ['update', updateOf(columns)],
  ].map(([name = '', when = '']) => trigger(table, name, when, [call(NOTING.parts, table, `'${WHOLE}'`)]))
}

const updateOf = (columns: readonly string[]) => `UPDATE OF ${columns.map(quote).join(', ')}`

const call = (name: string, table: string, ...cells: string[]) =>
  `SELECT ${name}(${[`'${table}'`, ...cells].join(', ')});`

const trigger = (table: string, name: string, when: string, calls: readonly string[]) =>
  `CREATE TEMP TRIGGER noted_change_${table}_${name} AFTER ${when} ON main.${quote(table)} BEGIN ${calls.join(' ')} END`
