import { setTimeout as pause } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { processorWaits } from './processor-waits.ts'

/**
 * How long nothing may move before a wait is given up, in ms. It is far more than anything that is waited for needs on
 * a machine with nothing else to do.
 */
const PATIENCE_MS = 90_000
const BETWEEN_LOOKS_MS = 100
/** So many times as long as a look takes is the pause after it: the comparison of a warehouse leaves time to fill it. */
const PAUSE_PER_LOOK = 3
/** On a busy machine a look may take seconds. */
const LONGEST_PAUSE_MS = 1000
const BETWEEN_ACCOUNTS_MS = 1000

export interface Patience {
  /** In place of the usual `PATIENCE_MS`, where what is waited for comes by a calendar. */
  patienceMs?: number
  /** What moves while the work goes on, beside what is seen. */
  moves?: () => unknown
}

/**
 * Looks again and again until what is seen is what was waited for, or until nothing moves any more. Gives what was
 * seen last, so that an assertion on it shows what is still wrong.
 *
 * No wait ends because of the time on the wall. Each change in what is seen starts the patience again, and time in
 * which this process, or one that it started, had to wait for a processor does not count.
 */
export async function until<Seen>(
  look: () => Seen | Promise<Seen>,
  isIt: (seen: Seen) => boolean,
  { patienceMs = PATIENCE_MS, moves = () => undefined }: Patience = {},
): Promise<Seen> {
  const idle = idleTime()
  let before: unknown[] | undefined
  for (;;) {
    const lookedAt = performance.now()
    const seen = await look()
    const lookMs = performance.now() - lookedAt
    if (isIt(seen)) return seen
    const now = [seen, moves()]
    const hasMoved = !isDeepStrictEqual(now, before)
    before = now
    if (idle.msSince(hasMoved) > patienceMs) return seen
    await pause(Math.max(BETWEEN_LOOKS_MS, Math.min(PAUSE_PER_LOOK * lookMs, LONGEST_PAUSE_MS)))
  }
}

/** Time in which the processes of this test could have worked, in ms. */
function idleTime() {
  const waits = processorWaits()
  let at = performance.now()
  let idleMs = 0
  return {
    /** Since the last move, which may be now. */
    msSince(hasMoved: boolean): number {
      const passed = performance.now() - at
      if (passed >= BETWEEN_ACCOUNTS_MS) {
        at += passed
        idleMs += Math.max(0, passed - waits.sinceLast())
      }
      if (hasMoved) idleMs = 0
      return idleMs
    },
  }
}
