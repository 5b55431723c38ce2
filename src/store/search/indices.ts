import type { Clock } from '../../base/clock.ts'
import { StopError } from '../../base/errors.ts'
import { hasTable } from '../database/existing-tables.ts'
import type { Prepare, Sqlite } from '../database/sqlite-types.ts'
import { onlyRow } from '../database/statements.ts'
import type { Transaction } from '../database/transaction.ts'
import {
  areObjectsAsWanted,
  type IndexProgress,
  type IndexState,
  newestKey,
  readIndexProgress,
  SEARCH_REBUILT,
  takeStep,
} from './index-marks.ts'
import { MARKS, SEARCH_INDICES, type SearchIndex } from './index-schema.ts'

interface SearchProgress {
  done: number
  total: number
}

/** Bytes of text in the first batch of a piece. Indexing them takes some milliseconds. */
const BATCH_BYTES = 32_768

/**
 * Creates, fills, purges and drops the full-text indices, in small transactions. Each transaction leaves the indices
 * consistent, so the process can end after any of them. The database alone determines the next step.
 */
export function createSearchIndices({ db, prepare }: { db: Sqlite; prepare: Prepare }) {
  /**
   * True once a check has found all indices, false once it has found none, else undefined. Only this process changes the
   * indices. A write of rows that meets a damaged index invalidates all of them, which deletes the marks.
   */
  let known: boolean | undefined

  const isAsWanted = (isWanted: boolean): boolean => {
    const isInvalid = isWanted && readIndexProgress(db).size < SEARCH_INDICES.length
    if (known !== isWanted || isInvalid) known = areObjectsAsWanted(db, isWanted) ? isWanted : undefined
    return known === isWanted
  }

  /** Indexes the next batch of rows. Returns false when no row is left. */
  const fill = (index: SearchIndex, bytes: number): boolean => {
    const { indexed_up_to: after = 0 } = readIndexProgress(db).get(index.name) ?? {}
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
          const mark = readIndexProgress(db).get(index.name)
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
    /** Whether `advance` has more to do than merges outside a purge. This check is quick and writes nothing. */
    isDue(isWanted: boolean) {
      if (!isAsWanted(isWanted)) return true
      if (!isWanted) return false
      const all = readIndexProgress(db)
      return SEARCH_INDICES.some(index => {
        const mark = all.get(index.name)
        return mark === undefined || isPurgeDue(mark) || mark.indexed_up_to < newestKey(db, index)
      })
    },
    /** Whether any index exists, complete or not. */
    exists: () => readIndexProgress(db).size > 0,
    /**
     * Does the next piece of work: builds the indices when `isWanted`, else drops them. Call it in a transaction.
     * @returns false when no work is left
     * @param mayGoOn called after each batch; the piece ends when it returns false
     */
    advance(isWanted: boolean, mayGoOn: () => boolean) {
      if (!isAsWanted(isWanted)) {
        takeStep(db, isWanted)
        return true
      }
      return isWanted && SEARCH_INDICES.some(index => advanceOne(index, mayGoOn))
    },
    /** How far the indices are built, in row keys (`_id`) of their source tables, summed over the indices. */
    progress(): SearchProgress {
      const all = readIndexProgress(db)
      return SEARCH_INDICES.reduce(
        (sum, index) => {
          const total = newestKey(db, index)
          // A mark can exceed the newest key, after the newest rows were deleted.
          const done = Math.min(all.get(index.name)?.indexed_up_to ?? 0, total)
          return { done: sum.done + done, total: sum.total + total }
        },
        { done: 0, total: 0 },
      )
    },
    /**
     * Makes a purge due for each index that has lost a text because a row was edited or deleted. `advance` then rewrites
     * these indices without the trigrams of the lost texts. Call it inside a transaction.
     * @returns whether a purge of any index is due
     */
    forget() {
      if (!hasTable(db, MARKS)) return false
      prepare(`UPDATE ${MARKS} SET state = 'to be joined' WHERE state LIKE '%outdated'`).run()
      return [...readIndexProgress(db).values()].some(isPurgeDue)
    },
  }
}

/**
 * @returns the id of the last row of a batch of at most `bytes` but at least one row; undefined when there is no row.
 * Pure.
 */
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

