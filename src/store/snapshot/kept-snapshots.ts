import { chmod, mkdir, readdir } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { EXIT_STATUS, errorCode, StopError } from '../../base/errors.ts'
import { type Removal, removeFiles, snapshotInstant, snapshotName } from '../copies/copy-files.ts'
import { requireWarehouse } from '../status/status.ts'
import { hasPurgedSince, mayRemoveCopy, type Owner, ownersOf } from './copy-process.ts'
import { makeSnapshot, modeFor, type Snapshot, type SnapshotOptions } from './snapshot.ts'

/** Kept snapshots: a folder with the newest snapshots, each named after the instant at which it was started. */
export interface KeepOptions {
  /** Undefined for the default: `<database>.snapshots`. */
  folder: string | undefined
  /** Number of snapshots to keep, the new one included. */
  keep: number
  owners?: (paths: readonly string[], signal: AbortSignal) => Promise<Owner[]>
}

export interface KeptSnapshot {
  path: string
  /** In ms since the epoch. */
  at: number
}

export interface Pruning extends Removal {
  /** The files of `removed` that held content which was purged after they were made. */
  outdated: readonly string[]
}

/**
 * Makes a snapshot. Then removes two kinds of earlier snapshots of this warehouse: those from before the last purge,
 * which still have the purged content, and the oldest beyond `keep`.
 * @throws StopError as `makeSnapshot` does
 */
export async function keepSnapshot(
  options: Omit<SnapshotOptions, 'file'>,
  { folder: given, keep, owners = ownersOf }: KeepOptions,
): Promise<Snapshot & Pruning> {
  const { database, clock, mode, signal } = options
  const folder = given ?? defaultSnapshotFolder(database)
  const file = join(folder, snapshotName(database, clock.now()))
  requireWarehouse(database)
  await ensureFolder(folder, database, mode)
  const [newest] = await keptSnapshots(database, folder, clock.now())
  const isAlike = (name: string) => snapshotInstant(database, name) !== undefined
  const snapshot = await makeSnapshot({ ...options, file, isAlike, earlier: newest?.path })
  const others = (await keptSnapshots(database, folder, clock.now())).filter(({ path }) => path !== file)
  if (others.length === 0) return { ...snapshot, removed: [], stuck: [], outdated: [] }
  const paths = others.map(({ path }) => path)
  // A failure here is not fatal: the snapshot exists. Without owners, only the default folder is pruned.
  const [own, ...found] = await owners([file, ...paths], signal).catch((): Owner[] => [])
  const isInOwnFolder = isOwnFolder(folder, database)
  const ours = paths.flatMap((path, at) => {
    const owner = found[at]
    return mayRemoveCopy({ identity: owner?.identity, isInOwnFolder }, own?.identity) ? [{ path, owner }] : []
  })
  const isOutdated = ({ owner }: (typeof ours)[number]) => hasPurgedSince(owner, own)
  const outdated = ours.filter(isOutdated).map(({ path }) => path)
  const surplus = ours.filter(one => !isOutdated(one)).slice(keep - 1)
  const removal = await removeFiles([...outdated, ...surplus.map(({ path }) => path)])
  return { ...snapshot, ...removal, outdated: outdated.filter(path => removal.removed.includes(path)) }
}

/**
 * The kept snapshots, newest first. Snapshots with a future instant come last: the clock was wrong when they were made.
 * @param now ms since the epoch, by this machine's clock
 */
export async function keptSnapshots(
  database: string,
  given: string | undefined,
  now: number,
): Promise<KeptSnapshot[]> {
  const folder = given ?? defaultSnapshotFolder(database)
  const kept = (await namesIn(folder))
    .flatMap(name => {
      const at = snapshotInstant(database, name)
      return at === undefined ? [] : [{ path: join(folder, name), at }]
    })
    .sort((a, b) => b.at - a.at)
  return [...kept.filter(({ at }) => at <= now), ...kept.filter(({ at }) => at > now)]
}

/** The default folder. It holds nothing but snapshots of this database. */
export const defaultSnapshotFolder = (database: string): string => `${database}.snapshots`

export const isOwnFolder = (folder: string, database: string): boolean =>
  resolve(folder) === resolve(defaultSnapshotFolder(database))

async function namesIn(folder: string): Promise<string[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true })
    return entries.flatMap(entry => (entry.isFile() ? [entry.name] : []))
  } catch {
    // Writing a snapshot to this folder reports the error.
    return []
  }
}

/** Creates the folder and its missing parents. Users that may read the snapshots may enter these folders. */
async function ensureFolder(folder: string, database: string, wanted: number): Promise<void> {
  try {
    const outermost = await mkdir(folder, { recursive: true, mode: 0o700 })
    for (const created of outermost === undefined ? [] : foldersFrom(outermost, resolve(folder))) {
      const mode = await modeFor(created, database, wanted)
      await chmod(created, 0o700 | enterable(mode, 0o040) | enterable(mode, 0o004))
    }
  } catch (error) {
    throw new StopError(`Cannot create the snapshot folder ${folder} (${errorCode(error) ?? 'unknown'})`, {
      code: 'snapshot-unwritable',
      hint: 'Check the owner, mode and free space of its parent folder. Check that no file has the name of the folder. Or choose another folder with snapshot.folder.',
      cause: error,
      exitStatus: EXIT_STATUS.databaseUnavailable,
    })
  }
}

const foldersFrom = (outer: string, inner: string): string[] =>
  inner.length <= outer.length ? [outer] : [...foldersFrom(outer, dirname(inner)), inner]

/** @returns the bits for reading and entering a folder when the mode has the bit `read`, else 0 */
const enterable = (mode: number, read: number): number => ((mode & read) === 0 ? 0 : read + (read >> 2))
