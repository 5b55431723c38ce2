import { resolve, sep } from 'node:path'
import { Argument, Option } from 'commander'
import { systemClock } from '../base/clock.ts'
import { EXIT_STATUS } from '../base/errors.ts'
import { jsonLine } from '../base/safe-text.ts'
import { sizeText } from '../base/size-text.ts'
import type { Settings } from '../config/loaded-settings.ts'
import { durationText } from '../terminal/wording.ts'
import {
  type CommandContext,
  type CommandDefinition,
  loadCommandSettings,
  settingsOfSections,
} from './base/command.ts'

interface SnapshotCommandOptions {
  json?: boolean
}

export const snapshotCommand: CommandDefinition<SnapshotCommandOptions> = {
  description:
    'Copies the current state of the warehouse to one self-contained file. The daemon may run and is not delayed. The copy is verified before it gets its name, so FILE is always complete. An earlier snapshot of that name is replaced; any other file is not. Without FILE the snapshot goes to the snapshot folder, which keeps the newest of this warehouse (snapshot.keep). Set snapshot.every to make the daemon take snapshots. A snapshot still contains content that is purged from the warehouse later.',
  arguments: [new Argument('[file]', 'file to write')],
  settings: [...settingsOfSections('database'), 'snapshot.keep', 'snapshot.folder'],
  options: [new Option('--json', 'print one JSON object on standard output')],
  examples: [
    ['parley snapshot monday.db', 'writes a copy to monday.db'],
    ['parley snapshot --database /var/lib/parley/acme.db /srv/acme.db --json', 'prints the result as JSON'],
    ['parley snapshot', 'adds a snapshot to the snapshot folder'],
  ],
  async run(context, input) {
    const { settings } = loadCommandSettings(context, input, { requireApi: false })
    const made = await takeSnapshot(context, settings, input.args[0])
    const text = input.options.json ? jsonLine(snapshotJson(made)) : snapshotText(made)
    context.stdout.write(text)
    return EXIT_STATUS.done
  },
}

type TakenSnapshot = Awaited<ReturnType<typeof takeSnapshot>>

/** Takes the snapshot and reads what it has. `name` is its path for the output: as given, else the absolute one. */
async function takeSnapshot({ cwd, signal }: CommandContext, settings: Settings, file?: string) {
  const [
    { makeSnapshot },
    { keepSnapshot },
    { workspaceOf },
    { readDatabase },
    { readCompleteness },
    { completeSentence },
  ] = await Promise.all([
    import('../store/snapshot/snapshot.ts'),
    import('../store/snapshot/kept-snapshots.ts'),
    import('../store/file/workspace.ts'),
    import('../store/file/open.ts'),
    import('../store/status/status.ts'),
    import('../health/completeness.ts'),
  ])
  const { path: database, mode } = settings.database
  const clock = systemClock()
  const readFacts = (path: string) =>
    readDatabase({ path }, db => {
      const completeness = readCompleteness(db)
      return {
        workspace: workspaceOf(db) ?? null,
        completeAsOf: completeness.complete_as_of,
        sentence: completeSentence(completeness),
      }
    })
  const options = { database, mode, clock, signal }
  if (file !== undefined) {
    const made = await makeSnapshot({ ...options, file: absolutePath(cwd, file) })
    return { ...made, ...readFacts(made.path), database, name: file, removed: [], stuck: [] }
  }
  const made = await keepSnapshot(options, settings.snapshot)
  return { ...made, ...readFacts(made.path), database, name: made.path }
}

/** The absolute path. A slash at the end stays, since it marks a folder. */
const absolutePath = (cwd: string, file: string): string =>
  resolve(cwd, file) + (file.endsWith(sep) ? sep : '')

function snapshotText({
  name,
  bytes: size,
  durationMs,
  sentence,
  workspace,
  ...others
}: TakenSnapshot): string {
  return [
    `Wrote ${name}: ${sizeText(size)} in ${durationText(durationMs)}.`,
    ...(workspace === null ? [] : [`Workspace: ${workspace.id}.`]),
    sentence,
    ...others.removed.map(old => `Removed ${old}.`),
    ...others.stuck.map(({ path }) => `Failed to remove ${path}: check the permissions of its folder.`),
  ]
    .map(line => `${line}\n`)
    .join('')
}

function snapshotJson(made: TakenSnapshot) {
  const { path, bytes: size, durationMs, database, workspace, startedAt, resources, removed, stuck } = made
  return {
    path,
    bytes: size,
    duration_ms: Math.round(durationMs),
    database,
    workspace,
    begun_at: startedAt,
    complete_as_of: made.completeAsOf,
    resources: resources.map(({ resource, state, rows_live, fresh_as_of, complete_as_of }) => ({
      resource,
      state,
      rows_live,
      fresh_as_of,
      complete_as_of,
    })),
    removed,
    not_removed: stuck.map(old => old.path),
  }
}
