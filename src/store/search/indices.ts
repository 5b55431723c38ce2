import type { Prepare, Sqlite } from '../database/sqlite-types.ts'
import { type IndexMark, isPurgeDue, merge, purgeStep } from './merges.ts'
import { areObjectsAsWanted, hasMarks, takeStep } from './objects.ts'
import { MARKS, SEARCH_INDICES, type SearchIndex } from './schema.ts'

/**
 * Creates, fills, purges and drops the full-text indices, in small transactions. Each transaction leaves the indices
 * consistent, so the process can end after any of them. The database alone determines the next step.
 */
export interface SearchIndices {
  /** Whether `advance` has more to do than routine merges. This check is quick and writes nothing. */
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
   * Makes a purge due for each index that has lost a text because a row was edited or deleted. `advance` then rewrites
   * these indices, after which they hold no trigram of the texts. Call it inside a transaction. Returns whether a purge
   * of any index is due.
   */
  forget(): boolean
}

export interface SearchProgress {
  done: number
  total: number
}

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
    if (known !== isWanted) known = areObjectsAsWanted(db, isWanted) ? isWanted : undefined
    return known === isWanted
  }
  const newest = ({ source }: SearchIndex): number =>
    prepare<number | null>(`SELECT max(_id) FROM ${source}`).pluck().get() ?? 0

  /** Indexes the next batch of rows. False when no row is left. */
  const fill = (index: SearchIndex, bytes: number): boolean => {
    const { indexed_up_to: after = 0 } = marks().get(index.name) ?? {}
    const upTo = endOfBatch(prepare<{ id: number; bytes: number }>(index.weigh).iterate(after), bytes)
    if (upTo === undefined) return false
    prepare(index.fill).run({ after, upTo })
    prepare(`UPDATE ${MARKS} SET indexed_up_to = ? WHERE name = ?`).run(upTo, index.name)
    return true
  }

  const advanceOne = (index: SearchIndex, mayGoOn: () => boolean): boolean => {
    let bytes = BATCH_BYTES
    let didAny = false
    do {
      // A search is faster with fewer FTS5 segments. Automatic merges are off: their duration could not be limited.
      if (!merge(prepare, index.name)) {
        if (!fill(index, bytes)) {
          const mark = marks().get(index.name)
          return (mark !== undefined && purgeStep(prepare, mark)) || didAny
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

/** The last row of a batch of at most `bytes`, at least one row; undefined when there is no row. Pure. */
function endOfBatch(rows: Iterable<{ id: number; bytes: number }>, bytes: number): number | undefined {
  let upTo: number | undefined
  let left = bytes
  for (const row of rows) {
    if (upTo !== undefined && row.bytes > left) break
    upTo = row.id
    left -= row.bytes
  }
  return upTo
}
