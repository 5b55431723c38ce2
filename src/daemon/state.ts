import { type Clock, isoInstant } from '../clock.ts'
import type { DaemonState } from '../store/status-report.ts'

/** What the daemon says of itself. */

export function running(clock: Clock): DaemonState {
  return { state: 'running', reason: null, since: isoInstant(clock.now()), until: null }
}

export function stopped(clock: Clock): DaemonState {
  return { state: 'stopped', reason: null, since: isoInstant(clock.now()), until: null }
}

export function waiting(clock: Clock, reason: string, ms: number): DaemonState {
  return { state: 'waiting', reason, since: isoInstant(clock.now()), until: isoInstant(clock.now() + ms) }
}
