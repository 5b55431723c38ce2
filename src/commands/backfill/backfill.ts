import { Option } from 'commander'
import { afterGrace } from '../../app/grace.ts'
import { startFields } from '../../app/start-fields.ts'
import { systemClock } from '../../base/clock.ts'
import {
  EXIT_STATUS,
  type ExitStatus,
  exitStatusOf,
  ParleyError,
  reasonOf,
  reportedError,
  StopError,
} from '../../base/errors.ts'
import { jsonLine } from '../../base/safe-text.ts'
import type { ApiSettings } from '../../config/load-settings.ts'
import { RESOURCE_NAMES, type ResourceName } from '../../declare/resource-names.ts'
import type { BackfillResult } from '../../engine/run/backfill.ts'
import { hasColours } from '../../terminal/colours.ts'
import { createLiveArea, isRedrawable, type LiveArea } from '../../terminal/live-area.ts'
import {
  type CommandContext,
  type CommandDefinition,
  type CommandInput,
  loadCommandSettings,
  settingsOfSections,
} from '../base/command.ts'
import { namesIn, parseResourceName } from '../base/names.ts'
import type { BackfillPageDeps } from './backfill-page.ts'

export interface BackfillOptions {
  skip?: string
  plan?: boolean
  json?: boolean
  page?: boolean
  workspaceRenamed?: boolean
}

export const backfillCommand: CommandDefinition<BackfillOptions> = {
  description:
    'Reads everything that the API publishes into the warehouse and exits. It can be stopped at any time: the next run continues where it stopped, and its summary says as of when the warehouse is complete. After a complete run, another run brings the warehouse up to date, except for edited transcripts, which are read again within a week, and edited texts of e-mails, within about 90 days.',
  settings: [
    ...settingsOfSections('api', 'database', 'sync', 'access_log', 'transcripts', 'search', 'crm'),
    ...settingsOfSections('retention', 'log'),
    'snapshot.folder',
    'http.listen',
    'http.token',
  ],
  options: [
    new Option(
      '--skip <resources>',
      'resources to leave out, separated by commas; those that need one of them are left out too',
    ),
    new Option('--plan', 'only estimate the number of requests and the time; store nothing'),
    new Option(
      '--json',
      'print one JSON object on standard output: the summary, or the error that prevented it; the table then goes to standard error',
    ),
    new Option('--page', 'meanwhile, serve the page that shows the progress, at http.listen').conflicts(
      'plan',
    ),
    new Option(
      '--workspace-renamed',
      'the workspace in the database has a new id: continue with the id of the settings',
    ),
  ],
  examples: [
    ['parley backfill', 'reads everything'],
    [
      'parley backfill --since 2026-01-01 --skip message_bodies',
      'reads data since 2026, without the texts of e-mails',
    ],
    ['parley backfill --page', 'also shows its progress at http://127.0.0.1:8787/'],
  ],
  async run(context, input) {
    let hasSummary = false
    try {
      return await runCommand(context, input, () => {
        hasSummary = true
      })
    } catch (error) {
      const { stdout, signal } = context
      if (input.options.json && !hasSummary) stdout.write(jsonLine(errorJson(error, signal)))
      throw error
    }
  },
}

async function runCommand(
  context: CommandContext,
  input: CommandInput<BackfillOptions>,
  onSummary: () => void,
): Promise<ExitStatus> {
  const { settings } = loadCommandSettings(context, input, {
    requireApi: true,
    resourceNames: RESOURCE_NAMES,
  })
  const { options } = input
  const chosen = await chosenResources(settings.sync.resources, options.skip)
  if (options.plan) {
    const { showPlan } = await import('./plan.ts')
    const { json = false, workspaceRenamed: isRenamed = false } = options
    return showPlan(context, { settings, ...chosen, json, isRenamed })
  }
  return runBackfill(context, options, { settings, ...chosen, onSummary })
}

