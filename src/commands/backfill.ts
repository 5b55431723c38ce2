import { Option } from 'commander'
import { systemClock } from '../clock.ts'
import type { ApiSettings } from '../config.ts'
import type { BackfillResult } from '../engine/backfill.ts'
import { EXIT_STATUS, type ExitStatus } from '../errors.ts'
import { jsonLine } from '../harmless.ts'
import type { Log } from '../log.ts'
import { RESOURCE_NAMES, type ResourceName } from '../resource.ts'
import { type CommandContext, type CommandDefinition, mayColour, settingsFor, settingsIn } from './command.ts'
import { createLiveArea, isLive, type LiveArea } from './live-area.ts'
import { resourceCalled } from './resource-name.ts'

export interface BackfillOptions {
  skip?: string
  plan?: boolean
  json?: boolean
  workspaceRenamed?: boolean
}

export const backfillCommand: CommandDefinition<BackfillOptions> = {
  description:
    'Reads everything that the API publishes into the warehouse and ends. It can be stopped at any time and run again: it goes on where it stopped. After a complete run another one brings all up to date.',
  settings: [
    ...settingsIn('api', 'database', 'sync', 'access_log', 'transcripts', 'search', 'crm'),
    ...settingsIn('retention', 'log'),
    'snapshot.folder',
  ],
  options: [
    new Option('--skip <resources>', 'resources to leave out, separated by commas'),
    new Option('--plan', 'only say how many requests it would take and how long, and store nothing'),
    new Option('--json', 'print one JSON summary on standard output'),
    new Option(
      '--workspace-renamed',
      'the workspace in the database has another id now: go on with the one of the settings',
    ),
  ],
  examples: [
    ['parley backfill', 'reads everything'],
    [
      'parley backfill --since 2026-01-01 --skip message_bodies',
      'reads this year, without the texts of e-mails',
    ],
  ],
  async run(context, input) {
    const { settings } = settingsFor(context, input, { requireApi: true, resourceNames: RESOURCE_NAMES })
    const resources = await chosenResources(settings.sync.resources, input.options.skip)
    if (input.options.plan) {
      const { showPlan } = await import('./backfill-plan.ts')
      return showPlan(context, { settings, resources, json: input.options.json === true })
    }
    const { createLog } = await import('../log.ts')
    const { stderr, env } = context
    const area = isLive(stderr, env) ? createLiveArea(stderr) : undefined
    const colour = mayColour(stderr, env)
    const { level } = settings.log
    const log = await createLog({ level, pretty: area !== undefined, colour, ...(area && { stream: area }) })
    return readAll({ context, options: input.options, settings, resources, log, area, colour })
  },
}

interface Reading {
  context: CommandContext
  options: BackfillOptions
  settings: ApiSettings
  resources: readonly ResourceName[]
  log: Log
  area: LiveArea | undefined
  colour: boolean
}

async function readAll({
  context,
  options,
  settings,
  resources,
  log,
  area,
  colour,
}: Reading): Promise<ExitStatus> {
  const [
    { openApp, whatRuns },
    { createProgress },
    { forPeople, forPrograms, summarize },
    { indexForSearch },
    { maintainAfterBackfill },
    { logBackfillEnd, noteBackfillEnd },
  ] = await Promise.all([
    import('../app.ts'),
    import('./progress.ts'),
    import('./summary.ts'),
    import('./backfill-search.ts'),
    import('./backfill-maintenance.ts'),
    import('./backfill-end.ts'),
  ])
  const { stdout, stderr, signal } = context
  const hard = hardStop(signal, () => log.warn(STOPPING, { wait_ms: GRACE_MS }))
  const isWorkspaceRenamed = options.workspaceRenamed === true
  const app = await openApp({
    settings,
    log,
    command: 'backfill',
    pid: process.pid,
    soft: signal,
    hard,
    isWorkspaceRenamed,
  })
  // On a terminal the bars and the summary say it.
  const whole = area ? undefined : log
  const { version } = context
  whole?.info('The backfill starts', whatRuns({ version, pid: process.pid, settings, resources }))
  const backfill = app.backfill(resources, settings.sync.since ?? null)
  const began = app.clock.elapsed()
  const work = async (): Promise<ExitStatus> => {
    const ended = new AbortController()
    const progress = createProgress({ app, backfill, log, area, colour, stopping: signal })
    const [shown, end] = await Promise.all([
      outcomeOf(progress.show(ended.signal)),
      outcomeOf(backfill.run().finally(() => ended.abort())),
    ])
    const isWhole = 'result' in end && !end.result.interrupted
    const indexed = isWhole
      ? await outcomeOf(indexForSearch({ app, settings, log, area, signal }))
      : { result: true }
    if (isWhole && !signal.aborted) {
      const { store, clock } = app
      await maintainAfterBackfill({ store, clock, log, settings, signal }, backfill.serverTime())
    }
    const summary = summarize({ app, backfill, end, durationMs: app.clock.elapsed() - began })
    if (summary) {
      stderr.write(forPeople(summary, stderr.columns || undefined))
      if (options.json) stdout.write(jsonLine(forPrograms(summary)))
    }
    if ('error' in end) throw end.error
    if ('error' in shown) throw shown.error
    if ('error' in indexed) throw indexed.error
    return indexed.result ? statusOf(end.result) : EXIT_STATUS.unfinished
  }
  try {
    const end = await outcomeOf(work())
    if (whole) logBackfillEnd(whole, end, { signal, backfill, durationMs: app.clock.elapsed() - began })
    await noteBackfillEnd(app, end, signal)
    if ('error' in end) throw end.error
    return end.result
  } finally {
    await app.close()
  }
}

function statusOf({ complete, interrupted }: BackfillResult): ExitStatus {
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

/** What is under way may finish for so long after a signal. */
const GRACE_MS = 10_000

const STOPPING = 'Stopping: what is under way is finished first; a second signal ends it at once'

function hardStop(signal: AbortSignal, say: () => void): AbortSignal {
  const hard = new AbortController()
  const end = () => {
    say()
    void systemClock()
      .sleep(GRACE_MS)
      .then(() => hard.abort())
  }
  if (signal.aborted) end()
  else signal.addEventListener('abort', end, { once: true })
  return hard.signal
}

async function chosenResources(
  only: readonly string[] | undefined,
  skip: string | undefined,
): Promise<readonly ResourceName[]> {
  const { withParents } = await import('../catalog.ts')
  const skipped = (skip ?? '')
    .split(',')
    .map(name => name.trim())
    .filter(name => name !== '')
    .map(name => resourceCalled(name, '--skip names'))
  const wanted = RESOURCE_NAMES.filter(name => only === undefined || only.includes(name))
  return withParents(wanted).filter(name => !skipped.includes(name))
}
