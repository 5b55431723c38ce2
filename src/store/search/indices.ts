import { hasTable } from '../database/existing-tables.ts'
import { quote } from '../database/sql.ts'
import type { Prepare, Sqlite } from '../database/sqlite-types.ts'
import { onlyRow } from '../database/statements.ts'
import { CREATE_MARKS, MARKS, SEARCH_INDICES, type SearchIndex } from './schema.ts'

/**
 * Creates, fills, purges and drops the full-text indices, in small transactions. Each transaction leaves the indices
 * consistent, so the process can end after any of them. The database alone determines the next step.
 */
export interface SearchIndices {
  /** Whether `advance` has more to do than merges. It is quick and writes nothing. */
  isDue(isWanted: boolean): boolean
  /** Whether any index exists, complete or not. */
  exists(): boolean
  /**
   * Does the next piece of work: builds the indices when they are wanted, else drops them. Call it in a transaction.
   * Returns false when no work is left.
   * @param mayGoOn called after each batch; the piece ends when it returns false
   */
  advance(isWanted: boolean, mayGoOn: () => boolean): boolean
  /** How far the indices are built, in row keys (`_id`) of their source tables, summed over the indices. */
  progress(): SearchProgress
  /**
   * Makes a purge due of each index from whose rows a text was edited or deleted. `advance` then rewrites these indices,
   * after which they hold no trigram of the texts. Call inside a transaction. Returns whether a purge is due.
   */
  forget(): boolean
}

export interface SearchProgress {
  done: number
  total: number
}

interface IndexMark {
  name: string
  indexed_up_to: number
  state: IndexState
}

/**
 * FTS5 stores a deletion as a new entry next to the old one. Merging all FTS5 segments of the index removes both.
 * kept → outdated (a trigger, when a text is edited or deleted) → to be joined (`forget`) → being joined (the merge has
 * begun) → kept (the merge is complete). The merge does not include texts that are edited or deleted after it began:
 * being joined → being joined, outdated (a trigger) → outdated (the merge is complete).
 */
type IndexState = 'kept' | 'outdated' | 'to be joined' | 'being joined' | 'being joined, outdated'

const isPurgeDue = ({ state }: Pick<IndexMark, 'state'>): boolean => state !== 'kept' && state !== 'outdated'

/**
 * Least number of FTS5 segments that a merge by `advance` takes, except that a merge that has begun continues. FTS5
 * does not continue it while fewer new segments than this wait, but as many as the merge has. During a purge the number
 * is therefore 2, or the purge would stop half-way when texts are written meanwhile.
 */
const SEGMENTS_PER_MERGE = { usual: 4, purge: 2 }

/** Blocks of an index, of up to 4 KB each, that are deleted or merged at a time. */
const BLOCKS = 40

/** Bytes of text that take some milliseconds to index. */
const BATCH_BYTES = 32_768

export function createSearchIndices({ db, prepare }: { db: Sqlite; prepare: Prepare }): SearchIndices {
  /**
   * True once a check has found all indices, false once it has found none, else undefined. The result stays valid,
   * because only this process changes the indices.
   */
  let known: boolean | undefined

  const marks = (): ReadonlyMap<string, IndexMark> => {
    const rows = hasMarks(db) ? prepare<IndexMark>(`SELECT * FROM ${MARKS}`).all() : []
    return new Map(rows.map(row => [row.name, row]))
  }
  const isAsWanted = (isWanted: boolean): boolean => {
    if (known !== isWanted) {
      const objects = searchObjects(db)
      const isRight = isWanted
        ? SEARCH_INDICES.every(one => isWhole(one, objects)) && objects.size === OBJECT_COUNT
        : objects.size === 0
      known = isRight ? isWanted : undefined
    }
    return known === isWanted
  }
  const newest = ({ source }: SearchIndex): number =>
    prepare<number | null>(`SELECT max(_id) FROM ${source}`).pluck().get() ?? 0

  /** `_id` of the last row of a batch of at most `bytes`, at least one row; undefined when no row is left. */
  const endOfBatch = ({ weigh }: SearchIndex, after: number, bytes: number): number | undefined => {
    let upTo: number | undefined
    let left = bytes
    for (const row of prepare<{ id: number; bytes: number }>(weigh).iterate(after)) {
      if (upTo !== undefined && row.bytes > left) break
      upTo = row.id
      left -= row.bytes
    }
    return upTo
  }
  /** Indexes the next batch of rows. False when no row is left. */
  const fill = (index: SearchIndex, bytes: number): boolean => {
    const { indexed_up_to: after = 0 } = marks().get(index.name) ?? {}
    const upTo = endOfBatch(index, after, bytes)
    if (upTo === undefined) return false
    prepare(index.fill).run({ after, upTo })
    prepare(`UPDATE ${MARKS} SET indexed_up_to = ? WHERE name = ?`).run(upTo, index.name)
    return true
  }

  /**
   * Merges about `blocks` blocks of an index's FTS5 segments. A negative number begins a merge of all segments. Returns
   * false when there is nothing to merge.
   */
  const mergeParts = (name: string, blocks: number): boolean => {
    const changes = prepare<number>('SELECT total_changes()').pluck()
    const before = onlyRow(changes)
    prepare(`INSERT INTO ${name} (${name}, rank) VALUES ('merge', ?)`).run(blocks)
    // The statement itself counts as one change.
    return onlyRow(changes) - before >= 2
  }

  const setSegmentsPerMerge = (name: string, count: number) => {
    // A bound number would be REAL, which FTS5 refuses.
    prepare(`INSERT INTO ${name} (${name}, rank) VALUES ('usermerge', ${count})`).run()
  }

  /** One step of a purge: the first begins a merge of all FTS5 segments, others continue it. False if none is due. */
  const purgeStep = (mark: IndexMark): boolean => {
    if (!isPurgeDue(mark)) return false
    const { name, state } = mark
    const isFirst = state === 'to be joined'
    if (isFirst) setSegmentsPerMerge(name, SEGMENTS_PER_MERGE.purge)
    const isUnderWay = mergeParts(name, isFirst ? -BLOCKS : BLOCKS)
    if (!isUnderWay) setSegmentsPerMerge(name, SEGMENTS_PER_MERGE.usual)
    prepare(`UPDATE ${MARKS} SET state = ? WHERE name = ?`).run(stateAfter(state, isUnderWay), name)
    return true
  }

  const advanceOne = (index: SearchIndex, mayGoOn: () => boolean): boolean => {
    let bytes = BATCH_BYTES
    let didAny = false
    do {
      // A search is faster with fewer FTS5 segments. Automatic merges are off: their duration could not be limited.
      if (!mergeParts(index.name, BLOCKS)) {
        if (!fill(index, bytes)) {
          const mark = marks().get(index.name)
          return (mark !== undefined && purgeStep(mark)) || didAny
        }
        // FTS5 flushes its buffer before each statement, so fewer and larger batches are cheaper.
        bytes *= 2
      }
      didAny = true
    } while (mayGoOn())
    return didAny
  }

  return {
    isDue(isWanted) {
      if (!isAsWanted(isWanted)) return true
      if (!isWanted) return false
      const all = marks()
      return SEARCH_INDICES.some(index => {
        const mark = all.get(index.name)
        return mark === undefined || isPurgeDue(mark) || mark.indexed_up_to < newest(index)
      })
    },
    exists: () => marks().size > 0,
    advance(isWanted, mayGoOn) {
      if (!isAsWanted(isWanted)) {
        takeStep(db, isWanted)
        return true
      }
      return isWanted && SEARCH_INDICES.some(index => advanceOne(index, mayGoOn))
    },
    progress() {
      const all = marks()
      return SEARCH_INDICES.reduce(
        (sum, index) => {
          const total = newest(index)
          // A mark can exceed the newest key, after the newest rows were deleted.
          const done = Math.min(all.get(index.name)?.indexed_up_to ?? 0, total)
          return { done: sum.done + done, total: sum.total + total }
        },
        { done: 0, total: 0 },
      )
    },
    forget() {
      if (!hasMarks(db)) return false
      prepare(`UPDATE ${MARKS} SET state = 'to be joined' WHERE state LIKE '%outdated'`).run()
      return [...marks().values()].some(isPurgeDue)
    },
  }
}

