import type { App } from '../app.ts'
import { isoInstant } from '../clock.ts'
import type { Backfill } from '../engine/backfill.ts'
import { EXIT_STATUS, type ExitStatus, exitStatusOf, reasonOf } from '../errors.ts'
import type { Log } from '../log.ts'
import { META } from '../store/state.ts'
import type { BackfillEnd } from '../store/status-report.ts'

interface LoggedEnd {
  signal: AbortSignal
  backfill: Pick<Backfill, 'progress'>
  durationMs: number
}

/** Logs how a backfill ended, and what it did. */
export function logBackfillEnd(
  log: Pick<Log, 'info' | 'error'>,
  end: { result: ExitStatus } | { error: unknown },
  { signal, backfill, durationMs }: LoggedEnd,
): void {
  const { exit_status, reason } = howItEnded(end, signal)
  const { requests, throttled, resources } = backfill.progress()
  const sum = (count: 'rowsRead' | 'rowsChanged' | 'rowsDeleted') =>
    resources.reduce((total, { counts }) => total + counts[count], 0)
  const say = exit_status === EXIT_STATUS.done || signal.aborted ? log.info : log.error
  say('The backfill ends', {
    exit_status,
    ...(reason !== null && { reason }),
    requests,
    throttled,
    rows: sum('rowsRead'),
    changed: sum('rowsChanged'),
    deleted: sum('rowsDeleted'),
    duration_ms: Math.round(durationMs),
  })
}

/** Notes how a backfill ended, for `parley status`. On a full disk it cannot: the error that is shown says so. */
export async function noteBackfillEnd(
  { store, clock }: Pick<App, 'store' | 'clock'>,
  end: { result: ExitStatus } | { error: unknown },
  signal: AbortSignal,
): Promise<void> {
  const noted = JSON.stringify({ ended_at: isoInstant(clock.now()), ...howItEnded(end, signal) })
  await store.transaction(() => store.state.setMeta(META.backfillEnd, noted)).catch(() => undefined)
}

function howItEnded(
  end: { result: ExitStatus } | { error: unknown },
  signal: AbortSignal,
): Omit<BackfillEnd, 'ended_at'> {
  const stop = signal.aborted ? signal.reason : undefined
  if ('result' in end) {
    const reason = stop === undefined ? 'not everything could be read' : reasonOf(stop)
    return { exit_status: end.result, reason: end.result === EXIT_STATUS.done ? null : reason }
  }
  const isStopped = stop !== undefined && end.error instanceof Error && end.error.name === 'AbortError'
  const error = isStopped ? stop : end.error
  return { exit_status: exitStatusOf(error), reason: reasonOf(error) }
}
