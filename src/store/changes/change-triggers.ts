import { quote } from '../database/sql.ts'
import { DIVISIONS, type Division, LARGE_OWNERS } from './divisions.ts'
import { WHOLE } from './part-notes.ts'

/**
 * The temporary triggers that note changed parts, as SQL. Each calls a function of the connection with the name of the
 * table and with cells. The largest tables and those that they own have none for insertions, since any trigger doubles
 * the processor time of an INSERT: the new rows are found by their `_id`. Pure.
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
  /** The `_id` of a deleted row of a table in `LARGE_OWNERS`. */
  removed: 'noted_removed',
} as const

const OWNERS: ReadonlySet<string> = new Set(
  [...DIVISIONS.values()].flatMap(division => (division.by === 'month-of-owner' ? [division.owner] : [])),
)

type Row = 'NEW' | 'OLD'

/** @param columns those whose values are exported */
export function changeTriggers(table: string, division: Division, columns: readonly string[]): string[] {
  const on = (name: string, when: string, ...calls: string[]) => trigger(table, name, when, calls)
  switch (division.by) {
    case 'month':
      return LARGE_OWNERS.includes(table)
        ? largeTriggers(table, division, columns)
        : monthTriggers(table, division, columns)
    case 'month-of-owner': {
      const owner = (row: Row) => `${row}.${quote(division.on.mine)}`
      const changes = [
        on('delete', 'DELETE', call(NOTING.owners, table, owner('OLD'))),
        on('update', updateOf(columns), call(NOTING.owners, table, owner('OLD'), owner('NEW'))),
      ]
      if (LARGE_OWNERS.includes(division.owner)) return changes
      return [...changes, on('insert', 'INSERT', call(NOTING.owners, table, owner('NEW')))]
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

type ByMonth = Extract<Division, { by: 'month' }>

const monthIn = (row: Row, { column }: ByMonth) => `substr(${row}.${quote(column)}, 1, 7)`

function monthTriggers(table: string, division: ByMonth, columns: readonly string[]): string[] {
  const [before, after] = [monthIn('OLD', division), monthIn('NEW', division)]
  const isOwner = OWNERS.has(table)
  const alone = isOwner ? NOTING.moves : NOTING.parts
  const moves = call(NOTING.moves, table, before, after)
  return [
    trigger(table, 'insert', 'INSERT', [call(alone, table, after)]),
    // The rows of a deleted owner no longer have a time.
    trigger(table, 'delete', 'DELETE', [call(alone, table, before, 'NULL')]),
    trigger(table, 'update', updateOf(columns), [call(NOTING.parts, table, before, after)]),
    ...(isOwner ? [trigger(table, 'move', updateOf([division.column]), [moves])] : []),
  ]
}

function largeTriggers(table: string, division: ByMonth, columns: readonly string[]): string[] {
  const [before, after] = [monthIn('OLD', division), monthIn('NEW', division)]
  return [
    trigger(table, 'delete', 'DELETE', [
      call(NOTING.moves, table, before, 'NULL'),
      call(NOTING.removed, table, 'OLD._id'),
    ]),
    trigger(table, 'update', updateOf(columns), [call(NOTING.moves, table, before, after)]),
  ]
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
