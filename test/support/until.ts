import { setTimeout as pause } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { processorWaits } from './processor-waits.ts'

/**
 * The time without a change after which a wait gives up, in ms. It is far more than any awaited change needs on an
 * idle machine.
 */
const PATIENCE_MS = 90_000
const BETWEEN_LOOKS_MS = 100
/** The pause after a look, as a multiple of its duration. It leaves the process time to fill the warehouse. */
const PAUSE_PER_LOOK = 3
/** On a busy machine a look may take seconds. */
const LONGEST_PAUSE_MS = 1000
const BETWEEN_ACCOUNTS_MS = 1000

export interface Patience {
  /** Replaces `PATIENCE_MS` when a schedule decides when the awaited change comes. */
  patienceMs?: number
  /** Another value that changes while the work continues. */
  moves?: () => unknown
}

/**
 * Looks repeatedly until the value is the awaited one, or until nothing changes any more. Returns the last value, so
 * that an assertion on it shows what is still wrong.
 *
 * No wait ends by wall time. Each change of the value restarts the patience. Time in which this process or one of its
 * descendants waited for a processor does not count.
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

/** Measures the time since the last change, in ms, without the time in which this test's processes waited for a processor. */
function idleTime() {
  const waits = processorWaits()
  let at = performance.now()
  let idleMs = 0
  return {
    /** The time since the last change; 0 when the value has just changed. */
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
