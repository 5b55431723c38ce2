/** Even on a slow disk a commit takes milliseconds and a checkpoint seconds. */
const STUCK_MS = 5 * 60_000

/** True while writes end, else the reason. Pure. @param stuckMs for how long the current write has been running */
export function livenessAfter(stuckMs: number): true | string {
  if (stuckMs < STUCK_MS) return true
  return `no commit or checkpoint of the database has ended for ${Math.floor(stuckMs / 60_000)} minutes`
}
