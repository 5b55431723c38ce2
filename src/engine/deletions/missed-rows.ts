import type { Clock } from '../../clock.ts'
import type { EngineOptions } from '../dependencies.ts'
import { MINUTE, scaled } from '../due/intervals.ts'

/**
 * Counts the rows that passes miss. When one pass misses more than 500, the answer is the likelier mistake: the list
 * is read again twice, a minute apart, before its rows are asked for one by one. Otherwise one empty answer would cost
 * a request for each row. Kept in memory, since a restart costs only those requests.
 */
export interface MissedRows {
  /** Counts rows that became suspects in the current pass. */
  note(segment: number, rows: number): void
  passEnded(segment: number, isSuspecting?: boolean): void
  /** When to read the segment's list again, by `elapsed`; undefined when it need not be. */
  recheckAt(segment: number): number | undefined
  /** Multiplies the usual wait for the next pass: replicas of an API that disagree miss something each time. */
  waitFactor(segment: number): number
  /** When to read the next of all such lists again, by `elapsed`; undefined when there is none. */
  nextRecheckAt(): number | undefined
}

/** A pass that misses more rows than this has its list read again. */
export const MANY_MISSING = 500

const RECHECK_AFTER_MS = MINUTE
const RECHECKS = 2

/** Single reads of many missing rows wait this long, until their list was read again. Scaled by `sync.interval_scale`. */
export const CONFIRM_MANY_AFTER_MS = (RECHECKS + 1) * RECHECK_AFTER_MS

const MOST_DOUBLINGS = 6

interface Recheck {
  left: number
  at: number
}

export function createMissedRows(clock: Clock, options: EngineOptions): MissedRows {
  const rechecks = new Map<number, Recheck>()
  const missed = new Map<number, number>()
  /** Passes in a row that made rows suspects. */
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
    nextRecheckAt() {
      const times = [...rechecks.values()].map(({ at }) => at)
      return times.length === 0 ? undefined : Math.min(...times)
    },
  }
}
