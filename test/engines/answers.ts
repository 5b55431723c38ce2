import { expect } from 'vitest'
import { METRICS } from '../../src/dictionary/metrics.ts'
import { readQuestions } from '../../src/dictionary/questions.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import type { Cell } from '../support/published-cells.ts'
import type { TableRows } from './engine-process.ts'
import { lakeOfTests } from './lake.ts'

/** The questions and metrics of parley, asked of an engine with the same text as of SQLite. */

export const ASKED: readonly { name: string; sql: string }[] = [
  ...readQuestions().map(({ name, sql }) => ({ name, sql: sql.trimEnd().replace(/;$/, '') })),
  ...METRICS.map(({ name, dataset, expression, filter }) => ({
    name: `the metric ${name}`,
    sql: `SELECT ${expression(value => value)} AS value FROM ${dataset} WHERE ${filter}`,
  })),
]

/** The engine runs the text and gives the rows of SQLite, in the same order. */
export async function expectAnswer(ask: (sql: string) => Promise<TableRows>, sql: string): Promise<void> {
  const db = openSqlite(lakeOfTests().week.database, { readonly: true })
  try {
    const found = await ask(sql)
    expect(found.columns).toEqual(
      db
        .prepare(sql)
        .columns()
        .map(({ name }) => name),
    )
    const exact = unrounded(sql)
    const rows = exact === sql ? found.rows : (await ask(exact)).rows
    const wanted = db.prepare(exact).raw().all() as Cell[][]
    expect(found.rows).toHaveLength(wanted.length)
    expect(rows.map(comparable)).toEqual(wanted.map(comparable))
  } finally {
    db.close()
  }
}

/** 8.95 rounded is 8.9 in SQLite, and 9.0 in other engines. The function in its place takes the same values. */
const unrounded = (sql: string): string => sql.replace(/\bround\(/g, 'coalesce(')

const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

const comparable = (row: readonly Cell[]) => row.map(cell => shortened(plain(cell)))

/** Engines have types for truth, instants and numbers of any length where SQLite has numbers and texts. */
function plain(cell: Cell): string | number | null {
  if (typeof cell === 'boolean') return Number(cell)
  if (typeof cell !== 'string') return cell
  if (INSTANT.test(cell)) return Date.parse(cell) * 1000
  return /^-?\d+(\.\d+)?$/.test(cell) ? Number(cell) : cell
}

/** Engines add numbers up in different orders. */
const shortened = (cell: string | number | null): string | number | null =>
  typeof cell === 'number' ? Number(cell.toPrecision(10)) : cell
