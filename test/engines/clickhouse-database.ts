import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { TABLES } from '../../src/catalog/catalog.ts'
import { crmTables } from '../../src/dictionary/crm-tables.ts'
import { isMissingFile } from '../../src/error-code.ts'
import { folderOf } from '../../src/export/crm-tables.ts'
import { quote } from '../../src/store/database/sql.ts'
import { readCrmObjectsAt } from '../../src/store/views/fill-dictionary.ts'
import {
  type Cell,
  CLOCK_TABLE,
  type ExpectedTable,
  expectedTables,
  rowText,
} from '../support/published-cells.ts'
import type { ClickHouseServer } from './clickhouse-servers.ts'

/** What readers see in a ClickHouse database that parley publishes to. */

/** The rows of every view, as sorted texts, and the number of rows. */
export async function shownRows(
  server: ClickHouseServer,
  database: string,
  tables: readonly Pick<ExpectedTable, 'folder' | 'columns'>[],
): Promise<Map<string, string[]>> {
  const shown = new Map<string, string[]>()
  for (const { folder, columns } of tables) {
    const types = new Map(
      (await server.query(
        `SELECT name, type FROM system.columns WHERE database = '${database}' AND table = '${folder}'`,
      )) as [string, string][],
    )
    const cells = columns.map(({ name }) => cellOf(name, types.get(name) ?? ''))
    const rows = await server.query(`SELECT ${cells.join(', ')} FROM ${database}.${quoted(folder)} AS t`)
    const read = rows.map(row => row.map((cell, place) => comparable(cell, columns[place]?.kind ?? '')))
    shown.set(folder, read.map(rowText).sort())
  }
  return shown
}

const cellOf = (name: string, type: string): string =>
  type.includes('DateTime64') ? `toUnixTimestamp64Micro(t.${quoted(name)})` : `t.${quoted(name)}`

export const quoted = (name: string): string => `\`${name.replaceAll(/[\\`]/g, '\\$&')}\``

/** Debian's version has instants and booleans in other forms. */
function comparable(cell: unknown, kind: string): Cell {
  if (cell === null) return null
  if (kind === 'boolean') return Boolean(Number(cell))
  const isText = typeof cell === 'string' && cell.includes('T')
  if ((kind === 'timestamp' || kind === 'instant') && isText) return String(BigInt(Date.parse(cell)) * 1000n)
  return cell as Cell
}

/** Instants and days that DateTime64 and Date32 cannot have. */
export function isOutOfRange(cell: Cell, kind: string): boolean {
  if (cell === null) return false
  const isDay = kind === 'date' || kind === 'day'
  if (!isDay && kind !== 'timestamp' && kind !== 'instant') return false
  const ms = isDay ? Date.parse(String(cell)) : Number(BigInt(String(cell)) / 1000n)
  return ms < Date.UTC(1900, 0, 1) || ms >= Date.UTC(2300, 0, 1)
}

export interface ExpectedDatabase {
  tables: readonly Pick<ExpectedTable, 'folder' | 'columns'>[]
  /** As sorted texts, by table. */
  rows: ReadonlyMap<string, string[]>
}

/** @param isModern whether the server has types for instants and days */
export function expectedDatabase(path: string, isModern: boolean): ExpectedDatabase {
  const db = new Database(path, { readonly: true })
  try {
    const tables = expectedTables(db).filter(({ folder }) => folder !== CLOCK_TABLE)
    const rows = tables.map(({ folder, columns, rows: read }): [string, string[]] => {
      const cells = [...read()].map(row =>
        row.map((cell, place) => (isModern && isOutOfRange(cell, columns[place]?.kind ?? '') ? null : cell)),
      )
      return [folder, cells.map(rowText).sort()]
    })
    return { tables: tables.map(({ folder, columns }) => ({ folder, columns })), rows: new Map(rows) }
  } finally {
    db.close()
  }
}

/** A view of the warehouse that the database has too. */
export interface ExpectedView {
  name: string
  /** The columns that are text in both. */
  columns: readonly string[]
  /** Their cells as sorted texts. */
  rows: string[]
}

/** The views `live_…` and `labelled_…` of typed tables, and the `live_…` views of the other tables without columns. */
export function expectedViews(path: string): ExpectedView[] {
  const typed = readCrmObjectsAt(path).flatMap(object => {
    const [, ...views] = crmTables(object)
    return views.map(view => ({
      name: view.name.slice(0, -object.table.length) + folderOf(object.table),
      view: view.name,
      columns: view.columns.filter(({ kind }) => kind === 'text').map(column => column.name),
    }))
  })
  const declared = [...TABLES.keys()].map(name => ({
    name: `live_${name}`,
    view: `live_${name}`,
    columns: [],
  }))
  const db = new Database(path, { readonly: true })
  try {
    return [...typed, ...declared].map(({ name, view, columns }) => {
      const cells = ['1', ...columns.map(quote)]
      const rows = db
        .prepare<[], Cell[]>(`SELECT ${cells.join(', ')} FROM ${quote(view)}`)
        .raw()
        .all()
      return { name, columns, rows: rows.map(rowText).sort() }
    })
  } finally {
    db.close()
  }
}

export async function viewRows(
  server: ClickHouseServer,
  database: string,
  { name, columns }: Pick<ExpectedView, 'name' | 'columns'>,
): Promise<string[]> {
  const cells = ['1', ...columns.map(column => `t.${quoted(column)}`)]
  const rows = await server.query(`SELECT ${cells.join(', ')} FROM ${database}.${quoted(name)} AS t`)
  return rows.map(row => rowText(row as Cell[])).sort()
}

/** Files of the server that have a text. It removes files meanwhile. */
export function filesWith(folder: string, text: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map(name => join(folder, name))
    .filter(path => contentOf(path)?.includes(text))
}

function contentOf(path: string): Buffer | undefined {
  try {
    return statSync(path).isFile() ? readFileSync(path) : undefined
  } catch (error) {
    if (isMissingFile(error)) return undefined
    throw error
  }
}
