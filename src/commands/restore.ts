import { resolve } from 'node:path'
import { Argument, Option } from 'commander'
import { systemClock } from '../base/clock.ts'
import { EXIT_STATUS } from '../base/errors.ts'
import { jsonLine } from '../base/safe-text.ts'
import { sizeText } from '../base/size-text.ts'
import type { Restored } from '../store/restore/restore.ts'
import { durationText } from '../terminal/wording.ts'
import { type CommandDefinition, loadCommandSettings, settingsOfSections } from './base/command.ts'

interface RestoreCommandOptions {
  json?: boolean
}

export const restoreCommand: CommandDefinition<RestoreCommandOptions> = {
  description:
    'Replaces the database with a snapshot or another complete copy of a warehouse. Stop the daemon first: while another process uses the database, restore changes nothing. The copy is verified first and is not changed. The old database is kept under another name. A copy of another workspace or of a newer version is refused. The next backfill or daemon reads what has changed since the copy was made.',
  arguments: [new Argument('<file>', 'the snapshot or copy')],
  settings: [...settingsOfSections('database'), 'api.workspace_id'],
  options: [new Option('--json', 'print one JSON object on standard output')],
  examples: [
    ['parley restore monday.db', 'goes back to Monday'],
    [
      'parley restore /backup/acme.db --database /var/lib/parley/acme/parley.db --json',
      'prints the result as JSON',
    ],
  ],
  async run({ cwd, signal, ...context }, input) {
    const { settings } = loadCommandSettings({ cwd, signal, ...context }, input, { requireApi: false })
    const { restoreDatabase } = await import('../store/restore/restore.ts')
    const { path: database, mode } = settings.database
    const { workspaceId: id, baseUrl = '' } = settings.api
    const file = input.args[0] ?? ''
    const restored = await restoreDatabase({
      database,
      file: resolve(cwd, file),
      mode,
      workspace: id === undefined ? undefined : { id, baseUrl },
      clock: systemClock(),
      pid: process.pid,
      signal,
    })
    const { readDatabase } = await import('../store/file/open.ts')
    const { readCompleteness } = await import('../store/status/status.ts')
    const { completeSentence } = await import('../health/completeness.ts')
    const completeness = readDatabase({ path: restored.database }, readCompleteness)
    const text = input.options.json
      ? jsonLine(restoredJson(restored, file, completeness.complete_as_of))
      : restoredText(restored, file, completeSentence(completeness))
    context.stdout.write(text)
    return EXIT_STATUS.done
  },
}

function restoredText(
  { database, bytes, durationMs, workspace, keptAs }: Restored,
  file: string,
  complete: string,
) {
  const kept = `The old database is kept as ${keptAs}. Remove it when you no longer need it.`
  return [
    `Restored ${database} from ${file}: ${sizeText(bytes)} in ${durationText(durationMs)}.`,
    ...(workspace === undefined ? [] : [`Workspace: ${workspace.id}.`]),
    complete,
    ...(keptAs === undefined ? [] : [kept]),
    'Next: run parley backfill or start the daemon to read what has changed since.',
  ]
    .map(line => `${line}\n`)
    .join('')
}

function restoredJson(
  { database, bytes, durationMs, workspace, keptAs }: Restored,
  file: string,
  at: string | null,
) {
  return {
    database,
    restored_from: file,
    bytes,
    duration_ms: Math.round(durationMs),
    workspace: workspace ?? null,
    complete_as_of: at,
    kept_as: keptAs ?? null,
  }
}
