import { EXIT_STATUS, errorCode, StopError } from '../../base/errors.ts'
import { hasTable, renameTable } from '../database/existing-tables.ts'
import { quote } from '../database/sql.ts'
import type { Sqlite } from '../database/sqlite-types.ts'
import { onlyRow } from '../database/statements.ts'
import { CREATE_MARKS, MARKS, SEARCH_INDICES, type SearchIndex } from './index-schema.ts'

/** Blocks of an index, of up to 4 KB each, that are deleted at a time. */
const BLOCKS = 40

/** Number of schema objects when all indices are complete, including the table of marks. */
const OBJECT_COUNT = SEARCH_INDICES.reduce((count, { objects }) => count + objects.size, 1)

/** How far an index is filled and purged: a row of the table of marks. */
export interface IndexProgress {
  name: string
  indexed_up_to: number
  state: IndexState
}

/**
 * FTS5 stores a deletion as a new entry next to the old one. Merging all FTS5 segments of the index removes both.
 *
 * - `kept` → `outdated`: a text is edited or deleted (a trigger)
 * - `outdated` or `being joined, outdated` → `to be joined`: a purge is due (`forget`)
 * - `to be joined` → `being joined`: the merge has begun
 * - `being joined` → `kept`: the merge is complete
 * - `being joined` → `being joined, outdated`: a text is edited or deleted during the merge, which does not remove it
 * - `being joined, outdated` → `outdated`: the merge is complete
 */
export type IndexState = 'kept' | 'outdated' | 'to be joined' | 'being joined' | 'being joined, outdated'

/** @returns the marks by the name of their index; no mark before the index is created, or when its table was dropped */
export function readIndexProgress(db: Sqlite): ReadonlyMap<string, IndexProgress> {
  if (!hasTable(db, MARKS)) return new Map()
  const sql = `SELECT * FROM ${MARKS} WHERE name IN (SELECT name FROM sqlite_master WHERE type = 'table')`
  const marks = db.prepare<unknown[], IndexProgress>(sql).all()
  return new Map(marks.map(mark => [mark.name, mark]))
}

/** The greatest key (`_id`) of the rows that an index is built from; 0 without rows. */
export const newestKey = (db: Sqlite, { source }: SearchIndex): number =>
  onlyRow(db.prepare<unknown[], number>(`SELECT coalesce(max(_id), 0) FROM ${source}`).pluck())

/** Whether all indices exist as declared; when they are not wanted, whether none exists. */
export function areObjectsAsWanted(db: Sqlite, isWanted: boolean): boolean {
  const present = searchObjects(db)
  if (!isWanted) return present.size === 0
  return SEARCH_INDICES.every(index => isWhole(index, present)) && present.size === OBJECT_COUNT
}

interface SearchObject {
  name: string
  type: 'table' | 'trigger'
  sql: string
}

/**
 * @returns the full-text tables, their triggers and the table of marks, by name, without the internal tables of FTS5
 */
function searchObjects(db: Sqlite): ReadonlyMap<string, SearchObject> {
  const all = db
    .prepare<unknown[], SearchObject>(
      "SELECT name, type, sql FROM sqlite_master WHERE type IN ('table', 'trigger')",
    )
    .all()
  return new Map(all.filter(isSearchObject).map(object => [object.name, object]))
}

function isSearchObject({ name, type }: SearchObject): boolean {
  if (type === 'table')
    return (
      name === MARKS || SEARCH_INDICES.some(index => name === index.name || name === retiredName(index.name))
    )
  return SEARCH_INDICES.some(index => name.startsWith(`${index.name}_`))
}

function isWhole({ objects, name }: SearchIndex, present: ReadonlyMap<string, SearchObject>): boolean {
  return (
    present.has(MARKS) &&
    present.has(name) &&
    [...objects].every(([called, sql]) => present.get(called)?.sql === sql)
  )
}

/** Takes one step towards the wanted schema objects. Outdated indices are dropped first, one after the other. */
export function takeStep(db: Sqlite, isWanted: boolean): void {
  const present = searchObjects(db)
  const kept = new Set(
    SEARCH_INDICES.filter(index => isWanted && isWhole(index, present)).flatMap(({ objects }) => [
      ...objects.keys(),
    ]),
  )
  const outdated = [...present.values()].filter(({ name }) => name !== MARKS && !kept.has(name))
  const triggers = outdated.filter(({ type }) => type === 'trigger')
  const tables = outdated.filter(({ type }) => type === 'table')
  // Without triggers an index becomes outdated, so its mark is deleted in the same transaction.
  for (const { name } of triggers) db.exec(`DROP TRIGGER ${quote(name)}`)
  if (present.has(MARKS)) {
    const forget = db.prepare(`DELETE FROM ${MARKS} WHERE name = ?`)
    for (const { name } of tables) forget.run(name)
  }
  const [table] = tables
  if (table) retireTable(db, table.name, present)
  else if (isWanted) create(db, present)
  else if (present.has(MARKS)) db.exec(`DROP TABLE ${MARKS}`)
}

