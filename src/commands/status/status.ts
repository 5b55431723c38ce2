import { Option } from 'commander'
import { systemClock } from '../../base/clock.ts'
import {
  type CheckStatus,
  EXIT_STATUS,
  type ExitStatus,
  reasonWithHint,
  StopError,
} from '../../base/errors.ts'
import { jsonLine, singleLine } from '../../base/safe-text.ts'
import { duration } from '../../config/kinds.ts'
import { RESOURCE_NAMES, type ResourceName } from '../../declare/resource-names.ts'
import type { CheckResult } from '../../health/check.ts'
import type { DriftedField } from '../../store/status/overview.ts'
import { type TableColumn, table } from '../../terminal/table.ts'
import {
  type CommandContext,
  type CommandDefinition,
  DATABASE_ONLY,
  loadCommandSettings,
  notEmpty,
  settingsOfSections,
} from '../base/command.ts'
import { parsedAs, parseResourceName } from '../base/option-values.ts'
import { statusPage } from './status-text.ts'

export interface StatusOptions {
  /** The folder of settings files; true for `--all` without a folder. */
  all?: string | true
  json?: boolean
  check?: boolean
  fields?: boolean
  maxAge?: number
  resource?: ResourceName
}

const CHECK_HELP =
  'print one line and exit with 0 (fine), 1 (parley waits for something and goes on by itself, or something needs a look) or 2 (a person has to act), for cron, timers and monitoring'

const ALL_HELP =
  'show one row for each workspace that has a service on this machine, the most serious first; or for each settings file (*.toml) in this folder'

export const statusCommand: CommandDefinition<StatusOptions> = {
  description:
    'Shows the contents and freshness of each resource, how late items appear in the API, the state of the daemon, which process is writing the warehouse, and the measured rate limit of the API. Only reads, needs no API settings and works at any time.',
  settings: settingsOfSections('database'),
  options: [
    new Option(
      '--json',
      'print one JSON object on standard output, with exact instants and durations in seconds',
    ),
    new Option('--all [folder]', ALL_HELP).argParser(notEmpty).conflicts(['fields', 'config', 'database']),
    new Option('--check', CHECK_HELP).conflicts('json'),
    new Option(
      '--fields',
      'list the fields that the API has sent and that parley does not know, or with values that do not fit; it does not check the values of CRM fields',
    ).conflicts(['json', 'check', 'maxAge', 'resource']),
    new Option(
      '--max-age <time>',
      'implies --check: the greatest allowed age of fresh_as_of (without a list: of complete_as_of), such as 90s, 15m, 2h or 1d',
    )
      .argParser(parsedAs(duration))
      .conflicts('json'),
    new Option('--resource <resource>', 'implies --check: check only this resource')
      .argParser(name => parseResourceName(name, RESOURCE_NAMES))
      .conflicts('json'),
  ],
  examples: [
    ['parley status', 'prints a table'],
    ['parley status --database /var/lib/parley/acme.db --json', 'prints the same as JSON'],
    ['parley status --check --max-age 15m', 'prints one line, and exits with 0, 1 or 2'],
    ['parley status --all', 'prints one row for each service of this machine'],
    ['parley status --all --check', 'prints one line, and exits with the worst of their statuses'],
  ],
  async run(context, input) {
    if (input.options.all !== undefined) return printFleet(context, input.options)
    const settings = () => loadCommandSettings(context, input, DATABASE_ONLY).settings
    if (input.options.fields) return printFields(context, settings().database.path)
    const [{ readStatusReport }, { workspaceProblems }] = await Promise.all([
      import('../../store/status/report.ts'),
      import('../../health/unusable-settings.ts'),
    ])
    const now = systemClock().now()
    const read = () => {
      const { database, api } = settings()
      const report = readStatusReport({ path: database.path, now })
      return { report, causes: workspaceProblems(report, api.workspaceId) }
    }
    const { maxAge: maxAgeMs, resource } = input.options
    const { stdout } = context
    if (isCheck(input.options)) {
      const { checkStatus } = await import('../../health/check.ts')
      const question = { now, maxAgeMs, resource }
      return printResult(stdout, () => {
        const { report, causes } = read()
        return checkStatus(report, question, causes)
      })
    }
    const { report, causes } = read()
    if (input.options.json) stdout.write(jsonLine(report))
    else stdout.write(statusPage(report, { now, columns: stdout.columns, causes }))
    return EXIT_STATUS.done
  },
}

/**
 * The options of the check imply it. An implied `--check` would be named where one of them conflicts with another
 * option.
 */
const isCheck = ({ check, maxAge, resource }: StatusOptions): boolean =>
  check === true || maxAge !== undefined || resource !== undefined

async function printFields({ stdout }: CommandContext, path: string): Promise<ExitStatus> {
  const [{ readDrift }, { readWarehouse }] = await Promise.all([
    import('../../store/status/overview.ts'),
    import('../../store/status/status.ts'),
  ])
  const drift = readWarehouse(path, readDrift)
  const columns: TableColumn<DriftedField>[] = [
    { title: 'table', cell: row => row.table },
    { title: 'field', cell: row => row.field },
    { title: 'found', cell: ({ reason }) => reason },
  ]
  const lines =
    drift.length === 0
      ? ['Every field that the API has sent is declared, and every value fits.']
      : [...table(columns, drift), 'Their values are in the column _extra of the table.']
  stdout.write(`${[...lines, CRM_VALUES].join('\n')}\n`)
  return EXIT_STATUS.done
}

const CRM_VALUES =
  'The values of CRM fields are not checked: one that does not fit the type of its field is NULL in the typed table, and crm_records.fields has it.'

async function printFleet(
  { stdout, cwd }: CommandContext,
  options: StatusOptions,
): Promise<ExitStatus | CheckStatus> {
  const { all, json, maxAge: maxAgeMs, resource } = options
  const { fleetCheck, fleetMembers, fleetPage, readFleet } = await import('./fleet.ts')
  const now = systemClock().now()
  const read = () =>
    readFleet(fleetMembers(all === true ? undefined : all, cwd), cwd, { now, maxAgeMs, resource })
  if (isCheck(options)) return printResult(stdout, () => fleetCheck(read()))
  const rows = read()
  stdout.write(json ? jsonLine({ workspaces: rows }) : fleetPage(rows, { now, columns: stdout.columns }))
  return EXIT_STATUS.done
}

/** Settings or a database that cannot be read are a result of the check, not a failure of the command. */
function printResult(stdout: CommandContext['stdout'], read: () => CheckResult): CheckStatus {
  try {
    const { status, line } = read()
    stdout.write(`${singleLine(line)}\n`)
    return status
  } catch (error) {
    if (!(error instanceof StopError)) throw error
    stdout.write(`CRITICAL: ${singleLine(reasonWithHint(error))}\n`)
    return 2
  }
}
