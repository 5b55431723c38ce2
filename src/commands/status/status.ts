import { resolve } from 'node:path'
import { Option } from 'commander'
import { systemClock } from '../../clock.ts'
import { EXIT_STATUS } from '../../errors.ts'
import { jsonLine } from '../../safe-text.ts'
import { type CommandDefinition, DATABASE_ONLY, loadCommandSettings, settingsOfSections } from '../command.ts'
import { statusPage } from './page.ts'

export interface StatusOptions {
  json?: boolean
}

export const statusCommand: CommandDefinition<StatusOptions> = {
  description:
    'Shows the contents and freshness of each resource, how late items appear in the API, the state of the daemon, which process is writing the warehouse, and the measured rate limit of the API. Only reads, needs no API settings and works at any time.',
  settings: settingsOfSections('database'),
  options: [
    new Option(
      '--json',
      'print one JSON object on standard output, with exact instants and durations in seconds',
    ),
  ],
  examples: [
    ['parley status', 'prints a table'],
    ['parley status --database /var/lib/parley/acme.db --json', 'prints the same as JSON'],
  ],
  async run(context, input) {
    const { settings } = loadCommandSettings(context, input, DATABASE_ONLY)
    const { readStatusReport } = await import('../../store/status/report.ts')
    const now = systemClock().now()
    const report = readStatusReport({ path: resolve(context.cwd, settings.database.path), now })
    const { stdout } = context
    if (input.options.json) stdout.write(jsonLine(report))
    else stdout.write(statusPage(report, { now, columns: stdout.columns }))
    return EXIT_STATUS.done
  },
}
