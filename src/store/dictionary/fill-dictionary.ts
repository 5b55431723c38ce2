import { type CrmObjectDescription, describedCrmTables } from '../../dictionary/crm-tables.ts'
import type { DescribedTable } from '../../dictionary/described-table.ts'
import { DICTIONARY, type DictionaryRow, dictionaryRows } from '../../dictionary/dictionary.ts'
import { metricRows } from '../../dictionary/metrics.ts'
import { readQuestions } from '../../dictionary/questions.ts'
import {
  DIGEST_KEY_RANGE,
  digestOf,
  inserter,
  readCrmObjects,
  refreshCrmDictionary,
} from '../crm/dictionary.ts'
import { hasColumn } from '../database/existing-tables.ts'
import type { Prepare } from '../database/sqlite-types.ts'
import { databaseStats, readDatabase } from '../file/open.ts'
import { META } from '../sync/meta.ts'
import type { State } from '../sync/resource-state.ts'

/** Fills the tables `data_dictionary` and `metrics`: from the declarations of this version, and from the CRM metadata. */

/**
 * Rewrites the dictionary when the declarations or the places of columns have changed since the last time. Call inside a
 * transaction.
 */
export function fillDictionary(prepare: Prepare, state: Pick<State, 'meta' | 'setMeta'>): void {
  // Only migrations change the places of columns. Reading the places from each table would slow every start down.
  const lastMigration = prepare('SELECT max(created_at) FROM __drizzle_migrations').pluck().get()
  declared ??= digestOf([DICTIONARY.flatMap(dictionaryRows), describedCrmTables(SAMPLE), metricRows()])
  const digest = digestOf([declared, lastMigration])
  if (state.meta(META.dictionary) === digest) return
  const insert = inserter(prepare)
  prepare('DELETE FROM data_dictionary').run()
  prepare('DELETE FROM sync_meta WHERE key >= ? AND key < ?').run(...DIGEST_KEY_RANGE)
  for (const row of DICTIONARY.flatMap(table => rowsInTableOrder(prepare, table))) insert.run(row)
  fillMetrics(prepare)
  state.setMeta(META.dictionary, digest)
  refreshCrmDictionary(prepare)
}

function fillMetrics(prepare: Prepare): void {
  prepare('DELETE FROM metrics').run()
  const insert = prepare(
    `INSERT INTO metrics (name, label, dataset, expression, filter, unit, is_additive, description, caveat)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  for (const row of metricRows()) insert.run(...row)
}

/** The digest of the declarations, computed once in a process. */
let declared: string | undefined

/** A sample typed table. The digest covers its dictionary rows, so the digest changes with their texts. */
const SAMPLE: CrmObjectDescription = {
  name: 'o',
  label: 'O',
  table: 't',
  liveView: 'l',
  labelledView: 'v',
  fields: (['text', 'any', 'boolean', 'timestamp', 'date'] as const).map(kind => ({
    isRelation: kind === 'text',
    name: 'f',
    label: 'F',
    type: 'x',
    kind,
    column: 'f',
    labelledColumn: 'F',
    refersTo: ['t.id'],
  })),
}

/** The positions are those in the database: a column that a migration added is last there, wherever it is declared. */
function rowsInTableOrder(prepare: Prepare, table: DescribedTable): DictionaryRow[] {
  const places = new Map(
    prepare<[string, number]>('SELECT name, cid FROM pragma_table_xinfo(?)').raw().all(table.name),
  )
  return dictionaryRows(table).map(row => ({
    ...row,
    position: places.get(row.column_name) ?? row.position,
  }))
}

/**
 * @returns the typed tables of the warehouse at this path; none when there is no file yet, or when the version that
 * wrote the file had no typed tables
 * @throws StopError (73) when the file cannot be read or is not a warehouse
 */
export function readCrmTablesAt(path: string): DescribedTable[] {
  return readCrmObjectsAt(path).flatMap(describedCrmTables)
}

/** The objects with typed tables of the warehouse at this path. @throws as `readCrmTablesAt` */
export function readCrmObjectsAt(path: string): CrmObjectDescription[] {
  if (databaseStats(path) === undefined) return []
  return readDatabase({ path }, db =>
    hasColumn(db, 'crm_fields', 'column_name') ? readCrmObjects(sql => db.prepare(sql)) : [],
  )
}

/** Rewrites `parley_questions` when the questions of this version differ. Call inside a transaction. */
export function fillQuestions(prepare: Prepare, state: Pick<State, 'meta' | 'setMeta'>): void {
  installed ??= installedQuestions()
  const { questions, digest } = installed
  if (state.meta(META.questions) === digest) return
  prepare('DELETE FROM parley_questions').run()
  const insert = prepare(
    'INSERT INTO parley_questions (name, question, parameters, sql, duckdb_sql) VALUES (?, ?, ?, ?, ?)',
  )
  for (const { name, question, parameters, sql } of questions) {
    insert.run(name, question, JSON.stringify(parameters), sql, sql)
  }
  state.setMeta(META.questions, digest)
}

/** The questions of this version, read once in a process. */
let installed: ReturnType<typeof installedQuestions> | undefined

function installedQuestions() {
  const questions = readQuestions()
  return { questions, digest: digestOf(questions) }
}
