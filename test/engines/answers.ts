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

/** The engine gives the rows of SQLite, in the same order. */
export function expectAnswer(sql: string, found: TableRows): void {
  const db = openSqlite(lakeOfTests().week.database, { readonly: true })
  try {
    const statement = db.prepare(sql)
    expect(found.columns).toEqual(statement.columns().map(({ name }) => name))
    const wanted = (statement.raw().all() as Cell[][]).map(row => row.map(plain))
    const rows = found.rows.map(row => row.map(plain))
    expect(rows.map(row => row.length)).toEqual(wanted.map(row => row.length))
    const different = rows.flatMap((row, place) =>
      row.flatMap((cell, at) =>
        areSame(cell, wanted[place]?.[at] ?? null) ? [] : [[place, cell, wanted[place]?.[at]]],
      ),
    )
    expect(different).toEqual([])
  } finally {
    db.close()
  }
}

const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

/** Engines have types for truth, instants and numbers of any length where SQLite has numbers and texts. */
function plain(cell: Cell): string | number | null {
  if (typeof cell === 'boolean') return Number(cell)
  if (typeof cell !== 'string') return cell
  if (INSTANT.test(cell)) return Date.parse(cell) * 1000
  return /^-?\d+(\.\d+)?$/.test(cell) ? Number(cell) : cell
}

/** Engines add numbers up in different orders, so one that is rounded to a digit may be the next one. */
function areSame(one: string | number | null, other: string | number | null): boolean {
  if (typeof one !== 'number' || typeof other !== 'number') return one === other
  const isRounded = [one, other].every(number => Math.abs(number * 10 - Math.round(number * 10)) < 1e-6)
  const areWhole = Number.isInteger(one) && Number.isInteger(other)
  return Math.abs(one - other) <= (isRounded && !areWhole ? 0.1001 : 1e-9 * Math.abs(other))
}
