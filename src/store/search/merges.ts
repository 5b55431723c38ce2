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
 * kept → outdated (a trigger, when a text is edited or deleted) → to be joined (`forget`) → being joined (the merge has
 * begun) → kept (the merge is complete). The merge does not include texts that are edited or deleted after it began:
 * being joined → being joined, outdated (a trigger) → outdated (the merge is complete).
 */
type IndexState = 'kept' | 'outdated' | 'to be joined' | 'being joined' | 'being joined, outdated'

export const isPurgeDue = ({ state }: IndexMark): boolean => state !== 'kept' && state !== 'outdated'

/**
 * Least number of FTS5 segments that a merge by `advance` takes, except that a merge that has begun continues. FTS5
 * does not continue it while fewer new segments than this wait, but as many as the merge has. During a purge the number
 * is therefore 2, or the purge would stop half-way when texts are written meanwhile.
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
