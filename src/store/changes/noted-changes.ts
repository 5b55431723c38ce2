import { randomUUID } from 'node:crypto'
import { SEGMENT_TABLE } from '../../catalog/bookkeeping/tables.ts'
import { describedTable } from '../../dictionary/dictionary.ts'
import { isDerived } from '../../dictionary/report-tables.ts'
import { columnNames, tableNames } from '../database/existing-tables.ts'
import { quote } from '../database/sql.ts'
import type { Prepare, Sqlite, StoredCell } from '../database/sqlite-types.ts'
import { onlyRow } from '../database/statements.ts'
import { createMeta, META, readNote } from '../sync/meta.ts'
import { keyNote, lastChange, NO_TIME, readOpenings, WHOLE, withOpening } from './changes-since.ts'
import { DIVISIONS, type Division, isExported, LARGE_OWNERS } from './divisions.ts'

export type NotedChanges = ReturnType<typeof createNotedChanges>

/** The notes of one table since the last `store`. A null stands for rows without a time. */
interface TableNotes {
  parts: Set<string | null>
  moves: Set<string | null>
  owners: Set<StoredCell>
}

/**
 * Notes which parts of the tables a transaction changes (`divisions.ts`), and stores the notes in the same transaction.
 * Temporary triggers of the writer's connection see every statement, whatever code runs it. Other programs have no such
 * triggers. Until `store`, notes are in memory, so notes of a rolled back savepoint stay: a noted part may be
 * unchanged. Begins to note changes, and records the opening of the warehouse: call it before anything else is written.
 */
export function createNotedChanges(db: Sqlite, prepare: Prepare) {
  let change = lastChange(db)
  const newRows = createNewRows(prepare)
  recordOpening(db, prepare, change, newRows)
  const notes = new Map<string, TableNotes>()
  const notesOf = (table: string): TableNotes => {
    const known = notes.get(table)
    if (known) return known
    const created: TableNotes = { parts: new Set(), moves: new Set(), owners: new Set() }
    notes.set(table, created)
    return created
  }
  installTriggers(db, notesOf, newRows)
  const monthOf = createOwnersMonth(prepare)
  const upsert = prepare(
    `INSERT INTO sync_changed_parts (table_name, part, change) VALUES (?, ?, ?)
     ON CONFLICT DO UPDATE SET change = excluded.change`,
  )
  return {
    /** Notes a row of a typed CRM table. These tables have no triggers, since each may be replaced at any time. */
    typedRow: (table: string, id: string) => void notesOf(table).parts.add(keyNote([id])),
    /** Notes a table as a whole, such as a typed CRM table that may have been replaced. */
    wholeTable: (table: string) => void notesOf(table).parts.add(WHOLE),
    /** Whether a row of the table may have changed since the last `store`. */
    isNoted: (table: string) => notes.has(table),
    /** Stores the notes. Call it as the last step of every transaction. */
    store() {
      for (const [table, months] of newRows.take())
        for (const month of months) notesOf(table).moves.add(month)
      if (notes.size === 0) return
      change += 1
      for (const [table, parts] of changedParts(notes, monthOf))
        for (const part of parts) upsert.run(table, part ?? NO_TIME, change)
      notes.clear()
    },
  }
}

function recordOpening(db: Sqlite, prepare: Prepare, change: number, newRows: NewRows): void {
  const meta = createMeta(prepare)
  const record = db.transaction(() => {
    const openings = withOpening(readOpenings(meta.get), [randomUUID(), change])
    meta.set(META.openings, JSON.stringify(openings))
    newRows.begin()
  })
  record.immediate()
}

/** The columns from which `sync_coverage` is computed. */
const COVERAGE_COLUMNS = [
  'feed',
  'from_at',
  'to_at',
  'listed_at',
] as const satisfies readonly (keyof typeof SEGMENT_TABLE.columns)[]

function installTriggers(
  db: Sqlite,
  notesOf: (table: string) => TableNotes,
  newRows: Pick<NewRows, 'removed'>,
): void {
  const define = (name: string, note: (of: TableNotes, cells: StoredCell[]) => void) =>
    db.function(name, { varargs: true }, (table: string, ...cells: StoredCell[]) => {
      note(notesOf(table), cells)
      return null
    })
  const addTo = (kind: keyof TableNotes) => (of: TableNotes, cells: StoredCell[]) => {
    for (const cell of cells) (of[kind] as Set<StoredCell>).add(cell)
  }
  define(NOTING.parts, addTo('parts'))
  define(NOTING.moves, addTo('moves'))
  define(NOTING.owners, addTo('owners'))
  define(NOTING.key, ({ parts }, cells) => parts.add(keyNote(cells)))
  db.function(NOTING.removed, (table: string, id: number) => {
    newRows.removed(table, id)
    return null
  })
  const columnsOf = (table: string) =>
    describedTable(table)?.columns.flatMap(({ name }) => (isExported(name) ? [name] : [])) ?? []
  // Another program may have made a view, or a table with other columns, under the name of a report table.
  const tables = tableNames(db)
  const isPresent = (table: string) => {
    const found = columnNames(db, table)
    return tables.has(table) && columnsOf(table).every(name => found.has(name))
  }
  const present = [...DIVISIONS].filter(([table]) => !isDerived(table) || isPresent(table))
  const triggers = present.flatMap(([table, division]) => changeTriggers(table, division, columnsOf(table)))
  db.exec([...triggers, ...viewSourceTriggers(SEGMENT_TABLE.name, COVERAGE_COLUMNS)].join(';\n'))
}