function stateAfter(state: IndexState, isUnderWay: boolean): IndexState {
  const isOutdated = state === 'being joined, outdated'
  if (isUnderWay) return isOutdated ? state : 'being joined'
  return isOutdated ? 'outdated' : 'kept'
}

/** Number of schema objects when all indices are complete, including the table of marks. */
const OBJECT_COUNT = SEARCH_INDICES.reduce((count, { objects }) => count + objects.size, 1)

function hasMarks(db: Sqlite): boolean {
  return hasTable(db, MARKS)
}

interface SearchObject {
  name: string
  type: 'table' | 'trigger'
  sql: string
}

/** The full-text tables, their triggers and the table of marks, by name. Without the internal tables of FTS5. */
function searchObjects(db: Sqlite): ReadonlyMap<string, SearchObject> {
  const all = db
    .prepare<unknown[], SearchObject>(
      "SELECT name, type, sql FROM sqlite_master WHERE type IN ('table', 'trigger')",
    )
    .all()
  return new Map(all.filter(isOurs).map(object => [object.name, object]))
}

function isOurs({ name, type }: SearchObject): boolean {
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

/** One step towards the wanted schema objects. Outdated indices are dropped first, one after the other. */
function takeStep(db: Sqlite, isWanted: boolean): void {
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
  if (present.has(MARKS)) for (const { name } of tables) forgetMark(db, name)
  const [table] = tables
  if (table) retireTable(db, table.name, present)
  else if (isWanted) create(db, present)
  else if (present.has(MARKS)) db.exec(`DROP TABLE ${MARKS}`)
}

/**
 * Drops the triggers and marks before a migration, because a migration cannot rebuild a table that a trigger names.
 * Without triggers the writes of the migration are missing from the indices, so `advance` builds them again afterwards.
 */
export function invalidateSearch(db: Sqlite): void {
  const present = searchObjects(db)
  for (const { name, type } of present.values()) {
    if (type === 'trigger') db.exec(`DROP TRIGGER ${quote(name)}`)
  }
  if (present.has(MARKS)) db.exec(`DELETE FROM ${MARKS}`)
}

function forgetMark(db: Sqlite, name: string): void {
  db.prepare(`DELETE FROM ${MARKS} WHERE name = ?`).run(name)
}

/** The name of an index while it is emptied. It is renamed so that no one queries a partly emptied index. */
const retiredName = (name: string): string => name.replace(/^search_(?:left_)?/, 'search_left_')

function retireTable(db: Sqlite, name: string, present: ReadonlyMap<string, SearchObject>): void {
  const retired = retiredName(name)
  if (name !== retired && !present.has(retired)) rename(db, name, retired)
  else empty(db, retired)
}

/** With legacy_alter_table, views of other people are not changed, and a broken view does not prevent the rename. */
function rename(db: Sqlite, from: string, to: string): void {
  db.pragma('legacy_alter_table = ON')
  try {
    db.exec(`ALTER TABLE ${quote(from)} RENAME TO ${quote(to)}`)
  } finally {
    db.pragma('legacy_alter_table = OFF')
  }
}

/** Deletes a batch of blocks, or drops an empty index. Dropping a large one takes long: secure_delete overwrites it. */
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
