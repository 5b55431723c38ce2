/** A commit takes milliseconds and a checkpoint seconds, on a slow disk too. */
const STUCK_MS = 5 * 60_000

/** True while the database can be written, else why not. Pure. @param stuckMs since a write began that has not ended */
export function livenessAfter(stuckMs: number): true | string {
  if (stuckMs < STUCK_MS) return true
  return `no commit or checkpoint of the database has ended for ${Math.floor(stuckMs / 60_000)} minutes`
}
