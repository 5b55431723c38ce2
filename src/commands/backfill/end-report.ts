import type { App } from '../../app/app.ts'
import { isoInstant } from '../../base/clock.ts'
import { EXIT_STATUS, type ExitStatus, exitStatusOf, reasonOf, reportedError } from '../../base/errors.ts'
import type { Log } from '../../base/log.ts'
import type { Backfill } from '../../engine/run/backfill.ts'
import { type BackfillEnd, SOME_RESOURCES_FAILED } from '../../store/status/report.ts'
import { META } from '../../store/sync/meta.ts'

interface BackfillFacts {
  signal: AbortSignal
  backfill: Pick<Backfill, 'progress' | 'result'>
  durationMs: number
}

export type EndReport = Omit<BackfillEnd, 'ended_at'>

export function logBackfillEnd(
  log: Pick<Log, 'info' | 'error'>,
  { exit_status, reason }: EndReport,
  { signal, backfill, durationMs }: BackfillFacts,
): void {
  const { requests, throttled, resources } = backfill.progress()
  const continuedFrom = backfill.result()?.continuedFrom
  const sum = (count: 'rowsRead' | 'rowsChanged' | 'rowsDeleted') =>
    resources.reduce((total, { counts }) => total + counts[count], 0)
  const say = exit_status === EXIT_STATUS.done || signal.aborted ? log.info : log.error
  say('Backfill ended', {
    exit_status,
    ...(reason !== null && { reason }),
    ...(continuedFrom !== undefined && { continued_from: continuedFrom }),
    requests,
    throttled,
    rows: sum('rowsRead'),
    changed: sum('rowsChanged'),
    deleted: sum('rowsDeleted'),
    duration_ms: Math.round(durationMs),
  })
}

/**
 * Saves how a backfill ended, for `parley status`. A failed write is ignored, so that the command reports the result of
 * the backfill and not the failed write.
 */
export async function saveBackfillEnd(
  { store, clock }: Pick<App, 'store' | 'clock'>,
  report: EndReport,
): Promise<void> {
  const noted = JSON.stringify({ ended_at: isoInstant(clock.now()), ...report })
  await store.transaction(() => store.state.setMeta(META.backfillEnd, noted)).catch(() => undefined)
}

/** The reasons for an incomplete backfill that was not stopped by a signal. */
const REASONS: Readonly<Partial<Record<ExitStatus, string>>> = {
  [EXIT_STATUS.apiUnavailable]: SOME_RESOURCES_FAILED,
  [EXIT_STATUS.unfinished]: 'The run ended before everything was read',
}

export function endReport(end: { result: ExitStatus } | { error: unknown }, signal: AbortSignal): EndReport {
  if ('result' in end) {
    const reason = signal.aborted ? reasonOf(signal.reason) : REASONS[end.result]
    return { exit_status: end.result, reason: end.result === EXIT_STATUS.done ? null : (reason ?? null) }
  }
  const error = reportedError(end.error, signal)
  return { exit_status: exitStatusOf(error), reason: reasonOf(error) }
}
