import { EXIT_STATUS } from '../base/errors.ts'
import { wholeNumber } from '../base/whole-number.ts'
import { type DescribedTable, sentence } from '../dictionary/described-table.ts'
import { DICTIONARY } from '../dictionary/dictionary.ts'
import { readCrmTables } from '../store/crm/dictionary.ts'
import type { DataTestKind } from '../store/data-tests/plan.ts'
import { type DataTestResult, matchedSpeakers, runDataTests } from '../store/data-tests/run.ts'
import { hasColumn } from '../store/database/existing-tables.ts'
import type { Sqlite } from '../store/database/sqlite-types.ts'
import {
  absentReportObjects,
  foreignReportObjects,
  reportTablesIn,
} from '../store/reporting/derived-tables.ts'
import { waitingKeys } from '../store/reporting/waiting-keys.ts'
import { META, readMeta } from '../store/sync/meta.ts'
import { countText } from '../terminal/wording.ts'
import { type Finding, findingsOf } from './finding.ts'

/** The tests of `parley doctor --data`: whether the content of the database is what its descriptions promise. */

interface DataContext {
  db: Sqlite
  /** Whether a process writes the database. */
  isWritten: boolean
}

const KINDS: readonly DataTestKind[] = ['keys', 'values', 'references', 'sums']

/** Yields a finding for each test that is not met, then a line for each kind of test. */
export function* dataFindings({ db, isWritten }: DataContext): Generator<Finding> {
  const foreign = foreignReportObjects(db)
  // parley does not update those that it has created earlier.
  const absent = absentReportObjects(db)
  const tables = describedTables(db).filter(({ name }) => !absent.has(name))
  const computed = new Set(tables.flatMap(({ name, area }) => (area === 'reports' ? name : [])))
  const late = isWritten ? LATE : isBehind(db) ? BEHIND : undefined
  const missing = new Set<string>()
  const passed: DataTestResult[] = []
  for (const result of runDataTests(db, tables)) {
    if ('missing' in result) missing.add(result.missing)
    else if (result.rows === 0) passed.push(result)
    else yield unmet(result, result.test.reads.some(name => computed.has(name)) ? late : undefined)
  }
  const speakers = matchedSpeakers(db)
  if (speakers !== undefined) yield findingsOf('speakers').note(speakersText(speakers))
  for (const kind of KINDS) {
    const tests = passed.filter(({ test }) => test.kind === kind)
    if (tests.length > 0) yield findingsOf(kind).ok(passedText(kind, tests))
  }
  yield* untested(missing, foreign)
}

/** The typed tables of CRM objects are described by the file itself. */
function describedTables(db: Sqlite): readonly DescribedTable[] {
  const hasTyped = hasColumn(db, 'crm_fields', 'column_name') && hasColumn(db, 'crm_objects', 'table_name')
  return hasTyped ? [...DICTIONARY, ...readCrmTables(sql => db.prepare(sql))] : DICTIONARY
}

/**
 * Whether the tables for reports are not yet computed from what was read last, for example since a backfill was
 * stopped.
 */
function isBehind(db: Sqlite): boolean {
  const { conversations } = reportTablesIn(db)
  return conversations && (readMeta(db, META.reportRules) === undefined || waitingKeys(db) > 0)
}

/** @param late what to do when the table may be computed later than the rows that it is computed from */
function unmet(result: DataTestResult, late: string | undefined): Finding {
  const { test, rows, of, keys } = result
  const line = findingsOf(test.kind)
  const data = { table: test.table, columns: test.columns, rows, ...(of !== undefined && { of }), keys }
  if (!test.isPromised) return { ...line.note(noteText(result)), data }
  const found = `${unmetText(result)}${keysText(rows, keys)}`
  if (late !== undefined) return { ...line.warning(found, late), data }
  return { ...line.wrong(found, EXIT_STATUS.databaseUnavailable, HINT), data }
}

const LATE =
  'A process writes the database, and tables for reports follow half a minute later. Run parley doctor --data again in a minute.'
const BEHIND =
  'Tables for reports are computed at the end of parley backfill, and by parley daemon. Run one of them, then parley doctor --data again.'
const HINT =
  'Run parley backfill, or restart parley daemon, then run parley doctor --data again. Please report what is left.'

function unmetText({ test, rows }: DataTestResult): string {
  const { table, columns, expected } = test
  const [place, count] = [`${table}.${columns.join('+')}`, countText(rows, 'row')]
  switch (test.kind) {
    case 'keys':
      return test.isNullTest
        ? `${table}: ${countText(rows, 'row has', 'rows have')} NULL in a column that must not be NULL`
        : `${place}: ${countText(rows, 'key')} not unique`
    case 'values':
      return `${place}: ${count} with another value than ${expected}`
    case 'references':
      return `${place}: ${count} without a row in ${expected}`
    case 'sums':
      return `${table}: ${sentence(expected)} ${countText(rows, 'row differs', 'rows differ')}`
  }
}

/** The keys of the first rows. Keys of people are never among them. */
function keysText(rows: number, keys: readonly string[]): string {
  if (keys.length === 0) return ''
  return rows > keys.length ? `; the first: ${keys.join(', ')}` : `: ${keys.join(', ')}`
}

/** The text about references that need not resolve, or about values that the API has not stated so far. */
function noteText(result: DataTestResult): string {
  const { test, rows, of } = result
  if (of === undefined) return `${unmetText(result)}; the API may have new ones`
  const place = `${test.table}.${test.columns.join('+')}`
  return `${place}: ${shareText(of - rows, of)} with a row in ${test.expected}`
}

function speakersText({ all, matched }: { all: number; matched: number }): string {
  if (all === 0) return 'there are no speakers of meetings'
  return `${shareText(matched, all)} speakers of meetings are matched to a person: an attendee of their meeting has the same name`
}

const shareText = (part: number, all: number): string =>
  `${wholeNumber(part)} of ${wholeNumber(all)} (${Math.floor((part / all) * 100)} %)`

function passedText(kind: DataTestKind, tests: readonly DataTestResult[]): string {
  const tables = new Set(tests.map(({ test }) => test.table)).size
  const promised = tests.filter(({ test }) => test.isPromised).length
  switch (kind) {
    case 'keys':
      return `unique and never NULL in ${countText(tables, 'table or view', 'tables and views')}; in the others SQLite makes sure of it`
    case 'values':
      return `no other values than described in ${countText(tests.length, 'column')}`
    case 'references':
      return `every row is there for ${countText(tests.length, 'reference')}, ${promised} of them promised`
    case 'sums':
      return `the same as in the tables below for ${countText(tests.length, 'statement')}`
  }
}

const MOST_NAMES = 12

function* untested(missing: ReadonlySet<string>, foreign: readonly string[]): Generator<Finding> {
  const line = findingsOf('not tested')
  if (foreign.length > 0) yield line.note(`${foreign.join(', ')}: parley did not create them`)
  if (missing.size === 0) return
  const names = [...missing]
  const more = names.length > MOST_NAMES ? `, and ${names.length - MOST_NAMES} more` : ''
  yield line.note(
    `the database does not have ${names.slice(0, MOST_NAMES).join(', ')}${more}`,
    'The next parley backfill or start of parley daemon creates them. It upgrades a database of an older version.',
  )
}
