import { Option } from 'commander'
import {
  EXIT_STATUS,
  exitStatusOf,
  ParleyError,
  reasonOf,
  reportedError,
  StopError,
} from '../../base/errors.ts'
import { jsonLine } from '../../base/safe-text.ts'
import { RESOURCE_NAMES, type ResourceName } from '../../declare/resource-names.ts'
import { type CommandDefinition, loadCommandSettings, settingsOfSections } from '../base/command.ts'
import { namesIn, parseResourceName } from '../base/option-values.ts'
import type { BackfillRequest } from './run-backfill.ts'

interface BackfillOptions {
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
    const {
      skip,
      plan,
      json = false,
      page: hasPage = false,
      workspaceRenamed: isRenamed = false,
    } = input.options
    let hasSummary = false
    try {
      const { settings } = loadCommandSettings(context, input, { requireApi: true })
      const chosen = await chosenResources(settings.sync.resources, skip)
      const request = { settings, ...chosen, json, isRenamed }
      if (plan) return await (await import('./plan.ts')).showPlan(context, request)
      const onSummary = () => {
        hasSummary = true
      }
      const { runBackfill } = await import('./run-backfill.ts')
      return await runBackfill(context, { ...request, hasPage, onSummary })
    } catch (error) {
      const { stdout, signal } = context
      if (json && !hasSummary) stdout.write(jsonLine(errorJson(error, signal)))
      throw error
    }
  },
}

/** What `--json` prints instead of a summary after an error that ended the command early. */
function errorJson(error: unknown, signal: AbortSignal) {
  const cause = reportedError(error, signal)
  const { code, hint = null } = cause instanceof ParleyError ? cause : { code: 'fault' }
  return { exit_status: exitStatusOf(cause), error: { code, message: reasonOf(cause), hint } }
}

/** @throws StopError (exit status 64) when `--skip` leaves no resource */
async function chosenResources(
  only: readonly string[] | undefined,
  skip: string | undefined,
): Promise<Pick<BackfillRequest, 'resources' | 'leftOut'>> {
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
