import { resolve } from 'node:path'
import { Argument, Option } from 'commander'
import { systemClock } from '../clock.ts'
import { EXIT_STATUS } from '../errors.ts'
import { jsonLine } from '../harmless.ts'
import { sizeText } from '../size-text.ts'
import type { Restored } from '../store/restore.ts'
import { type CommandDefinition, settingsFor, settingsIn } from './command.ts'
import { duration } from './wording.ts'

export interface RestoreOptions {
  json?: boolean
}

export const restoreCommand: CommandDefinition<RestoreOptions> = {
  description:
    'Puts a snapshot, or another whole copy of a warehouse, in the place of the database. Stop the daemon first: while a process uses the database, nothing is done. The copy is checked before it gets the name, and stays as it is; the database from before is kept under another name. A copy of another workspace or of a newer version is refused. The next backfill, or the daemon, reads what has changed since the copy was made.',
  arguments: [new Argument('<file>', 'the copy')],
  settings: [...settingsIn('database'), 'api.workspace_id'],
  options: [new Option('--json', 'print one JSON object on standard output')],
  examples: [
    ['parley restore monday.db', 'goes back to Monday'],
    [
      'parley restore /backup/acme.db --database /var/lib/parley/acme/parley.db --json',
      'says for programs what was done',
    ],
  ],
  async run({ cwd, signal, ...context }, input) {
    const { settings } = settingsFor({ cwd, signal, ...context }, input, { requireApi: false })
    const { restoreDatabase } = await import('../store/restore.ts')
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
    const { completeAsOf } = await import('../store/snapshot.ts')
    const at = completeAsOf(restored.resources)
    const text = input.options.json
      ? jsonLine(forPrograms(restored, file, at))
      : forPeople(restored, file, at)
    context.stdout.write(text)
    return EXIT_STATUS.done
  },
}

function forPeople(
  { database, bytes, durationMs, workspace, keptAs }: Restored,
  file: string,
  at: string | null,
) {
  const kept = `The database from before is ${keptAs}: remove it when all is well.`
  return [
    `Restored ${database} from ${file}: ${sizeText(bytes)} in ${duration(durationMs)}.`,
    ...(workspace === undefined ? [] : [`It holds workspace ${workspace.id}.`]),
    at === null
      ? 'It was not read completely before it was copied.'
      : `All that was published before ${at} is in it.`,
    ...(keptAs === undefined ? [] : [kept]),
    'Next: parley backfill, or the daemon once it is started, reads what has changed since.',
  ]
    .map(line => `${line}\n`)
    .join('')
}

/** Names as in the warehouse's own tables. */
function forPrograms(
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
