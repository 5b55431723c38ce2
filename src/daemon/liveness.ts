import { MINUTE_MS } from '../base/clock.ts'

/** A longer write counts as stuck. Even on a slow disk, a commit takes milliseconds and a WAL checkpoint seconds. */
const STUCK_MS = 5 * MINUTE_MS

/** @returns what is stuck, or undefined. Pure. @param blockedMs how long the current write has been running */
export function livenessProblem(blockedMs: number): string | undefined {
  if (blockedMs < STUCK_MS) return undefined
  return `no commit or checkpoint of the database has ended for ${Math.floor(blockedMs / MINUTE_MS)} minutes`
}
