import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type Clock, inTime, SECOND_MS } from '../base/clock.ts'
import { EXIT_STATUS, errorCode, StopError } from '../base/errors.ts'
import { shellWord } from '../base/safe-text.ts'
import { sizeText } from '../base/size-text.ts'
import type { Recurrence } from '../config/kinds.ts'
import { readLastPublication } from '../publish/catalogue/complete-publication.ts'
import { lateAfter } from '../publish/publication-times.ts'
import { PUBLICATIONS } from '../publish/publications.ts'
import {
  openTargetReader,
  type PublishTarget,
  parseTarget,
  refuseUnusableLocation,
  type TargetSettings,
  targetName,
} from '../publish/storage/open.ts'
import { TARGET_MARK } from '../publish/storage/target-reader.ts'
import { freeOnSlowDisk } from '../store/disk/disk-space.ts'
import { durationText } from '../terminal/wording.ts'
import { type Finding, findingsOf } from './finding.ts'

/**
 * Checks the target of the publications without writing to it. Nothing here is `wrong`, since a backfill does not
 * depend on the target.
 */
interface PublishingContext {
  settings: TargetSettings
  /** The warehouse's identity; undefined when the database does not exist or cannot be read. */
  identity: string | undefined
  /** The names of the targets that have had a complete publication of this warehouse. */
  published: ReadonlySet<string>
  clock: Clock
  signal: AbortSignal
}

const LIMIT = {
  ms: 15 * SECOND_MS,
  error: new StopError('The target does not answer within 15 s', {
    code: 'publish-slow',
    hint: 'Check the network of this machine, and whether the file system or the server of publish.target works.',
    exitStatus: EXIT_STATUS.databaseUnavailable,
  }),
}

export async function publishingFindings(context: PublishingContext): Promise<readonly Finding[]> {
  const { target: text } = context.settings.publish
  if (text === undefined) return []
  const line = findingsOf('publish target')
  try {
    const target = parseTarget(text, '/')
    return await inTime(context.clock, LIMIT, limit =>
      targetFindings(target, { ...context, signal: AbortSignal.any([context.signal, limit]) }),
    )
  } catch (error) {
    if (context.signal.aborted) throw context.signal.reason
    if (!(error instanceof StopError)) throw error
    return [line.warning(error.message, error.hint)]
  }
}

async function targetFindings(target: PublishTarget, context: PublishingContext): Promise<Finding[]> {
  const facts = await targetFacts(target, context)
  const place = target.by === 'folder' ? await folderPlace(target.path) : undefined
  return [
    targetFinding(targetName(target), facts, context),
    ...(place ? [writingFinding(place), spaceFinding(place)] : [NOT_WRITTEN]),
    ...publicationFindings(facts, context),
  ]
}

type TargetFacts = Awaited<ReturnType<typeof targetFacts>>

/**
 * What can be known of a target without a write, with a few requests.
 * @throws StopError (exit status 73) when the target cannot be reached or read, with 78 without credentials, with 64
 *   when readers could not find the files of a new target; the signal's reason once the signal is aborted
 */
async function targetFacts(target: PublishTarget, access: PublishingContext) {
  const { location } = access.settings.publish
  // With 0 no try waits, so several tries take no longer than one.
  const options = { ...access, location, random: () => 0 }
  const reader = await openTargetReader(target, options)
  try {
    await refuseUnusableLocation(reader, location)
    const holds = await reader.holds()
    const last = holds === 'ours' ? await readLastPublication(reader) : undefined
    return { holds, last, location: reader.location }
  } finally {
    reader.close()
  }
}

const NOT_WRITTEN = findingsOf('publish access').note(
  'the target can be read; whether it can be written is not checked',
  'parley publish shows it.',
)

/** Whether the next publication would accept what the target has. Pure. */
function targetFinding(
  name: string,
  { holds, last, location }: TargetFacts,
  { identity, published }: Pick<PublishingContext, 'identity' | 'published'>,
): Finding {
  const line = findingsOf('publish target')
  if (holds === 'others')
    return line.warning(
      `${name} has files that parley publish did not write`,
      'Set publish.target to a folder or prefix that is empty, or has publications of this warehouse.',
    )
  if (holds === 'nothing' && published.has(name))
    return line.warning(
      `${name} is empty, and this warehouse has published to it`,
      `Bring the files back: the folder may have been moved, or its disk not be mounted. Or parley publish ${shellWord(name)} begins again with number 1.`,
    )
  if (holds === 'nothing') return line.ok(`${name} has nothing yet`)
  if (last === undefined)
    return line.note(`${name} has no complete publication yet`, 'The daemon or parley publish completes it.')
  if (identity === undefined)
    return line.note(`${name} has publications; not checked whether they are of this warehouse`)
  if (last.warehouse !== identity)
    return line.warning(
      `${name} has publications of another warehouse`,
      'Set publish.target to another folder or prefix. Each warehouse needs a separate one.',
    )
  if (last.location !== location)
    return line.warning(
      `the tables in ${name} name their files below ${last.location}`,
      `Set publish.location to "${last.location}", or publish to an empty folder or prefix.`,
    )
  return line.ok(`${name} has publications of this warehouse`)
}

