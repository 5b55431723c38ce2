import {
  type CrmCell,
  type CrmColumn,
  type CrmField,
  cellOf,
  createNames,
  LEADING_COLUMNS,
  labelsOf,
  type Names,
  SQL_TYPES,
  storedName,
  TRAILING_COLUMNS,
} from './crm-columns.ts'
import type { Sqlite } from './open.ts'
import { placeholders, quote } from './sql.ts'
import type { View } from './views.ts'

/** Typed tables as SQL: how one is made, written and shown. */

/** Whose names a new table or index must not have. */
export function namesInUse(db: Sqlite): Names {
  return createNames(db.prepare('SELECT name FROM sqlite_master').pluck().all() as string[])
}

export function liveView(table: string): string {
  return `live_${table}`
}

export function labelledView(table: string): string {
  return `labelled_${table}`
}

/** Makes an empty table with its indices. Their names tell what they are for, unless `table` is one to be renamed. */
export function makeTable(db: Sqlite, table: string, finalName: string, columns: readonly CrmColumn[]): void {
  const definitions = [
    '"id" TEXT PRIMARY KEY NOT NULL',
    ...columns.map(({ column, form }) => `${quote(column)} ${SQL_TYPES[form]}`),
    ...TRAILING_COLUMNS.map(column => `${quote(column)} TEXT`),
  ]
  db.exec(`CREATE TABLE ${quote(table)} (\n  ${definitions.join(',\n  ')}\n) STRICT`)
  const indexed = columns.filter(({ indexed }) => indexed)
  if (indexed.length === 0) return
  const names = namesInUse(db)
  for (const { column } of indexed) {
    const name = names.take(`${finalName}_by_${column}`)
    db.exec(`CREATE INDEX ${quote(name)} ON ${quote(table)} (${quote(column)})`)
  }
}

/** Views over a table as it is, which may have been changed under an older one of its name: none is looked through. */
export function renameTable(db: Sqlite, from: string, to: string): void {
  db.pragma('legacy_alter_table = ON')
  try {
    db.exec(`ALTER TABLE ${quote(from)} RENAME TO ${quote(to)}`)
  } finally {
    db.pragma('legacy_alter_table = OFF')
  }
}

export function tableExists(db: Sqlite, table: string): boolean {
  return db.prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?").get(table) !== undefined
}

/** Rows without the deleted ones: under the columns' names, and under those that people see. */
export function viewsOf(
  table: string,
  columns: readonly CrmColumn[],
  fields: readonly CrmField[],
): readonly View[] {
  const labels = labelsOf(columns, fields)
  const select = (names: readonly string[]) => {
    const shown = [...LEADING_COLUMNS, ...names, 'created_at', 'updated_at']
    return `SELECT ${shown.map((name, index) => aliased(sourceOf(columns, index, name), name)).join(', ')} FROM ${quote(table)} t WHERE t._deleted_at IS NULL`
  }
  return [
    { name: liveView(table), select: select(columns.map(({ column }) => column)) },
    { name: labelledView(table), select: select(labels) },
  ].map(({ name, select: sql }) => ({ name, sql: `CREATE VIEW ${quote(name)} AS ${sql}` }))
}

/** The column that stands at a place of a view. */
function sourceOf(columns: readonly CrmColumn[], index: number, name: string): string {
  return columns[index - LEADING_COLUMNS.length]?.column ?? name
}

function aliased(column: string, name: string): string {
  return column === name ? `t.${quote(column)}` : `t.${quote(column)} AS ${quote(name)}`
}

/** A record as its row has it. */
export interface CrmRow {
  id: string
  /** JSON object of the values by field name, or whatever else stands there. */
  fields: unknown
  createdAt: string | null
  updatedAt: string | null
  deletedAt: string | null
}

export interface CrmTableWriter {
  put(row: CrmRow): void
  mark(id: string, deletedAt: string | null): void
  remove(id: string): void
}

export function createCrmTableWriter(
  db: Sqlite,
  table: string,
  columns: readonly CrmColumn[],
): CrmTableWriter {
  const names = [...LEADING_COLUMNS, ...columns.map(({ column }) => column), ...TRAILING_COLUMNS].map(quote)
  const sets = names.slice(1).map(name => `${name} = excluded.${name}`)
  const upsert = db.prepare(
    `INSERT INTO ${quote(table)} (${names.join(', ')}) VALUES (${placeholders(names.length)})
     ON CONFLICT ("id") DO UPDATE SET ${sets.join(', ')}`,
  )
  const mark = db.prepare(`UPDATE ${quote(table)} SET _deleted_at = ? WHERE "id" = ?`)
  const remove = db.prepare(`DELETE FROM ${quote(table)} WHERE "id" = ?`)
  const places = new Map(columns.map(({ field, form }, index) => [field, { form, index: index + 1 }]))
  const width = names.length
  return {
    put({ id, fields, createdAt, updatedAt, deletedAt }) {
      const cells: CrmCell[] = new Array<CrmCell>(width).fill(null)
      cells[0] = id
      if (typeof fields === 'object' && fields !== null && !Array.isArray(fields)) {
        for (const [name, value] of Object.entries(fields)) {
          const place = places.get(storedName(name))
          if (place) cells[place.index] = cellOf(place.form, value)
        }
      }
      cells[width - 3] = createdAt
      cells[width - 2] = updatedAt
      cells[width - 1] = deletedAt
      upsert.run(cells)
    },
    mark: (id, deletedAt) => {
      mark.run(deletedAt, id)
    },
    remove: id => {
      remove.run(id)
    },
  }
}
