import type { Sqlite } from './open.ts'
import { CREATE_MARKS, MARKS, SEARCH_INDICES, type SearchIndex } from './search-schema.ts'
import { quote } from './sql.ts'
import type { Prepare } from './statements.ts'

/**
 * Makes the full-text indices, fills them, has what was erased leave them, and drops them: in pieces, each of which
 * leaves them right, so that a process that ends between two of them loses nothing. What is to be done next is read
 * from the database alone.
 */
export interface Search {
  /** Whether `advance` would do anything. Quick, and changes nothing. */
  isDue(isWanted: boolean): boolean
  /** Whether any index is there, be it unfinished. */
  isBegun(): boolean
  /**
   * Inside a transaction: a piece of what is to be done so that all indices are there and hold every row, or none is
   * there. False when nothing is left.
   * @param mayGoOn asked after some milliseconds' work whether the piece may be longer
   */
  advance(isWanted: boolean, mayGoOn: () => boolean): boolean
  /** How many of the rows' keys are behind the marks. */
  progress(): SearchProgress
  /**
   * Inside the transaction that erases: from here on `advance` writes the indices anew, after which no sign of what
   * was erased is left in them.
   */
  forget(): void
}

export interface SearchProgress {
  done: number
  total: number
}

interface Mark {
  name: string
  indexed_up_to: number
  state: IndexState
}

/** FTS5 notes what has gone beside what was there; joining all of its parts has both vanish. */
type IndexState = 'kept' | 'to be joined' | 'being joined'

/** Blocks of an index, of up to 4 KB, that are emptied or written in one piece. */
const BLOCKS = 40

/** So much text is some milliseconds' work. */
const LOT_BYTES = 32_768

export function createSearch({ db, prepare }: { db: Sqlite; prepare: Prepare }): Search {
  /** Once they were found to be as they should, only this process changes them. */
  let found: boolean | undefined

  const marks = (): ReadonlyMap<string, Mark> => {
    const rows = hasMarks(db) ? (prepare(`SELECT * FROM ${MARKS}`).all() as Mark[]) : []
    return new Map(rows.map(row => [row.name, row]))
  }
  const isAsWanted = (isWanted: boolean): boolean => {
    if (found !== isWanted) {
      const objects = searchObjects(db)
      const isRight = isWanted
        ? SEARCH_INDICES.every(one => isWhole(one, objects)) && objects.size === OBJECTS
        : objects.size === 0
      found = isRight ? isWanted : undefined
    }
    return found === isWanted
  }
  const newest = ({ source }: SearchIndex): number =>
    (prepare(`SELECT max(_id) FROM ${source}`).pluck().get() as number | null) ?? 0

  /** The last row of a lot of so many bytes, which has one row at least; undefined where none is left. */
  const endOfLot = ({ weigh }: SearchIndex, after: number, bytes: number): number | undefined => {
    let upTo: number | undefined
    let left = bytes
    for (const row of prepare(weigh).iterate(after) as IterableIterator<{ id: number; bytes: number }>) {
      if (upTo !== undefined && row.bytes > left) break
      upTo = row.id
      left -= row.bytes
    }
    return upTo
  }
  /** False where nothing is left. */
  const fill = (index: SearchIndex, bytes: number): boolean => {
    const { indexed_up_to: after = 0 } = marks().get(index.name) ?? {}
    const upTo = endOfLot(index, after, bytes)
    if (upTo === undefined) return false
    prepare(index.fill).run({ after, upTo })
    prepare(`UPDATE ${MARKS} SET indexed_up_to = ? WHERE name = ?`).run(upTo, index.name)
    return true
  }

  /** Joins parts of an index, about so many blocks of them. False where there was nothing to join. */
  const join = (name: string, blocks: number): boolean => {
    const changes = prepare('SELECT total_changes()').pluck()
    const before = changes.get() as number
    prepare(`INSERT INTO ${name} (${name}, rank) VALUES ('merge', ?)`).run(blocks)
    // The statement itself counts as one change.
    return (changes.get() as number) - before >= 2
  }

  /** The first step plans to join all parts there are; further steps go on with it, whatever comes meanwhile. */
  const forgetSome = ({ name, state }: Mark): boolean => {
    if (state === 'kept') return false
    const isUnderWay = join(name, state === 'to be joined' ? -BLOCKS : BLOCKS)
    const next: IndexState = isUnderWay ? 'being joined' : 'kept'
    prepare(`UPDATE ${MARKS} SET state = ? WHERE name = ?`).run(next, name)
    return true
  }

  const advanceOne = (index: SearchIndex, mayGoOn: () => boolean): boolean => {
    let bytes = LOT_BYTES
    let didAny = false
    do {
      // Few parts are quicker to read and to join. Left alone, FTS5 would join when it pleases, and as much at once.
      if (!join(index.name, BLOCKS)) {
        if (!fill(index, bytes)) {
          const mark = marks().get(index.name)
          return (mark !== undefined && forgetSome(mark)) || didAny
        }
        // FTS5 writes out what it has gathered before each statement, so that few long ones are cheaper.
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
        return mark === undefined || mark.state !== 'kept' || mark.indexed_up_to < newest(index)
      })
    },
    isBegun: () => marks().size > 0,
    advance(isWanted, mayGoOn) {
      if (!isAsWanted(isWanted)) {
        change(db, isWanted)
        return true
      }
      return isWanted && SEARCH_INDICES.some(index => advanceOne(index, mayGoOn))
    },
    progress() {
      const all = marks()
      return SEARCH_INDICES.reduce(
        (sum, index) => {
          const total = newest(index)
          // A mark stays where it is when the newest rows go.
          const done = Math.min(all.get(index.name)?.indexed_up_to ?? 0, total)
          return { done: sum.done + done, total: sum.total + total }
        },
        { done: 0, total: 0 },
      )
    },
    forget() {
      if (hasMarks(db)) prepare(`UPDATE ${MARKS} SET state = 'to be joined'`).run()
    },
  }
}