/** What `--json` prints instead of a summary after an error that ended the command early. */
function errorJson(error: unknown, signal: AbortSignal) {
  const cause = reportedError(error, signal)
  const { code, hint = null } = cause instanceof ParleyError ? cause : { code: 'fault' }
  return { exit_status: exitStatusOf(cause), error: { code, message: reasonOf(cause), hint } }
}

interface BackfillRun extends ResourceChoice {
  settings: ApiSettings
  /** Called after the summary was printed. */
  onSummary(): void
}

async function runBackfill(
  context: CommandContext,
  options: BackfillOptions,
  { settings, resources, leftOut, onSummary }: BackfillRun,
): Promise<ExitStatus> {
  const [
    { createLog },
    { openApp },
    { showProgress },
    { summaryText, summaryJson, summarize },
    { updateSearchIndices },
    { createReportUpdate },
    { maintainAfterBackfill },
    { endReport, logBackfillEnd, saveBackfillEnd },
  ] = await Promise.all([
    import('../../base/log.ts'),
    import('../../app/app.ts'),
    import('./progress.ts'),
    import('./summary.ts'),
    import('./update-indices.ts'),
    import('../../app/report-config.ts'),
    import('./maintain-after.ts'),
    import('./end-report.ts'),
  ])
  const { stdout, stderr, env, signal, version } = context
  const area = isRedrawable(stderr, env) ? createLiveArea(stderr) : undefined
  const colour = hasColours(stderr, env)
  const { level } = settings.log
  const log = await createLog({ level, pretty: area !== undefined, colour, stream: area ?? context.log })
  const clock = systemClock()
  const cancel = afterGrace(clock, signal, ms => log.warn(STOPPING_MESSAGE, { wait_ms: ms }))
  const isWorkspaceRenamed = options.workspaceRenamed === true
  const app = await openApp({
    settings,
    clock,
    log,
    command: 'backfill',
    pid: process.pid,
    stopNew: signal,
    cancel,
    isWorkspaceRenamed,
  })
  // On a terminal the bars and the summary replace the log lines about the start and the end of the backfill.
  const whole = area ? undefined : log
  whole?.info('Backfill started', startFields({ version, pid: process.pid, settings, resources }))
  const served = options.page ? await servePage({ app, settings, log, area, version }) : undefined
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
      const table = options.json ? stderr : stdout
      table.write(summaryText(summary, table.columns || undefined))
      if (options.json) stdout.write(jsonLine(summaryJson(summary)))
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

async function servePage({ area, ...page }: BackfillPageDeps & { area: LiveArea | undefined }) {
  const { startBackfillPage } = await import('./backfill-page.ts')
  const served = await startBackfillPage(page)
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

interface ResourceChoice {
  resources: readonly ResourceName[]
  /** A sentence about each name of `--skip` without which other resources would not be complete. */
  leftOut: readonly string[]
}

/** @throws StopError (exit status 64) when `--skip` leaves no resource */
async function chosenResources(
  only: readonly string[] | undefined,
  skip: string | undefined,
): Promise<ResourceChoice> {
  const { sourcesOf, withParents } = await import('../../catalog/catalog.ts')
  const skipped = namesIn(skip ?? '').map(name => parseResourceName(name, RESOURCE_NAMES))
  const wanted = withParents(RESOURCE_NAMES.filter(name => only === undefined || only.includes(name)))
  const missingOf = (name: ResourceName) => sourcesOf(name).find(source => skipped.includes(source))
  const resources = wanted.filter(name => missingOf(name) === undefined)
  const leftOut = skipped.flatMap(parent => {
    const names = wanted.filter(name => !skipped.includes(name) && missingOf(name) === parent)
    return names.length === 0 ? [] : [`Left out too: ${names.join(', ')} (not complete without ${parent}).`]
  })
  if (resources.length > 0) return { resources, leftOut }
  throw new StopError(['--skip leaves no resource to read', ...leftOut].join('. ').replace(/\.$/, ''), {
    code: 'no-resources',
    hint: 'Take a name out of --skip, or name other resources with --only or in sync.resources.',
    exitStatus: EXIT_STATUS.usage,
  })
}