/** How old the last publication is. Pure. */
function publicationFindings(
  { last }: Pick<TargetFacts, 'last'>,
  { settings, clock }: Pick<PublishingContext, 'settings' | 'clock'>,
): Finding[] {
  if (last === undefined) return []
  const line = findingsOf('last publication')
  const { every } = settings.publish
  const now = clock.now()
  const at = Date.parse(last.published_at)
  const age = `number ${last.publication} of ${last.published_at}, ${durationText(Math.max(0, now - at))} old`
  if (every === 'never') return [line.ok(`${age}; the daemon does not publish (publish.every)`)]
  const due = `publish.every is ${everyText(every)}`
  if (now <= lateAfter(every, at)) return [line.ok(`${age}; ${due}`)]
  return [
    line.warning(
      `${age}, but ${due}`,
      'Start the daemon, or see in parley status why it fails. parley publish publishes at once.',
    ),
  ]
}

const everyText = (every: Recurrence): string =>
  every.by === 'interval' ? durationText(every.ms) : every.pattern

interface FolderPlace {
  path: string
  /** The folder itself, or the nearest folder above it that exists. */
  existing: string
  isFolder: boolean
  /** Whether every user may replace its files: it is writable for all, without the sticky bit. */
  isOpen: boolean
  /** The first place that a publication writes to but this user may not write; undefined when there is none. */
  refused: string | undefined
  freeBytes: number
}

async function folderPlace(path: string): Promise<FolderPlace> {
  const existing = await firstExisting(path)
  const written = [existing, join(path, `${TARGET_MARK}-lock`), join(path, PUBLICATIONS, 'metadata')]
  const refusals = await Promise.all(written.map(isRefused))
  const stats = await stat(existing)
  return {
    path,
    existing,
    isFolder: stats.isDirectory(),
    isOpen: (stats.mode & 0o1002) === 0o002,
    refused: written.find((_, place) => refusals[place]),
    freeBytes: await freeOnSlowDisk(existing),
  }
}

async function firstExisting(path: string): Promise<string> {
  try {
    await stat(path)
    return path
  } catch {
    return firstExisting(dirname(path))
  }
}

async function isRefused(path: string): Promise<boolean> {
  try {
    await access(path, constants.W_OK)
    return false
  } catch (error) {
    return errorCode(error) !== 'ENOENT' && errorCode(error) !== 'ENOTDIR'
  }
}

/** Whether this user may write the folder. Pure. */
export function writingFinding({ path, existing, isFolder, isOpen, refused }: FolderPlace): Finding {
  const line = findingsOf('publish access')
  if (!isFolder) return line.warning(`${existing} is not a folder`, 'Move it away, or change publish.target.')
  if (refused !== undefined)
    return line.warning(
      `${refused} is not writable for this user`,
      'Run parley as the owner of the folder, change its owner or mode, or change publish.target.',
    )
  if (isOpen)
    return line.warning(
      `${existing} is writable for every user, who can replace published files`,
      `Run chmod o-w ${shellWord(existing)}, or change publish.target.`,
    )
  return line.ok(
    path === existing
      ? `${path} is writable`
      : `${existing} is writable, and the rest of the path is created`,
  )
}

const COMFORTABLE_SPACE = 1024 ** 3

/** Whether the target's disk has enough space. Pure. */
export function spaceFinding({ freeBytes, existing }: Pick<FolderPlace, 'freeBytes' | 'existing'>): Finding {
  const line = findingsOf('publish disk space')
  const found = `${sizeText(freeBytes)} free at ${existing}`
  return freeBytes > COMFORTABLE_SPACE
    ? line.ok(found)
    : line.warning(
        `${found}; expected more than ${sizeText(COMFORTABLE_SPACE)} free`,
        'Delete files on this disk, lower publish.keep, or change publish.target.',
      )
}
