import { resolve } from 'node:path'
import { databaseError, openDatabase, type Sqlite } from './open.ts'
import {
  type Access,
  filledIn,
  indicesFor,
  matchAnyOf,
  matchOf,
  type SearchQuestion,
  type SearchRow,
  searchSql,
  startsOf,
} from './search-query.ts'
import { MARKS, SEARCH_INDICES, type SearchIndex, type SearchTable } from './search-schema.ts'
import { nothingThere, requireWarehouse } from './status.ts'

export interface SearchAnswer {
  rows: readonly SearchRow[]
  /** The statement that was run, or would be, with its values. */
  sql: string
  /** How much of what was asked for was found without an index, from 0 to 1: some has none yet, or all. */
  unindexed: number
}

/**
 * Searches a warehouse without changing anything, whoever writes it meanwhile.
 * @param options `run: false` only makes the statement
 * @throws StopError (73) when there is no warehouse at this path, or it cannot be read
 */
export function readSearch(path: string, question: SearchQuestion, options: { run: boolean }): SearchAnswer {
  const file = resolve(path)
  requireWarehouse(file)
  try {
    const db = openDatabase({ path: file, readonly: true })
    try {
      db.pragma('temp_store = MEMORY')
      // All of one moment: how far the indices are built, and what they say.
      return db.transaction(() => search(db, question, options.run))()
    } finally {
      db.close()
    }
  } catch (error) {
    throw databaseError(error, file)
  }
}

function search(db: Sqlite, question: SearchQuestion, run: boolean): SearchAnswer {
  if (!hasTable(db, 'messages')) throw nothingThere(db.name)
  const marks = marksOf(db)
  const found = new Map(
    indicesFor(question.kinds).map(name => {
      const index = SEARCH_INDICES.find(one => one.name === name)
      return [name, index ? coverage(db, index, marks) : NOTHING] as const
    }),
  )
  const access = new Map([...found].map(([name, covered]) => [name, accessTo(db, name, covered, question)]))
  const statement = searchSql(question, name => access.get(name) ?? { by: 'time' })
  const rows = run ? (db.prepare(statement.sql).all(...statement.values) as SearchRow[]) : []
  return { rows, sql: filledIn(statement), unindexed: shareLeft([...found.values()]) }
}

interface Coverage {
  mark: number
  newest: number
}

const NOTHING: Coverage = { mark: 0, newest: 0 }

const hasTable = (db: Sqlite, name: string): boolean =>
  db.prepare('SELECT 1 FROM sqlite_master WHERE name = ?').get(name) !== undefined

function marksOf(db: Sqlite): ReadonlyMap<string, number> {
  if (!hasTable(db, MARKS)) return new Map()
  const rows = db.prepare(`SELECT name, indexed_up_to FROM ${MARKS}`).raw().all() as [string, number][]
  return new Map(rows)
}

function coverage(db: Sqlite, { name, source }: SearchIndex, marks: ReadonlyMap<string, number>): Coverage {
  const newest = db.prepare(`SELECT max(_id) FROM ${source}`).pluck().get() as number | null
  return { mark: marks.get(name) ?? 0, newest: newest ?? 0 }
}

/** A share that matters: new rows are taken in from time to time, and are few. */
function shareLeft(covered: readonly Coverage[]): number {
  const sum = (value: (one: Coverage) => number) => covered.reduce((total, one) => total + value(one), 0)
  const total = sum(({ newest }) => newest)
  return total === 0 ? 0 : sum(({ mark, newest }) => Math.max(0, newest - mark)) / total
}

/** Below so many hits the index is the better way however many rows there are. */
const FEW = 500

/**
 * What is rare is found through the index, every hit of it. What is frequent is among the newest rows often enough to
 * be met there. They cost the same where the hits are about the root of rows times wanted rows.
 */
function accessTo(
  db: Sqlite,
  name: SearchTable,
  { mark, newest }: Coverage,
  question: SearchQuestion,
): Access {
  if (mark === 0) return { by: 'time' }
  const most = Math.max(FEW, Math.ceil(Math.sqrt(newest * question.limit)))
  const match = matchOf(question.terms) ?? matchOfShort(db, name, question.terms, most)
  if (match === undefined) return { by: 'time' }
  const hits = db
    .prepare(`SELECT count(*) FROM (SELECT 1 FROM ${name} WHERE ${name} MATCH ? LIMIT ?)`)
    .pluck()
    .get(match, most) as number
  const left = Math.max(0, newest - mark)
  return hits + left < most ? { by: 'index', match, mark, isWhole: left === 0 } : { by: 'time' }
}

/** So many different runs of signs are asked for at once at most. */
const MOST_RUNS = 200

/** What the index is asked for when all terms are of one or two signs; undefined where all of these are frequent. */
function matchOfShort(
  db: Sqlite,
  name: SearchTable,
  terms: readonly string[],
  most: number,
): string | undefined {
  db.exec(`CREATE VIRTUAL TABLE temp.runs USING fts5vocab(main, ${name}, row)`)
  try {
    const beginning = db.prepare<[string, string], { term: string; doc: number }>(
      'SELECT term, doc FROM temp.runs WHERE term >= ? AND term < ?',
    )
    const rare = terms.flatMap(term => {
      const starts = startsOf(term)
      if (starts === undefined) return []
      const runs: string[] = []
      let hits = 0
      for (const start of starts) {
        for (const run of beginning.iterate(start, `${start}\u{10ffff}`)) {
          runs.push(run.term)
          hits += run.doc
          if (hits >= most || runs.length > MOST_RUNS) return []
        }
      }
      return [runs]
    })
    if (rare.length === 0) return undefined
    // Nothing at all begins with it: what is not in the index yet may.
    return rare.some(runs => runs.length === 0) ? matchAnyOf([[NOWHERE]]) : matchAnyOf(rare)
  } finally {
    db.exec('DROP TABLE temp.runs')
  }
}

/** In no text that people write. */
const NOWHERE = '\u{10fffd}\u{10fffd}\u{10fffd}'
