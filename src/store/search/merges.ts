import type { Prepare } from '../database/sqlite-types.ts'
import { onlyRow } from '../database/statements.ts'
import { MARKS } from './schema.ts'

/** How far an index is filled and purged: a row of the table of marks. */
export interface IndexMark {
  name: string
  indexed_up_to: number
  state: IndexState
}

/**
 * FTS5 stores a deletion as a new entry next to the old one. Merging all FTS5 segments of the index removes both.
 *
 * - `kept` → `outdated`: a text is edited or deleted (a trigger)
 * - `outdated` → `to be joined`: a purge is due (`forget`)
 * - `to be joined` → `being joined`: the merge has begun
 * - `being joined` → `kept`: the merge is complete
 * - `being joined` → `being joined, outdated`: a text is edited or deleted during the merge, which does not remove it
 * - `being joined, outdated` → `outdated`: the merge is complete
 */
type IndexState = 'kept' | 'outdated' | 'to be joined' | 'being joined' | 'being joined, outdated'

export const isPurgeDue = ({ state }: IndexMark): boolean => state !== 'kept' && state !== 'outdated'

/**
 * The FTS5 option `usermerge`: a merge by `advance` begins only when a level has this many FTS5 segments. FTS5 stops
 * continuing a merge when a newer level has at least as many segments as the merge, but fewer than this number. So the
 * number is 2 during a purge, because texts that are written meanwhile would stop the purge half-way.
 */
const SEGMENTS_PER_MERGE = { usual: 4, purge: 2 }

/** Blocks of an index, of up to 4 KB each, that are merged at a time. */
const BLOCKS = 40

/**
 * Merges about `blocks` blocks of an index's FTS5 segments. A negative number begins a merge of all segments. Returns
 * false when there is nothing to merge.
 */
export function merge(prepare: Prepare, name: string, blocks = BLOCKS): boolean {
  const changes = prepare<number>('SELECT total_changes()').pluck()
  const before = onlyRow(changes)
  prepare(`INSERT INTO ${name} (${name}, rank) VALUES ('merge', ?)`).run(blocks)
  // The statement itself counts as one change.
  return onlyRow(changes) - before >= 2
}

/** One step of a purge: the first begins a merge of all FTS5 segments, others continue it. False if none is due. */
export function purgeStep(prepare: Prepare, mark: IndexMark): boolean {
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