export interface BuildOptions {
  store: { db: Sqlite; prepare: Prepare; transaction: Transaction }
  clock: Clock
  /** The setting `search.enabled`: false drops the indices. */
  isWanted: boolean
  /** Duration of one transaction in ms. One very long text, or FTS5 writing its buffer, may take longer. */
  pieceMs: number
  /** Share of the time that building may take, above 0 and up to 1. `buildSearch` pauses for the rest. */
  share: number
  /** Stops after the current transaction. The next call continues there. */
  signal: AbortSignal
  /** Called after each transaction. */
  onProgress?: (progress: SearchProgress) => void
}

interface Built {
  /** True when no work is left. */
  complete: boolean
  /** True when there was work to do. */
  changed: boolean
}

/** Brings the full-text indices up to date with the rows, or drops them. @throws StopError (73 or 75) */
export async function buildSearch(options: BuildOptions): Promise<Built> {
  const { store, clock, isWanted, pieceMs, share, signal, onProgress } = options
  let search = createSearchIndices(store)
  let isFirstDamage = true
  const changed = search.isDue(isWanted)
  for (let more = true; more; ) {
    if (signal.aborted) return { complete: false, changed }
    let tookMs = 0
    try {
      more = await store.transaction.aside(() => {
        const began = clock.elapsed()
        const goesOn = search.advance(isWanted, () => clock.elapsed() - began < pieceMs)
        tookMs = clock.elapsed() - began
        return goesOn
      })
    } catch (error) {
      const isBegunAgain = error instanceof StopError && error.code === SEARCH_REBUILT && isFirstDamage
      if (!isBegunAgain) throw error
      isFirstDamage = false
      search = createSearchIndices(store)
    }
    onProgress?.(search.progress())
    const pauseMs = (tookMs * (1 - share)) / share
    if (more && pauseMs > 0) await clock.sleep(pauseMs, signal)
  }
  return { complete: true, changed }
}

const isPurgeDue = ({ state }: IndexProgress): boolean => state !== 'kept' && state !== 'outdated'

/**
 * The FTS5 option `usermerge`: a merge by `advance` begins only when a level has this many FTS5 segments. FTS5 stops
 * continuing a merge when a newer level has at least as many segments as the merge, but fewer than this number. So the
 * number is 2 during a purge, because texts that are written meanwhile would stop the purge half-way.
 */
const SEGMENTS_PER_MERGE = { usual: 4, purge: 2 }

/** Blocks of an index, of up to 4 KB each, that are merged at a time. */
const BLOCKS = 40

/**
 * Merges about `blocks` blocks of an index's FTS5 segments. A negative number begins a merge of all segments.
 * @returns false when there is nothing to merge
 */
function merge(prepare: Prepare, name: string, blocks = BLOCKS): boolean {
  const changes = prepare<number>('SELECT total_changes()').pluck()
  const before = onlyRow(changes)
  prepare(`INSERT INTO ${name} (${name}, rank) VALUES ('merge', ?)`).run(blocks)
  // The statement itself counts as one change.
  return onlyRow(changes) - before >= 2
}

/**
 * Takes one step of a purge: the first step begins a merge of all FTS5 segments, later steps continue the merge.
 * @returns false when no purge is due
 */
function purgeStep(prepare: Prepare, mark: IndexProgress): boolean {
  if (!isPurgeDue(mark)) return false
  const { name, state } = mark
  const isFirst = state === 'to be joined'
  if (isFirst) setSegmentsPerMerge(prepare, name, SEGMENTS_PER_MERGE.purge)
  const isUnderWay = merge(prepare, name, isFirst ? -BLOCKS : BLOCKS)
  if (!isUnderWay) setSegmentsPerMerge(prepare, name, SEGMENTS_PER_MERGE.usual)
  prepare(`UPDATE ${MARKS} SET state = ? WHERE name = ?`).run(stateAfter(state, isUnderWay), name)
  return true
}

function setSegmentsPerMerge(prepare: Prepare, name: string, count: number): void {
  // A bound number would be REAL, which FTS5 refuses.
  prepare(`INSERT INTO ${name} (${name}, rank) VALUES ('usermerge', ${count})`).run()
}

function stateAfter(state: IndexState, isUnderWay: boolean): IndexState {
  const isOutdated = state === 'being joined, outdated'
  if (isUnderWay) return isOutdated ? state : 'being joined'
  return isOutdated ? 'outdated' : 'kept'
}
