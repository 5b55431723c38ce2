import { expect } from 'vitest'
import { METRICS } from '../../src/dictionary/metrics.ts'
import { readQuestions } from '../../src/dictionary/questions.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import type { Cell } from '../support/published-cells.ts'
import type { TableRows } from './engine-process.ts'
import { lakeOfTests } from './lake.ts'

/** The questions and metrics of parley, asked of an engine with the same text as of SQLite. */

/** Questions that are still written for SQLite alone. */
const FOR_SQLITE: readonly string[] = [
  'action-items-past-due',
  'activity-by-member',
  'api-use-by-key',
  'close-dates-moved',
  'contacts-not-spoken-to',
  'coverage-of-a-month',
  'deals-where-a-term-was-said',
  'deals-with-one-contact',
  'external-domains',
  'freshness',
  'meetings-without-crm-link',
  'mentions-of-a-term-by-month',
  'one-deal',
  'one-meeting',
  'playbook-questions-unanswered',
  'response-times-in-thread',
  'stage-changes-last-quarter',
  'talk-ratio-by-meeting',
  'time-to-close-by-stage',
  'who-talks-to-whom',
  'withdrawn-this-month',
]

export const ASKED: readonly { name: string; sql: string }[] = [
  ...readQuestions()
    .filter(({ name }) => !FOR_SQLITE.includes(name))
    .map(({ name, sql }) => ({ name, sql: sql.trimEnd().replace(/;$/, '') })),
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
    expect(rows.map(row => row.map(shortened))).toEqual(wanted.map(row => row.map(shortened)))
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

/** Engines add numbers up in different orders. */
const shortened = (cell: string | number | null): string | number | null =>
  typeof cell === 'number' ? Number(cell.toPrecision(10)) : cell
