import { type App, openApp } from '../../app/app.ts'
import { afterGrace } from '../../app/grace-after-stop.ts'
import { createReportUpdate } from '../../app/report-update.ts'
import { startFields } from '../../app/start-fields.ts'
import { isoInstant, systemClock } from '../../base/clock.ts'
import {
  EXIT_STATUS,
  type ExitStatus,
  exitStatusOf,
  hintOf,
  reasonOf,
  reportedError,
} from '../../base/errors.ts'
import { createLog, type Log } from '../../base/log.ts'
import { jsonLine } from '../../base/safe-text.ts'
import type { ApiSettings } from '../../config/loaded-settings.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import type { Backfill, BackfillResult } from '../../engine/run/backfill.ts'
import type { StatusServer } from '../../server/server.ts'
import { type BackfillEnd, SOME_RESOURCES_FAILED } from '../../store/status/processes.ts'
import { META } from '../../store/sync/meta.ts'
import { createLiveArea, isRedrawable, type LiveArea } from '../../terminal/live-area.ts'
import { hasColours } from '../../terminal/output.ts'
import type { CommandContext } from '../base/command.ts'
import { maintainAfterBackfill, updateSearchIndices } from './final-steps.ts'
import { showProgress, sumOf } from './progress.ts'
import { summarize, summaryJson, summaryText } from './summary.ts'

/** What `parley backfill` reads, or plans to read. */
export interface BackfillRequest {
  settings: ApiSettings
  resources: readonly ResourceName[]
  /** A sentence about each name of `--skip` without which other resources would not be complete. */
  leftOut: readonly string[]
  json: boolean
  /** With `--workspace-renamed`: the workspace in the database is the one in the settings; only its id has changed. */
  isRenamed: boolean
}

interface BackfillRun extends BackfillRequest {
  /** Whether the status page is served meanwhile. */
  hasPage: boolean
  /** Called after the summary was printed. */
  onSummary(): void
}

export async function runBackfill(
  { stdout, stderr, env, signal, version, log: stream }: CommandContext,
  { settings, resources, leftOut, json, isRenamed, hasPage, onSummary }: BackfillRun,
): Promise<ExitStatus> {
  const area = isRedrawable(stderr, env) ? createLiveArea(stderr) : undefined
  const colour = hasColours(stderr, env)
  const { level } = settings.log
  const log = await createLog({ level, pretty: area !== undefined, colour, stream: area ?? stream })
  const clock = systemClock()
  const cancel = afterGrace(clock, signal, ms => log.warn(STOPPING_MESSAGE, { wait_ms: ms }))
  const app = await openApp({
    settings,
    clock,
    log,
    command: 'backfill',
    pid: process.pid,
    stopNew: signal,
    cancel,
    isWorkspaceRenamed: isRenamed,
  })
  // On a terminal the bars and the summary replace the log lines about the start and the end of the backfill.
  const whole = area ? undefined : log
  whole?.info('Backfill started', startFields({ version, pid: process.pid, settings, resources }))
  const served = hasPage ? await servePage({ app, settings, log, area, version }) : undefined
  const since = settings.sync.since ?? null
  const backfill = app.backfill(resources, since)
  const began = clock.elapsed()
  const work = async (): Promise<ExitStatus> => {
    const ended = new AbortController()
    const deps = { app, backfill, since, log, area, colour, stopping: signal }
    const [shown, end] = await Promise.all([
      outcomeOf(showProgress(deps, ended.signal)),
      outcomeOf(backfill.run().finally(() => ended.abort())),
    ])
    const isFinished = 'result' in end && !end.result.interrupted
    const indexed = isFinished
      ? await outcomeOf(updateSearchIndices({ app, settings, log, area, signal }))
      : { result: true }
    const updateReports = createReportUpdate({ store: app.store, log }, settings)
    if (isFinished && !signal.aborted) await updateReports()
    if (isFinished && !signal.aborted) {
      await maintainAfterBackfill({ store: app.store, clock, log, settings, signal }, backfill.serverTime())
      // Removes purged content from the tables for reports too.
      await updateReports()
    }
    const summary = summarize({ app, backfill, leftOut, end, durationMs: clock.elapsed() - began })
    if (summary) {
      const table = json ? stderr : stdout
      table.write(summaryText(summary, table.columns || undefined))
      if (json) stdout.write(jsonLine(summaryJson(summary)))
      onSummary()
    }
    if ('error' in end) throw end.error
    if ('error' in shown) throw shown.error
    if ('error' in indexed) throw indexed.error
    return indexed.result ? statusOfResult(end.result) : EXIT_STATUS.unfinished
  }
  try {
    const end = await outcomeOf(work())
    const report = endReport(end, signal)
    if (whole) logBackfillEnd(whole, report, { signal, backfill, durationMs: clock.elapsed() - began })
    await saveBackfillEnd(app, report)
    if ('error' in end) throw end.error
    return end.result
  } finally {
    await served?.close()
    await app.close()
  }
}

