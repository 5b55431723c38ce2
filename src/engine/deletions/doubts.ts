import type { Clock } from '../../clock.ts'
import type { EngineOptions } from '../options.ts'
import { MINUTE, scaled } from '../schedule/intervals.ts'

/**
 * Passes that missed so many rows that the answer is the likelier mistake. Such a list is read again twice, a minute
 * apart, before its rows are asked for one by one: one empty answer would else cost a request for each of them. Kept
 * in memory, since a restart costs only those requests.
 */
export interface Doubts {
  /** Counts rows that the pass under way has made suspects. */
  missed(segment: number, rows: number): void
  passEnded(segment: number, isSuspecting?: boolean): void
  /** When the list of the segment is to be read again, by `elapsed`; undefined when it need not be. */
  readAgainAt(segment: number): number | undefined
  /** By how much longer than usual to wait for the next pass: copies of an API that disagree miss something each time. */
  patience(segment: number): number
  /** When the next list is to be read again, by `elapsed`; undefined when none is. */
  nextAt(): number | undefined
}

/** More rows than this at once are many. */
export const MANY_MISSING = 500

const READ_AGAIN_AFTER_MS = MINUTE
const TIMES = 2

/** The single reads of many missing rows wait until their list was read again. Scaled by the owner. */
export const CONFIRM_MANY_AFTER_MS = (TIMES + 1) * READ_AGAIN_AFTER_MS

const MOST_DOUBLINGS = 6

interface Doubt {
  left: number
  at: number
}

export function createDoubts(clock: Clock, options: EngineOptions): Doubts {
  const doubts = new Map<number, Doubt>()
  const missing = new Map<number, number>()
  const suspecting = new Map<number, number>()
  return {
    missed(segment, rows) {
      if (rows > 0) missing.set(segment, (missing.get(segment) ?? 0) + rows)
    },
    passEnded(segment, isSuspecting = false) {
      if (isSuspecting) suspecting.set(segment, (suspecting.get(segment) ?? 0) + 1)
      else suspecting.delete(segment)
      const isMany = (missing.get(segment) ?? 0) > MANY_MISSING
      missing.delete(segment)
      const left = doubts.get(segment)?.left ?? (isMany ? TIMES : 0)
      const at = clock.elapsed() + scaled(READ_AGAIN_AFTER_MS, options)
      if (left > 0) doubts.set(segment, { left: left - 1, at })
      else doubts.delete(segment)
    },
    readAgainAt: segment => doubts.get(segment)?.at,
    patience: segment => 2 ** Math.min(Math.max((suspecting.get(segment) ?? 1) - 1, 0), MOST_DOUBLINGS),
    nextAt() {
      const times = [...doubts.values()].map(({ at }) => at)
      return times.length === 0 ? undefined : Math.min(...times)
    },
  }
}