/** @returns a function that finds the month of an owner; null when the owner has no time or does not exist */
function createOwnersMonth(prepare: Prepare) {
  const statements = new Map(
    [...DIVISIONS].flatMap(([table, division]) => {
      if (division.by !== 'month-of-owner') return []
      const { owner, column, on } = division
      const sql = `SELECT substr(${quote(column)}, 1, 7) FROM ${quote(owner)} WHERE ${quote(on.theirs)} = ?`
      return [[table, prepare<string | null>(sql).pluck()] as const]
    }),
  )
  return (table: string, owner: StoredCell): string | null => statements.get(table)?.get(owner) ?? null
}

/** @returns the parts to store. The months of owners are read here, after the transaction has written all owners. */
function changedParts(
  notes: ReadonlyMap<string, TableNotes>,
  monthOf: (table: string, owner: StoredCell) => string | null,
): ReadonlyMap<string, ReadonlySet<string | null>> {
  const changed = new Map<string, Set<string | null>>()
  const add = (table: string, parts: Iterable<string | null>) => {
    const known = changed.get(table) ?? new Set()
    for (const part of parts) known.add(part)
    if (known.size > 0) changed.set(table, known)
  }
  for (const [table, { parts, moves, owners }] of notes) {
    add(table, parts)
    add(table, moves)
    for (const owner of owners) add(table, [monthOf(table, owner)])
    if (moves.size > 0) for (const owned of OWNED.get(table) ?? []) add(owned, moves)
  }
  return changed
}

/** By owner table: the tables whose rows are in the months of its rows. */
const OWNED: ReadonlyMap<string, readonly string[]> = ownedTables()

function ownedTables(): Map<string, string[]> {
  const owned = new Map<string, string[]>()
  for (const [table, division] of DIVISIONS) {
    if (division.by !== 'month-of-owner') continue
    owned.set(division.owner, [...(owned.get(division.owner) ?? []), table])
  }
  return owned
}

type NewRows = ReturnType<typeof createNewRows>

/** By table: the greatest `_id` that was found. */
type Looked = Readonly<Record<string, number>>

/**
 * Finds the new rows of the largest tables by their `_id`, which grows with each insertion. The greatest `_id` found so
 * far is stored in the transaction, so that a rollback undoes it too.
 */
function createNewRows(prepare: Prepare) {
  const meta = createMeta(prepare)
  const removals = new Map<string, number>()
  const tables = LARGE_OWNERS.map(table => {
    const division = DIVISIONS.get(table)
    if (division?.by !== 'month') throw new TypeError(`${table} has no time`)
    const month = `substr(${quote(division.column)}, 1, 7)`
    return {
      table,
      greatest: prepare<number>(`SELECT coalesce(max(_id), 0) FROM ${quote(table)}`).pluck(),
      months: prepare<string | null>(`SELECT DISTINCT ${month} FROM ${quote(table)} WHERE _id > ?`).pluck(),
    }
  })
  const save = (looked: Looked) => meta.set(META.notedRows, JSON.stringify(looked))
  const present = (): Looked =>
    Object.fromEntries(tables.map(({ table, greatest }) => [table, onlyRow(greatest)]))
  return {
    /** Looks only at rows that are inserted from now on. Call it inside a transaction. */
    begin: () => save(present()),
    /** Notes a deleted row: a new row may get its `_id`. */
    removed: (table: string, id: number) => void removals.set(table, Math.min(id, removals.get(table) ?? id)),
    /** Returns by table the months of the rows inserted since the last call. Call it inside a transaction. */
    take() {
      const looked = readNote<Looked>(meta.get, META.notedRows) ?? {}
      const now = present()
      const found = new Map<string, readonly (string | null)[]>()
      for (const { table, months } of tables) {
        const after = Math.min(looked[table] ?? 0, (removals.get(table) ?? Number.POSITIVE_INFINITY) - 1)
        if ((now[table] ?? 0) > after) found.set(table, months.all(after))
      }
      if (tables.some(({ table }) => now[table] !== looked[table])) save(now)
      removals.clear()
      return found
    },
  }
}

/**
 * The SQL functions that the temporary triggers call with the name of the table and with cells. The largest tables and
 * the tables that they own have no trigger for insertions, since any trigger doubles the processor time of an INSERT:
 * `NewRows` finds the new rows by their `_id`.
 */
const NOTING = {
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

/** @param columns the columns whose values are exported */
function changeTriggers(table: string, division: Division, columns: readonly string[]): string[] {
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
function viewSourceTriggers(table: string, columns: readonly string[]): string[] {
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