interface ServedBackfill {
  app: App
  settings: ApiSettings
  log: Log
  area: LiveArea | undefined
  version: string
}

/** `--page`: the status page while a backfill runs. */
async function servePage({ area, app, settings, log, version }: ServedBackfill): Promise<StatusServer> {
  const [{ createReportSources }, { startStatusServer }] = await Promise.all([
    import('../../app/report-sources.ts'),
    import('../../server/server.ts'),
  ])
  const { clock, store } = app
  const { status, page } = createReportSources({
    version,
    clock,
    workspaceId: () => settings.api.workspaceId,
    databasePath: () => settings.database.path,
    hasReport: false,
    db: () => store.db,
    blockedMs: store.transaction.blockedMs,
    daemon: () => undefined,
  })
  const { listen, token } = settings.http
  const ready = () => 'a backfill is running'
  const served = await startStatusServer({ listen, token, log, clock, ready, status, page })
  if (listen.at === 'off')
    log.warn('The status server does not run; the sync continues without it', {
      setting: 'http.listen',
      address: 'off',
      reason: '--page needs an address, such as --listen 127.0.0.1:8787',
    })
  if (served.url !== undefined) area?.write(`The page: ${served.url}\n`)
  return served
}

function statusOfResult({ complete, interrupted }: BackfillResult): ExitStatus {
  if (interrupted) return EXIT_STATUS.unfinished
  return complete ? EXIT_STATUS.done : EXIT_STATUS.apiUnavailable
}

async function outcomeOf<T>(work: Promise<T>): Promise<{ result: T } | { error: unknown }> {
  try {
    return { result: await work }
  } catch (error) {
    return { error }
  }
}

const STOPPING_MESSAGE = 'Stopping after the requests in flight; a second signal stops at once'

type EndReport = Omit<BackfillEnd, 'ended_at'>

function logBackfillEnd(
  log: Log,
  { exit_status, reason }: EndReport,
  { signal, backfill, durationMs }: { signal: AbortSignal; backfill: Backfill; durationMs: number },
): void {
  const { requests, throttled, resources } = backfill.progress()
  const continuedFrom = backfill.result()?.continuedFrom
  const say = exit_status === EXIT_STATUS.done || signal.aborted ? log.info : log.error
  say('Backfill ended', {
    exit_status,
    ...(reason !== null && { reason }),
    ...(continuedFrom !== undefined && { continued_from: continuedFrom }),
    requests,
    throttled,
    rows: sumOf(resources, 'rowsRead'),
    changed: sumOf(resources, 'rowsChanged'),
    deleted: sumOf(resources, 'rowsDeleted'),
    duration_ms: Math.round(durationMs),
  })
}

/**
 * Saves how a backfill ended, for `parley status`. A failed write is ignored, so that the command reports the result of
 * the backfill and not the failed write.
 */
async function saveBackfillEnd(
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

function endReport(end: { result: ExitStatus } | { error: unknown }, signal: AbortSignal): EndReport {
  if ('result' in end) {
    const reason = signal.aborted ? reasonOf(signal.reason) : REASONS[end.result]
    return { exit_status: end.result, reason: end.result === EXIT_STATUS.done ? null : (reason ?? null) }
  }
  const error = reportedError(end.error, signal)
  return { exit_status: exitStatusOf(error), reason: reasonOf(error), ...hintOf(error) }
}
