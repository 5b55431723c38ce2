/** Even on a slow disk a commit takes milliseconds and a checkpoint seconds. */
const STUCK_MS = 5 * 60_000

/** True while writes end, else the reason. Pure. @param blockedMs for how long the current write has been running */
export function livenessAfter(blockedMs: number): true | string {
  if (blockedMs < STUCK_MS) return true
  return `no commit or checkpoint of the database has ended for ${Math.floor(blockedMs / 60_000)} minutes`
}
