import { resolve, sep } from 'node:path'
import { Argument, Option } from 'commander'
import { systemClock } from '../clock.ts'
import type { Settings } from '../config.ts'
import { EXIT_STATUS } from '../errors.ts'
import { jsonLine } from '../harmless.ts'
import { sizeText } from '../size-text.ts'
import type { Workspace } from '../store/database/workspace.ts'
import type { Snapshot } from '../store/snapshot.ts'
import type { Removal } from '../store/snapshot-target.ts'
import { type CommandContext, type CommandDefinition, settingsFor, settingsIn } from './command.ts'
import { duration } from './wording.ts'

export interface SnapshotOptions {
  json?: boolean
}

export const snapshotCommand: CommandDefinition<SnapshotOptions> = {
  description:
    'Copies the warehouse as it is at this moment to one file that opens anywhere and needs no other beside it, whether the daemon runs or not; nobody is held up by it. The copy is checked before it gets its name, so that FILE is always whole; an earlier snapshot of that name is replaced, and nothing else is. Without FILE it joins those that the daemon keeps, of which the newest of this warehouse stay: snapshot.every in the settings has the daemon make them. A copy keeps what is erased from the warehouse later on.',
  arguments: [new Argument('[file]', 'where it goes')],
  settings: [...settingsIn('database'), 'snapshot.keep', 'snapshot.folder'],
  options: [new Option('--json', 'print one JSON object on standard output')],
  examples: [
    ['parley snapshot monday.db', 'a copy to hand on'],
    [
      'parley snapshot --database /var/lib/parley/acme.db /srv/acme.db --json',
      'says for programs what is in it',
    ],
    ['parley snapshot', 'one more in the folder of those that are kept'],
  ],
  async run(context, input) {
    const { settings } = settingsFor(context, input, { requireApi: false })
    const made = await make(context, settings, input.args[0])
    const text = input.options.json ? jsonLine(await forPrograms(made)) : await forPeople(made)
    context.stdout.write(text)
    return EXIT_STATUS.done
  },
}

interface Made extends Snapshot, Removal {
  database: string
  workspace: Workspace | null
  /** Of the copy, as the user named it. */
  name: string
}

async function make({ cwd, signal }: CommandContext, settings: Settings, file?: string): Promise<Made> {
  const [{ makeSnapshot }, { keepSnapshot }, { workspaceOf }, { openDatabase }] = await Promise.all([
    import('../store/snapshot.ts'),
    import('../store/kept-snapshots.ts'),
    import('../store/database/workspace.ts'),
    import('../store/open.ts'),
  ])
  const { path: database, mode } = settings.database
  const clock = systemClock()
  const whose = (path: string): Workspace | null => {
    const db = openDatabase({ path, readonly: true })
    try {
      return workspaceOf(db) ?? null
    } finally {
      db.close()
    }
  }
  const options = { database, mode, clock, signal }
  if (file !== undefined) {
    const made = await makeSnapshot({ ...options, file: inFolder(cwd, file) })
    return { ...made, database, workspace: whose(database), name: file, removed: [], stuck: [] }
  }
  const made = await keepSnapshot(options, settings.snapshot)
  return { ...made, database, workspace: whose(database), name: made.path }
}

/** A slash at its end, which says that a folder is meant, stays. */
const inFolder = (cwd: string, file: string): string => resolve(cwd, file) + (file.endsWith(sep) ? sep : '')

async function forPeople({
  name,
  bytes: size,
  durationMs,
  resources,
  workspace,
  ...others
}: Made): Promise<string> {
  const { completeAsOf } = await import('../store/snapshot.ts')
  const at = completeAsOf(resources)
  const unread = resources.filter(one => one.state !== 'unavailable' && one.complete_as_of === null)
  const holds =
    at === null
      ? `Not read completely before it was made: ${unread.map(({ resource }) => resource).join(', ')}.`
      : `All that was published before ${at} is in it.`
  return [
    `Wrote ${name}: ${sizeText(size)} in ${duration(durationMs)}.`,
    ...(workspace === null ? [] : [`It holds workspace ${workspace.id}.`]),
    holds,
    ...others.removed.map(old => `Removed ${old}.`),
    ...others.stuck.map(old => `Could not remove ${old}: see who may write there.`),
  ]
    .map(line => `${line}\n`)
    .join('')
}

/** Names as in the warehouse's own tables. */
async function forPrograms(made: Made) {
  const { path, bytes: size, durationMs, database, workspace, begunAt, resources, removed, stuck } = made
  const { completeAsOf } = await import('../store/snapshot.ts')
  return {
    path,
    bytes: size,
    duration_ms: Math.round(durationMs),
    database,
    workspace,
    begun_at: begunAt,
    complete_as_of: completeAsOf(resources),
    resources: resources.map(({ resource, state, rows_live, fresh_as_of, complete_as_of }) => ({
      resource,
      state,
      rows_live,
      fresh_as_of,
      complete_as_of,
    })),
    removed,
    not_removed: stuck,
  }
}
