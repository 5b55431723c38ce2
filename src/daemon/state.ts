import { type Clock, isoInstant } from '../clock.ts'
import { EXIT_STATUS, exitStatusOf, reasonOf } from '../errors.ts'
import type { DaemonState } from '../store/status-report.ts'

/** What the daemon says of itself. */

export function running(clock: Clock): DaemonState {
  return { state: 'running', reason: null, since: isoInstant(clock.now()), until: null }
}

/** @param error what ended it; undefined where it was asked to stop */
export function stopped(clock: Clock, error?: unknown): DaemonState {
  const end =
    error === undefined
      ? { reason: null, exit_status: EXIT_STATUS.done }
      : { reason: reasonOf(error), exit_status: exitStatusOf(error) }
  return { state: 'stopped', ...end, since: isoInstant(clock.now()), until: null }
}

export function waiting(clock: Clock, reason: string, ms: number): DaemonState {
  return { state: 'waiting', reason, since: isoInstant(clock.now()), until: isoInstant(clock.now() + ms) }
}