/** How many objects there are when all is as it should be. */
const OBJECTS = SEARCH_INDICES.reduce((count, { objects }) => count + objects.size, 1)

function hasMarks(db: Sqlite): boolean {
  return db.prepare('SELECT 1 FROM sqlite_master WHERE name = ?').get(MARKS) !== undefined
}

interface SearchObject {
  name: string
  type: 'table' | 'trigger'
  sql: string
}

/** By name: the full-text tables, their triggers and the table of marks. What FTS5 keeps for itself is left out. */
function searchObjects(db: Sqlite): ReadonlyMap<string, SearchObject> {
  const all = db
    .prepare("SELECT name, type, sql FROM sqlite_master WHERE type IN ('table', 'trigger')")
    .all() as SearchObject[]
  return new Map(all.filter(isOurs).map(object => [object.name, object]))
}

function isOurs({ name, type }: SearchObject): boolean {
  if (type === 'table')
    return name === MARKS || SEARCH_INDICES.some(index => name === index.name || name === leaving(index.name))
  return SEARCH_INDICES.some(index => name.startsWith(`${index.name}_`))
}

function isWhole({ objects, name }: SearchIndex, present: ReadonlyMap<string, SearchObject>): boolean {
  return (
    present.has(MARKS) &&
    present.has(name) &&
    [...objects].every(([called, sql]) => present.get(called)?.sql === sql)
  )
}

/** One step from what is there to what should be: first whatever is not of this version goes, index by index. */
function change(db: Sqlite, isWanted: boolean): void {
  const present = searchObjects(db)
  const kept = new Set(
    SEARCH_INDICES.filter(index => isWanted && isWhole(index, present)).flatMap(({ objects }) => [
      ...objects.keys(),
    ]),
  )
  const outdated = [...present.values()].filter(({ name }) => name !== MARKS && !kept.has(name))
  const triggers = outdated.filter(({ type }) => type === 'trigger')
  const tables = outdated.filter(({ type }) => type === 'table')
  // From here on nobody keeps it, so nobody may take it for an index.
  for (const { name } of triggers) db.exec(`DROP TRIGGER ${quote(name)}`)
  if (present.has(MARKS)) for (const { name } of tables) forgetMark(db, name)
  const [table] = tables
  if (table) setAside(db, table.name, present)
  else if (isWanted) create(db, present)
  else if (present.has(MARKS)) db.exec(`DROP TABLE ${MARKS}`)
}

/**
 * Before a migration: a table that a trigger names cannot be rebuilt, and what a migration writes would not be in the
 * indices. They are made anew afterwards.
 */
export function giveUpSearch(db: Sqlite): void {
  const present = searchObjects(db)
  for (const { name, type } of present.values()) {
    if (type === 'trigger') db.exec(`DROP TRIGGER ${quote(name)}`)
  }
  if (present.has(MARKS)) db.exec(`DELETE FROM ${MARKS}`)
}

function forgetMark(db: Sqlite, name: string): void {
  db.prepare(`DELETE FROM ${MARKS} WHERE name = ?`).run(name)
}

/** What an index is called while it is emptied: who asks it meanwhile finds none, rather than half of one. */
const leaving = (name: string): string => name.replace(/^search_(?:left_)?/, 'search_left_')

function setAside(db: Sqlite, name: string, present: ReadonlyMap<string, SearchObject>): void {
  const aside = leaving(name)
  if (name !== aside && !present.has(aside)) rename(db, name, aside)
  else empty(db, aside)
}

/** Views that people have made stay as they are: else those that name it would follow it, and a broken one stop it. */
function rename(db: Sqlite, from: string, to: string): void {
  db.pragma('legacy_alter_table = ON')
  try {
    db.exec(`ALTER TABLE ${quote(from)} RENAME TO ${quote(to)}`)
  } finally {
    db.pragma('legacy_alter_table = OFF')
  }
}

/** Dropped at once, a large index would hold up everything until each of its pages is overwritten. */
function empty(db: Sqlite, name: string): void {
  const data = quote(`${name}_data`)
  // Only so does SQLite let anybody but FTS5 touch what is FTS5's.
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
