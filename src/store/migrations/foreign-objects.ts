import { readFileSync } from 'node:fs'
import { EXIT_STATUS, errorCode, StopError } from '../../base/errors.ts'
import { readInstalled } from '../../base/installation.ts'
import { readCrmTableStates, tableNamesOf } from '../crm/table-state.ts'
import { openReader } from '../database/connections.ts'
import {
  columnNames,
  createAgain,
  hasTable,
  type LeftOut,
  type SchemaObject,
  schemaObjects,
  tableNames,
} from '../database/existing-tables.ts'
import { quote } from '../database/sql.ts'
import { openSqlite } from '../database/sqlite.ts'
import { databaseError } from '../database/sqlite-errors.ts'
import type { Sqlite } from '../database/sqlite-types.ts'
import { SEARCH_INDICES } from '../search/index-schema.ts'
import { FOLDER, type Migration, migrationsIn } from './journal.ts'

/**
 * Tells parley's schema objects from those of other people, and handles what the latter do to writes and migrations.
 */

/**
 * Triggers and indices that other people created on parley's tables. They run in each of parley's writes, and an object
 * that fails makes the write fail.
 */
export type ForeignObject = SchemaObject & { type: 'trigger' | 'index' }

const NOT_OWN = 'which parley did not create'

/** Whether a stored failure reason is the error of a write that a foreign object made fail. */
export const isOfForeignObject = (reason: string): boolean => reason.includes(`, ${NOT_OWN}, fails: `)

/** The error code of a write that a foreign object made fail. */
export const FOREIGN_OBJECT = 'foreign-object'

export function foreignObjects(
  db: Sqlite,
  own: OwnObjects = ownObjects(),
  tables = tablesOfParley(db, own),
): ForeignObject[] {
  return schemaObjects(db, 'name').filter(
    (object): object is ForeignObject =>
      object.type !== 'view' && tables.has(object.table) && !isOwn(object.type, object.name, own),
  )
}

function tablesOfParley(db: Sqlite, own: OwnObjects): ReadonlySet<string> {
  const states = hasTable(db, 'sync_meta') ? readCrmTableStates(sql => db.prepare(sql)) : new Map()
  return new Set([...own.tables, ...[...states.values()].flatMap(tableNamesOf)])
}

/** Whether parley created the object. Typed CRM tables have no indices. */
const isOwn = (type: ForeignObject['type'], name: string, { indices }: OwnObjects): boolean =>
  type === 'index' ? indices.has(name) : SEARCH_INDICES.some(({ objects }) => objects.has(name))

/**
 * As `databaseError`. In addition, turns the error of a write that a foreign object made fail into a StopError (73).
 */
export function writeError(error: unknown, file: string): unknown {
  const known = databaseError(error, file)
  return known instanceof Error ? (foreignObjectError(known, file) ?? known) : known
}

/**
 * @returns the error for a write that a foreign object made fail, undefined for others. Reads the schema through a
 * separate connection.
 */
