import { MINUTE_MS } from '../../base/clock.ts'
import type { EngineOptions } from './engine-options.ts'
import { scaled } from './intervals.ts'

/** When a pass misses more rows than this, its list is read again. */
const MANY_MISSING = 500

/** Shorter than the wait for a second denial, so the list is read again before the missing rows are requested. Scaled. */
const RECHECK_AFTER_MS = MINUTE_MS

const MOST_DOUBLINGS = 6

export type MissedRows = ReturnType<typeof createMissedRows>

/**
 * Counts the rows that the passes over a list miss. When one pass misses more than 500 rows, an error of the API is
 * more likely than real deletions. The list is then read again a minute later, before the missing rows are requested one
 * by one. Otherwise a single empty answer would cause a request for each row. The counts are in memory only: if a restart
 * loses them, parley sends these requests.
 */
export function createMissedRows(options: EngineOptions) {
  const missed = new Map<number, number>()
  /** By segment: the number of passes in a row in which rows became suspected. */
  const suspecting = new Map<number, number>()
  return {
    /** Adds newly suspected rows to the count of the current pass. */
    note(segment: number, rows: number): void {
      if (rows > 0) missed.set(segment, (missed.get(segment) ?? 0) + rows)
    },
    /**
     * Ends the count of a pass. Returns the time in ms after which the segment is read again because the pass missed many
     * rows; undefined when it did not.
     * @param isSuspecting whether rows became suspected in this pass
     */
    passEnded(segment: number, isSuspecting = false): number | undefined {
      if (isSuspecting) suspecting.set(segment, (suspecting.get(segment) ?? 0) + 1)
      else suspecting.delete(segment)
      const isMany = (missed.get(segment) ?? 0) > MANY_MISSING
      missed.delete(segment)
      return isMany ? scaled(RECHECK_AFTER_MS, options) : undefined
    },
    /**
     * The factor for the usual wait before the pass that confirms. It doubles with each further pass in a row in which
     * rows became suspected: if the replicas of the API disagree, every pass may miss some rows.
     */
    waitFactor: (segment: number): number =>
      2 ** Math.min(Math.max((suspecting.get(segment) ?? 1) - 1, 0), MOST_DOUBLINGS),
  }
}
