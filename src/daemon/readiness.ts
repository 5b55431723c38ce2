import { isoInstant, MINUTE_MS } from '../base/clock.ts'
import { reasonOfState } from '../store/status/processes.ts'
import { GATE_KINDS } from '../store/sync/gates.ts'
import { dateTimeText } from '../terminal/wording.ts'
import type { CurrentState } from './state.ts'

/** Whether the daemon is alive, and whether the warehouse follows the API now: for `/livez`, `/readyz` and the metrics. */

/** A longer write counts as stuck. Even on a slow disk, a commit takes milliseconds and a WAL checkpoint seconds. */
const STUCK_MS = 5 * MINUTE_MS

/** @returns what is stuck, or undefined. @param blockedMs how long the current write has been running */
export function livenessProblem(blockedMs: number): string | undefined {
  if (blockedMs < STUCK_MS) return undefined
  return `no commit or checkpoint of the database has ended for ${Math.floor(blockedMs / MINUTE_MS)} minutes`
}

/** @returns undefined while the warehouse follows the API, else the reason for the operator */
export function readinessProblem({ state, session }: CurrentState): string | undefined {
  if (state.state !== 'running')
    return [`${state.state} since ${dateTimeText(state.since)}`, reasonOfState(state)]
      .filter(text => text !== null)
      .join(': ')
  const trouble = session?.progress().trouble()
  if (trouble)
    return `${GATE_KINDS[trouble.kind].is.replace(/^[NT]/, first => first.toLowerCase())} since ${dateTimeText(isoInstant(trouble.since))}: ${trouble.reason}`
  return session ? undefined : 'the next session is starting'
}

/** Whether requests to the API succeed, apart from pauses; undefined between two sessions. */
export function isApiReachable({ session }: CurrentState): boolean | undefined {
  if (session === undefined) return undefined
  const kind = session.progress().trouble()?.kind
  return kind === undefined || !GATE_KINDS[kind].isFault
}