function foreignObjectError(error: Error, file: string): StopError | undefined {
  if (!/^SQLITE_(ERROR|CONSTRAINT|MISMATCH)/.test(errorCode(error) ?? '')) return undefined
  let objects: readonly ForeignObject[]
  try {
    const db = openReader(file, 0)
    try {
      const own = ownObjects()
      const tables = tablesOfParley(db, own)
      const others = schemaObjects(db, 'name').filter(({ table }) => !tables.has(table))
      const foreign = foreignObjects(db, own, tables).map(object => withSqlBelow(object, others))
      objects = blamedObjects(error, foreign, tables)
    } finally {
      db.close()
    }
  } catch {
    // The schema cannot be read now. The error is then reported as it is.
    return undefined
  }
  if (objects.length === 0) return undefined
  const names = objects.map(({ type, name, table }) => `the ${type} ${name} on ${table}`).join(' or ')
  const drops = objects.map(({ type, name }) => `DROP ${type.toUpperCase()} ${quote(name)};`).join(' ')
  const them = objects.length === 1 ? 'it' : 'them'
  // The message must have no content of rows. A trigger may raise an error with text of the row, and SQLite quotes a
  // value that it cannot use.
  const isOfSchema = errorCode(error) !== RAISED || objects.some(({ sql }) => sql.includes(error.message))
  const why = isOfSchema ? error.message.replace(/: ['"].*/s, ': …') : 'it raises an error'
  return new StopError(`Cannot write ${file}: ${names}, ${NOT_OWN}, fails: ${why}`, {
    code: FOREIGN_OBJECT,
    hint: `Mend ${them}, or drop ${them} with ${drops} in an sqlite3 shell.`,
    cause: error,
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}

/**
 * The object with the SQL of the views that it reads and of the triggers that it starts, which can fail as well.
 * @param others views, and triggers and indices of other tables than parley's
 */
function withSqlBelow(object: ForeignObject, others: readonly SchemaObject[]): ForeignObject {
  const below = new Set<SchemaObject>()
  let { sql } = object
  for (;;) {
    const next = others.find(other => !below.has(other) && hasWord(sql, other.table))
    if (!next) return { ...object, sql }
    below.add(next)
    sql += `\n${next.sql}`
  }
}

const RAISED = 'SQLITE_CONSTRAINT_TRIGGER'

/**
 * Finds the object or column that a message of SQLite names, such as `no such table: main.my_log`, `UNIQUE constraint
 * failed: teams.name` or `cannot modify my_view because it is a view`.
 */
const SUBJECT =
  /^(?:table |cannot modify |cannot store .* column |(?:.* failed|no such .*): (?:index ')?(?:main\.|new\.|old\.)?)(?<name>.+?)(?:[.']| has | because |$)/i

/**
 * @returns the objects that can have caused an error with this message. If no object mentions the name in the message,
 * and parley's own statements cannot have caused the error, these are all objects that compute something: SQLite does
 * not name the trigger in an error inside a function. Pure.
 * @param objects with the SQL of what is below them
 */
export function blamedObjects(
  error: Pick<Error, 'message'> & { code?: unknown },
  objects: readonly ForeignObject[],
  ownTables: ReadonlySet<string>,
): readonly ForeignObject[] {
  if (error.code === RAISED) {
    // parley has no trigger that raises an error.
    const triggers = objects.filter(({ type }) => type === 'trigger')
    const raising = triggers.filter(({ sql }) => sql.includes(error.message))
    return raising.length > 0 ? raising : triggers
  }
  const name = SUBJECT.exec(error.message)?.groups?.name
  const mayBeOwn =
    name !== undefined && (ownTables.has(name) || /^no such (table|column)/.test(error.message))
  const named = name === undefined ? [] : objectsNaming(name, error, objects)
  return named.length > 0 || mayBeOwn ? named : objects.filter(computes)
}

/** A trigger, or an index on an expression. */
const computes = ({ type, sql }: ForeignObject): boolean =>
  type === 'trigger' || /\(.*\(|\swhere\s/is.test(sql)

function objectsNaming(
  name: string,
  { code }: { code?: unknown },
  objects: readonly ForeignObject[],
): ForeignObject[] {
  const isUnique = code === 'SQLITE_CONSTRAINT_UNIQUE'
  return objects.filter(object =>
    isUnique && object.type === 'index'
      ? object.name === name || (object.table === name && /^CREATE UNIQUE/i.test(object.sql))
      : object.table !== name && hasWord(object.sql, name),
  )
}

const NO_WORD = /[^\p{L}\p{N}_$]+/u

function hasWord(sql: string, word: string): boolean {
  const [text, wanted] = [sql.toLowerCase(), word.toLowerCase()]
  return NO_WORD.test(wanted) ? text.includes(wanted) : text.split(NO_WORD).includes(wanted)
}

/** @returns the errors of triggers and indices that SQLite cannot even compile, for example since a table is gone */
export function deadObjectErrors(db: Sqlite, file: string): StopError[] {
  const tables = new Set(foreignObjects(db).map(({ table }) => table))
  const found = [...tables].flatMap(table => {
    const values = [...columnNames(db, table)].map(name => `${quote(name)} = ${quote(name)}`).join(', ')
    const writes = [
      `INSERT INTO ${quote(table)} DEFAULT VALUES`,
      `UPDATE ${quote(table)} SET ${values}`,
      `DELETE FROM ${quote(table)}`,
    ]
    return writes.flatMap(sql => compileError(db, sql, file) ?? [])
  })
  return [...new Map(found.map(error => [error.message, error])).values()]
}

function compileError(db: Sqlite, sql: string, file: string): StopError | undefined {
  try {
    db.prepare(`EXPLAIN ${sql}`)
    return undefined
  } catch (error) {
    return error instanceof Error ? foreignObjectError(error, file) : undefined
  }
}

/**
 * The tables and indices that parley's migrations create. Typed CRM tables and full-text indices are not among them.
 */
export interface OwnObjects {
  tables: ReadonlySet<string>
  indices: ReadonlySet<string>
}

/** The tables and indices that the migrations in a folder create. Default: the migrations of this version. */
export function ownObjects(folder: string = FOLDER): OwnObjects {
  return ownObjectsIn(migrationsIn(folder).map(migration => migrationSql(folder, migration)))
}

/** The SQL of each index that all migrations leave, by its name. */
export function ownIndices(): ReadonlyMap<string, string> {
  const db = openSqlite(':memory:')
  try {
    for (const migration of migrationsIn(FOLDER)) db.exec(migrationSql(FOLDER, migration))
    return indicesOf(db)
  } finally {
    db.close()
  }
}

/** The SQL of each index of a database by its name, without those of constraints. */
export function indicesOf(db: Sqlite): ReadonlyMap<string, string> {
  const sql = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
  return new Map(db.prepare<unknown[], [string, string]>(sql).raw().all())
}

export function migrationSql(folder: string, { tag }: Migration): string {
  const file = `${folder}/${tag}.sql`
  return readInstalled(file, () => readFileSync(file, 'utf8'))
}

/** Parses the SQL of all migrations. A table that a later migration drops counts as well. Pure. */
export function ownObjectsIn(migrations: readonly string[]): OwnObjects {
  const named = (pattern: RegExp) =>
    new Set(migrations.flatMap(sql => [...sql.matchAll(pattern)].flatMap(([, name]) => name ?? [])))
  return {
    tables: named(/^CREATE TABLE (?:IF NOT EXISTS )?[`"]?(\w+)/gim),
    indices: named(/^CREATE (?:UNIQUE )?INDEX (?:IF NOT EXISTS )?[`"]?(\w+)/gim),
  }
}

/**
 * Drops every view, every trigger, and those indices on parley's tables that parley did not create. SQLite may refuse
 * to rename a table that a view or trigger names, and dropping a table or view drops its triggers and indices too.
 * @returns a function that creates the dropped objects again and returns those that failed
 */
export function dropDependentObjects(db: Sqlite, own: OwnObjects): () => LeftOut[] {
  const all = schemaObjects(db, 'rowid').filter(
    ({ type, name, table }) => type !== 'index' || (own.tables.has(table) && !own.indices.has(name)),
  )
  const ofType = (type: SchemaObject['type']) => all.filter(object => object.type === type)
  const [views, triggers, indices] = [ofType('view'), ofType('trigger'), ofType('index')]
  // Triggers first: dropping a view drops its triggers, and a second DROP would fail.
  for (const { type, name } of [...triggers, ...indices, ...views]) {
    db.exec(`DROP ${type.toUpperCase()} ${quote(name)}`)
  }
  return () => {
    const tables = tableNames(db)
    // A migration may have replaced a view of parley by a table of the same name.
    const wanted = [...views.filter(({ name }) => !tables.has(name)), ...indices, ...triggers]
    return wanted.flatMap(object => createAgain(db, object))
  }
}

/** A table with foreign keys that refer to missing rows. */
export interface BrokenReferences {
  table: string
  /**
   * False for a table that parley did not create. Such a table can have broken references, because SQLite does not
   * enforce foreign keys on a connection that leaves them off.
   */
  isOwn: boolean
  /** Rows with a broken reference. Undefined when the foreign key names columns without a unique index. */
  rows: number | undefined
}

export function brokenReferences(db: Sqlite, own: OwnObjects): BrokenReferences[] {
  const tables = db
    .prepare<unknown[], string>(
      "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE '%REFERENCES%' ORDER BY name",
    )
    .pluck()
    .all()
  return tables.flatMap(table => {
    const isOwn = own.tables.has(table)
    const rows = countBroken(db, table, isOwn)
    return rows === 0 ? [] : [{ table, isOwn, rows }]
  })
}

function countBroken(db: Sqlite, table: string, isOwn: boolean): number | undefined {
  try {
    return db.prepare(`PRAGMA foreign_key_check(${quote(table)})`).all().length
  } catch (error) {
    if (isOwn || errorCode(error) !== 'SQLITE_ERROR') throw error
    return undefined
  }
}
