import { errorCode } from '../../base/errors.ts'
import type { DescribedTable } from '../../dictionary/described-table.ts'
import { columnNames } from '../database/existing-tables.ts'
import type { Sqlite, StoredCell } from '../database/sqlite-types.ts'
import { onlyRow } from '../database/statements.ts'
import { type DataTest, dataTests, type Enforced } from './plan.ts'

/** Runs the tests of a warehouse's content, each as one statement, so that a process that writes is not held up. */

export interface DataTestResult {
  test: DataTest
  /** How many rows fail the test. */
  rows: number
  /** For a reference: how many rows have a value. */
  of: number | undefined
  /** The columns `named` of the first rows that fail. */
  keys: readonly string[]
}

export interface SkippedTest {
  test: DataTest
  /** The table or column that the file lacks. */
  missing: string
}

/** Yields the result of each test, or what is missing for it in a file of another version. */
export function* runDataTests(
  db: Sqlite,
  tables: readonly DescribedTable[],
): Generator<DataTestResult | SkippedTest> {
  const present = new Map<string, ReadonlySet<string>>()
  const columnsOf = (table: string) => {
    const known = present.get(table) ?? columnNames(db, table)
    present.set(table, known)
    return known
  }
  for (const test of dataTests(tables, table => enforcedBy(db, table))) {
    const missing = missingFor(test, columnsOf)
    yield missing === undefined ? resultOf(db, test) : { test, missing }
  }
}

function missingFor({ reads, table, columns }: DataTest, columnsOf: (table: string) => ReadonlySet<string>) {
  const absent = reads.find(name => columnsOf(name).size === 0)
  if (absent !== undefined) return absent
  const column = columns.find(name => !columnsOf(table).has(name))
  return column === undefined ? undefined : `${table}.${column}`
}

function resultOf(db: Sqlite, test: DataTest): DataTestResult | SkippedTest {
  try {
    const found = db.prepare<unknown[], StoredCell[]>(test.sql).raw().all()
    const all = test.isPromised ? undefined : test.all
    return {
      test,
      rows: Number(found[0]?.at(-1) ?? 0),
      of: all === undefined ? undefined : db.prepare<unknown[], number>(all).pluck().get(),
      keys: test.named.length === 0 ? [] : found.map(row => row.slice(0, -1).join(' / ')),
    }
  } catch (error) {
    // The tables of another version may lack a column that a statement reads.
    if (errorCode(error) !== 'SQLITE_ERROR') throw error
    return { test, missing: `a column for ${test.table}` }
  }
}

/**
 * What the schema of the file enforces, so that no test is needed. `PRAGMA quick_check` finds violations in a damaged
 * file.
 */
function enforcedBy(db: Sqlite, table: string): Enforced {
  const columns = db
    .prepare<unknown[], { name: string; notnull: number; pk: number }>(
      'SELECT name, "notnull", pk FROM pragma_table_info(?)',
    )
    .all(table)
  const key = columns.filter(({ pk }) => pk > 0).map(({ name }) => name)
  const indices = db
    .prepare<unknown[], string>('SELECT name FROM pragma_index_list(?) WHERE "unique" AND NOT partial')
    .pluck()
    .all(table)
  const unique = indices.map(index =>
    db.prepare<unknown[], string>('SELECT name FROM pragma_index_info(?)').pluck().all(index),
  )
  return {
    unique: new Set([key, ...unique].map(names => names.toSorted().join())),
    notNull: new Set(columns.flatMap(({ name, notnull }) => (notnull === 1 ? name : []))),
  }
}

/** How many speakers of meetings there are, and for how many an attendee of their meeting has the same name. */
const MATCHED_SPEAKERS = `SELECT count(*) AS "all", coalesce(sum(EXISTS (SELECT 1 FROM live_meeting_attendees a
    WHERE a.meeting_id = s.meeting_id AND lower(trim(a.name)) = lower(trim(s.speaker_name)))), 0) AS matched
  FROM live_meeting_speakers s WHERE s.speaker_name IS NOT NULL`

/** A low share is no fault: it is worth knowing. Undefined in a file that lacks the views. */
export function matchedSpeakers(db: Sqlite): { all: number; matched: number } | undefined {
  const views = ['live_meeting_speakers', 'live_meeting_attendees']
  if (views.some(view => columnNames(db, view).size === 0)) return undefined
  return onlyRow(db.prepare<unknown[], { all: number; matched: number }>(MATCHED_SPEAKERS))
}
