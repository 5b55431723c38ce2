import { Option } from 'commander'
import { EXIT_STATUS, StopError } from '../errors.ts'
import { RESOURCE_NAMES, type ResourceName } from '../resource.ts'
import { type CommandContext, type CommandDefinition, settingsFor, settingsIn } from './command.ts'

export interface BackfillOptions {
  skip?: string
  json?: boolean
}

export const backfillCommand: CommandDefinition<BackfillOptions> = {
  description:
    'Reads everything that the API publishes into the warehouse and ends. It can be stopped at any time and run again: it goes on where it stopped. After a complete run another one brings all up to date.',
  settings: settingsIn('api', 'database', 'sync', 'access_log', 'transcripts', 'log'),
  options: [
    new Option('--skip <resources>', 'resources to leave out, separated by commas'),
    new Option('--json', 'print one JSON summary on standard output'),
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
    const { openApp } = await import('../app.ts')
    const { createLog } = await import('../log.ts')
    const log = await createLog({ level: settings.log.level, pretty: context.stderr.isTTY === true })
    const resources = await chosenResources(settings.sync.resources, input.options.skip)
    const hard = hardStop(context)
    const app = openApp({
      settings,
      log,
      command: 'backfill',
      pid: process.pid,
      soft: context.signal,
      hard,
    })
    try {
      const result = await app.backfill(resources, settings.sync.since ?? null).run()
      if (input.options.json) context.stdout.write(`${JSON.stringify(result)}\n`)
      if (result.interrupted) return EXIT_STATUS.unfinished
      return result.complete ? EXIT_STATUS.done : EXIT_STATUS.apiUnavailable
    } finally {
      await app.close()
    }
  },
}

/** What is under way may finish for so long after a signal. */
const GRACE_MS = 10_000

function hardStop({ signal }: CommandContext): AbortSignal {
  const hard = new AbortController()
  signal.addEventListener('abort', () => {
    setTimeout(() => hard.abort(), GRACE_MS).unref()
  })
  return hard.signal
}

async function chosenResources(
  only: readonly string[] | undefined,
  skip: string | undefined,
): Promise<readonly ResourceName[]> {
  const { withParents } = await import('../catalog.ts')
  const skipped = (skip ?? '').split(',').filter(name => name !== '')
  const unknown = skipped.filter(name => !RESOURCE_NAMES.some(known => known === name))
  if (unknown.length > 0) {
    throw new StopError(`--skip names no resource: ${unknown.join(', ')}`, {
      code: 'unknown-resource',
      hint: `The resources are ${RESOURCE_NAMES.join(', ')}.`,
      exitStatus: EXIT_STATUS.usage,
    })
  }
  const wanted = RESOURCE_NAMES.filter(name => only === undefined || only.includes(name))
  return withParents(wanted).filter(name => !skipped.includes(name))
}
