import { MINUTE_MS } from '../../base/clock.ts'
import type { EngineOptions } from './engine-options.ts'
import { scaled } from './intervals.ts'

/** When a pass misses more rows than this, its list is read again. */
export const MANY_MISSING = 500

const RECHECK_AFTER_MS = MINUTE_MS
const RECHECKS = 2

/** When many rows are missing, their single reads wait this long, because their list is read again first. Scaled. */
export const CONFIRM_MANY_AFTER_MS = (RECHECKS + 1) * RECHECK_AFTER_MS

const MOST_DOUBLINGS = 6

export type MissedRows = ReturnType<typeof createMissedRows>

/**
 * Counts the rows that the passes over a list miss. When one pass misses more than 500 rows, or shows nothing although
 * there were rows, an error of the API is more likely than real deletions. The list is then read again twice, a minute
 * apart, before the missing rows are requested one by one. Otherwise a single empty answer would cause a request for
 * each row, and hide new rows until the next pass. The counts are in memory only: if a restart loses them, parley sends
 * these requests.
 */
export function createMissedRows(options: EngineOptions) {
  /** By segment: the number of times that it is still to be read again. */
  const rechecks = new Map<number, number>()
  const missed = new Map<number, number>()
  /** By segment: the number of passes in a row in which rows became suspected. */
  const suspecting = new Map<number, number>()
  return {
    /** Adds newly suspected rows to the count of the current pass. */
    note(segment: number, rows: number): void {
      if (rows > 0) missed.set(segment, (missed.get(segment) ?? 0) + rows)
    },
    /**
     * Ends the count of a pass. Returns the time in ms after which the segment is read again because a pass missed many
     * rows, or all; undefined when no pass did.
     * @param isSuspecting whether rows became suspected in this pass
     * @param isEmpty whether the pass showed no row
     */
    passEnded(segment: number, { isSuspecting = false, isEmpty = false }): number | undefined {
      if (isSuspecting) suspecting.set(segment, (suspecting.get(segment) ?? 0) + 1)
      else suspecting.delete(segment)
      const isDoubtful = (missed.get(segment) ?? 0) > (isEmpty ? 0 : MANY_MISSING)
      missed.delete(segment)
      const left = rechecks.get(segment) ?? (isDoubtful ? RECHECKS : 0)
      if (left === 0) {
        rechecks.delete(segment)
        return undefined
      }
      rechecks.set(segment, left - 1)
      return scaled(RECHECK_AFTER_MS, options)
    },
    /**
     * The factor for the usual wait before the pass that confirms. It doubles with each further pass in a row in which
     * rows became suspected: if the replicas of the API disagree, every pass may miss some rows.
     */
    waitFactor: (segment: number): number =>
      2 ** Math.min(Math.max((suspecting.get(segment) ?? 1) - 1, 0), MOST_DOUBLINGS),
  }
}
