import type { Sqlite } from '../database/sqlite-types.ts'
import { onlyRow } from '../database/statements.ts'
import { type IndexProgress, newestKey, readIndexProgress } from './index-marks.ts'
import { SEARCH_INDICES, type SearchIndex, type SearchTable } from './index-schema.ts'
import {
  type Access,
  indicesFor,
  matchAnyOf,
  matchOf,
  type SearchQuestion,
  type SearchRow,
  searchSql,
  startsOf,
  withValues,
} from './query.ts'

/** Runs a search. Chooses between the full-text index and a scan of the newest rows; query.ts builds the statement. */

export interface SearchAnswer {
  rows: readonly SearchRow[]
  /** The statement with its values, whether or not it was run. */
  sql: string
  /** Share of the searched rows that no index covers yet, from 0 to 1. */
  unindexed: number
}

/**
 * Searches a warehouse that is open for reading. Another process may write meanwhile.
 * @param options `run: false` only builds the statement
 */
export function runSearch(db: Sqlite, question: SearchQuestion, options: { run: boolean }): SearchAnswer {
  db.pragma('temp_store = MEMORY')
  // One read transaction, so that the marks match the content of the indices.
  return db.transaction(() => search(db, question, options.run))()
}

function search(db: Sqlite, question: SearchQuestion, run: boolean): SearchAnswer {
  const marks = readIndexProgress(db)
  const found = new Map(
    indicesFor(question.kinds).map(name => {
      const index = SEARCH_INDICES.find(one => one.name === name)
      return [name, index ? coverage(db, index, marks.get(name)) : NO_COVERAGE] as const
    }),
  )
  const access = new Map([...found].map(([name, covered]) => [name, accessTo(db, name, covered, question)]))
  const statement = searchSql(question, name => access.get(name) ?? { by: 'time' })
  const rows = run ? db.prepare<unknown[], SearchRow>(statement.sql).all(...statement.values) : []
  return { rows, sql: withValues(statement), unindexed: unindexedShare([...found.values()]) }
}

interface Coverage {
  mark: number
  newest: number
}

const NO_COVERAGE: Coverage = { mark: 0, newest: 0 }

const coverage = (db: Sqlite, index: SearchIndex, mark: IndexProgress | undefined): Coverage => ({
  mark: mark?.indexed_up_to ?? 0,
  newest: newestKey(db, index),
})

function unindexedShare(covered: readonly Coverage[]): number {
  const sum = (value: (one: Coverage) => number) => covered.reduce((total, one) => total + value(one), 0)
  const total = sum(({ newest }) => newest)
  return total === 0 ? 0 : sum(({ mark, newest }) => Math.max(0, newest - mark)) / total
}

/** With fewer hits than this, the index is faster than a scan, however many rows there are. */
const MIN_INDEX_HITS = 500

/**
 * Chooses the index for rare terms, and a scan of the newest rows for frequent terms, which occur in enough of them.
 * The index and the scan cost about the same when the number of hits is sqrt(rows × limit).
 */
function accessTo(
  db: Sqlite,
  name: SearchTable,
  { mark, newest }: Coverage,
  question: SearchQuestion,
): Access {
  if (mark === 0) return { by: 'time' }
  const most = Math.max(MIN_INDEX_HITS, Math.ceil(Math.sqrt(newest * question.limit)))
  const match = matchOf(question.terms) ?? matchOfShort(db, name, question.terms, most)
  if (match === undefined) return { by: 'time' }
  const sql = `SELECT count(*) FROM (SELECT 1 FROM ${name} WHERE ${name} MATCH ? LIMIT ?)`
  const hits = onlyRow(db.prepare<unknown[], number>(sql).pluck(), match, most)
  const left = Math.max(0, newest - mark)
  return hits + left < most ? { by: 'index', match, mark, isWhole: left === 0 } : { by: 'time' }
}

/** A short term counts as frequent when more trigrams than this begin with it. */
const MAX_RUNS = 200

/**
 * @returns the FTS5 query when all terms have one or two characters; undefined when no term is left. Frequent terms are
 * left out, and terms whose lower case is uncertain (`startsOf`).
 */
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
          if (hits >= most || runs.length > MAX_RUNS) return []
        }
      }
      return [runs]
    })
    if (rare.length === 0) return undefined
    // No indexed text has this term. The query matches nothing, but rows that are not indexed yet are still searched.
    return rare.some(runs => runs.length === 0) ? matchAnyOf([[UNMATCHED]]) : matchAnyOf(rare)
  } finally {
    db.exec('DROP TABLE temp.runs')
  }
}

/** A trigram of private-use characters, which no text contains. */
const UNMATCHED = '\u{10fffd}\u{10fffd}\u{10fffd}'
