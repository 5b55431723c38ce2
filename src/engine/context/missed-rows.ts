import type { Clock } from '../../base/clock.ts'
import type { EngineOptions } from './engine-options.ts'
import { MINUTE, scaled } from './intervals.ts'

/**
 * Counts the rows that the passes over a list miss. When one pass misses more than 500 rows, an error of the API is
 * more likely than real deletions. The list is then read again twice, a minute apart, before the missing rows are
 * requested one by one. Otherwise a single empty answer would cause a request for each row. The counts are in memory
 * only: if a restart loses them, parley sends these requests.
 */
export interface MissedRows {
  /** Adds newly suspected rows to the count of the current pass. */
  note(segment: number, rows: number): void
  /** Ends the count of a pass. `isSuspecting`: rows became suspected in this pass. */
  passEnded(segment: number, isSuspecting?: boolean): void
  /** When, by `elapsed`, to read the segment again because a pass missed many rows; undefined when no pass did. */
  recheckAt(segment: number): number | undefined
  /**
   * The factor for the usual wait before the pass that confirms. It doubles with each further pass in a row in which
   * rows became suspected: if the replicas of the API disagree, every pass may miss some rows.
   */
  waitFactor(segment: number): number
  /** Whether rows became suspected in the last pass. */
  isSuspecting(segment: number): boolean
  /** The earliest `recheckAt` of all segments; undefined when there is none. */
  nextRecheckAt(): number | undefined
}

/** When a pass misses more rows than this, its list is read again. */
export const MANY_MISSING = 500

const RECHECK_AFTER_MS = MINUTE
const RECHECKS = 2

/** When many rows are missing, their single reads wait this long: their list is read again first. Scaled. */
export const CONFIRM_MANY_AFTER_MS = (RECHECKS + 1) * RECHECK_AFTER_MS

const MOST_DOUBLINGS = 6

interface Recheck {
  left: number
  at: number
}

export function createMissedRows(clock: Clock, options: EngineOptions): MissedRows {
  const rechecks = new Map<number, Recheck>()
  const missed = new Map<number, number>()
  /** By segment: the number of passes in a row in which rows became suspected. */
  const suspecting = new Map<number, number>()
  return {
    note(segment, rows) {
      if (rows > 0) missed.set(segment, (missed.get(segment) ?? 0) + rows)
    },
    passEnded(segment, isSuspecting = false) {
      if (isSuspecting) suspecting.set(segment, (suspecting.get(segment) ?? 0) + 1)
      else suspecting.delete(segment)
      const isMany = (missed.get(segment) ?? 0) > MANY_MISSING
      missed.delete(segment)
      const left = rechecks.get(segment)?.left ?? (isMany ? RECHECKS : 0)
      const at = clock.elapsed() + scaled(RECHECK_AFTER_MS, options)
      if (left > 0) rechecks.set(segment, { left: left - 1, at })
      else rechecks.delete(segment)
    },
    recheckAt: segment => rechecks.get(segment)?.at,
    waitFactor: segment => 2 ** Math.min(Math.max((suspecting.get(segment) ?? 1) - 1, 0), MOST_DOUBLINGS),
    isSuspecting: segment => suspecting.has(segment),
    nextRecheckAt() {
      const times = [...rechecks.values()].map(({ at }) => at)
      return times.length === 0 ? undefined : Math.min(...times)
    },
  }
}
