import { resolve } from 'node:path'
import { Option } from 'commander'
import { systemClock } from '../clock.ts'
import { EXIT_STATUS } from '../errors.ts'
import { jsonLine } from '../harmless.ts'
import { type CommandDefinition, READING, settingsFor, settingsIn } from './command.ts'
import { statusPage } from './status-page.ts'

export interface StatusOptions {
  json?: boolean
}

export const statusCommand: CommandDefinition<StatusOptions> = {
  description:
    'Shows what is in the warehouse and how fresh it is, resource by resource, how late things appear, what the daemon does, who writes the warehouse now, and what was learned of the rate that the API allows. It only reads, needs no API settings, and works at any time.',
  settings: settingsIn('database'),
  options: [
    new Option(
      '--json',
      'print one JSON object on standard output, with exact instants and times in seconds',
    ),
  ],
  examples: [
    ['parley status', 'a table'],
    ['parley status --database /var/lib/parley/acme.db --json', 'the same for programs'],
  ],
  async run(context, input) {
    const { settings } = settingsFor(context, input, READING)
    const { readStatusReport } = await import('../store/status-report.ts')
    const now = systemClock().now()
    const report = readStatusReport({ path: resolve(context.cwd, settings.database.path), now })
    const { stdout } = context
    if (input.options.json) stdout.write(jsonLine(report))
    else stdout.write(statusPage(report, { now, columns: stdout.columns }))
    return EXIT_STATUS.done
  },
}