/**
 * Drops the triggers and marks, so that rows can be written without the indices and `advance` builds the indices again.
 * For a damaged index, and for a migration, which cannot rebuild a table that a trigger names.
 * @returns false when there were no triggers and no marks
 */
export function invalidateSearch(db: Sqlite): boolean {
  const present = searchObjects(db)
  for (const { name, type } of present.values()) {
    if (type === 'trigger') db.exec(`DROP TRIGGER ${quote(name)}`)
  }
  const marks = present.has(MARKS) ? db.prepare(`DELETE FROM ${MARKS}`).run().changes : 0
  return marks > 0 || [...present.values()].some(({ type }) => type === 'trigger')
}

/**
 * Invalidates the indices when another program has dropped a table of theirs. The triggers that are left would make
 * every write of rows fail.
 * @returns whether it was so
 */
export function invalidateDroppedSearch(db: Sqlite): boolean {
  const present = searchObjects(db)
  const isDropped = SEARCH_INDICES.some(({ name, objects }) => {
    const isThere = present.has(MARKS) && present.has(name)
    return !isThere && [...objects.keys()].some(object => present.has(object))
  })
  return isDropped && invalidateSearch(db)
}

/** The error code of a transaction that met a damaged index and invalidated the indices. */
export const SEARCH_REBUILT = 'search-rebuilt'

/**
 * Invalidates the indices when the error shows a damaged or dropped index. Nothing is lost: the indices are built
 * from the rows. Call it outside a transaction.
 * @returns the error to report; an error of any other kind unchanged
 * @param onDamaged called when this call has invalidated the indices
 */
export function withoutDamagedSearch(db: Sqlite, error: unknown, onDamaged: () => void): unknown {
  if (!isSearchDamage(error)) return error
  try {
    if (db.transaction(() => invalidateSearch(db)).immediate()) onDamaged()
  } catch (failed) {
    return failed
  }
  return new StopError(`A full-text index of ${db.name} was damaged; parley builds it again from the rows`, {
    code: SEARCH_REBUILT,
    hint: 'Run the command again. The rows are not affected.',
    cause: error,
    exitStatus: EXIT_STATUS.unfinished,
  })
}

/** The only virtual tables are the full-text indices. The other error is that of a trigger whose table was dropped. */
const isSearchDamage = (error: unknown): boolean =>
  errorCode(error) === 'SQLITE_CORRUPT_VTAB' ||
  (error instanceof Error && DROPPED.some(table => error.message === `no such table: main.${table}`))

const DROPPED = [MARKS, ...SEARCH_INDICES.map(({ name }) => name)]

/**
 * The name of an index while it is emptied. The index is renamed so that no process queries it when it is partly empty.
 */
const retiredName = (name: string): string => name.replace(/^search_(?:left_)?/, 'search_left_')

function retireTable(db: Sqlite, name: string, present: ReadonlyMap<string, SearchObject>): void {
  const retired = retiredName(name)
  if (name !== retired && !present.has(retired)) renameTable(db, name, retired)
  else empty(db, retired)
}

/**
 * Deletes a batch of blocks, or drops an empty index. Dropping a large index would take long, since secure_delete
 * overwrites it.
 */
function empty(db: Sqlite, name: string): void {
  const data = quote(`${name}_data`)
  // SQLite lets only FTS5 write its internal tables, unless unsafe mode is on.
  db.unsafeMode(true)
  try {
    const removed = db.prepare(`DELETE FROM ${data} WHERE id IN (SELECT id FROM ${data} LIMIT ?)`).run(BLOCKS)
    if (removed.changes === 0) db.exec(`DROP TABLE ${quote(name)}`)
  } finally {
    db.unsafeMode(false)
  }
}

function create(db: Sqlite, present: ReadonlyMap<string, SearchObject>): void {
  if (!present.has(MARKS)) db.exec(CREATE_MARKS)
  for (const index of SEARCH_INDICES) {
    if (isWhole(index, present)) continue
    for (const sql of index.objects.values()) db.exec(sql)
    db.exec(`INSERT INTO ${index.name} (${index.name}, rank) VALUES ('automerge', 0)`)
    db.prepare(`INSERT OR REPLACE INTO ${MARKS} (name) VALUES (?)`).run(index.name)
  }
}
