import { chmod, mkdir, readdir } from 'node:fs/promises'
import { dirname, join, parse, resolve } from 'node:path'
import { isoInstant } from '../clock.ts'
import { EXIT_STATUS, StopError } from '../errors.ts'
import { isOurs, type Owner, ownersOf } from './copy-owners.ts'
import { makeSnapshot, type Snapshot, type SnapshotOptions } from './snapshot.ts'
import { modeFor, type Removal, removeFiles } from './snapshot-target.ts'
import { requireWarehouse } from './status.ts'

/** Snapshots of which the newest are kept, in a folder of their own, each named by when it was begun. */
export interface Keeping {
  /** Undefined for the one beside the database. */
  folder: string | undefined
  /** How many stay. */
  keep: number
  /** Reads whose snapshots they are. */
  owners?: (paths: readonly string[], signal: AbortSignal) => Promise<Owner[]>
}

export interface KeptSnapshot {
  path: string
  /** In ms since the epoch. */
  at: number
}

/**
 * Makes one more and removes the oldest of this warehouse beyond the number that is kept.
 * @throws StopError as `makeSnapshot` does
 */
export async function keepSnapshot(
  options: Omit<SnapshotOptions, 'file'>,
  { folder: given, keep, owners = ownersOf }: Keeping,
): Promise<Snapshot & Removal> {
  const { database, clock, mode, signal } = options
  const folder = given ?? folderBeside(database)
  const file = join(folder, nameAt(database, clock.now()))
  requireWarehouse(database)
  await ensureFolder(folder, database, mode)
  const [newest] = await keptSnapshots(database, folder, clock.now())
  const isAlike = (name: string) => isNamed(database, name)
  const snapshot = await makeSnapshot({ ...options, file, isAlike, earlier: newest?.path })
  const others = (await keptSnapshots(database, folder, clock.now())).filter(({ path }) => path !== file)
  if (others.length < keep) return { ...snapshot, removed: [], stuck: [] }
  const paths = others.map(({ path }) => path)
  // The snapshot is made all the same: where nobody can tell whose the others are, only its own folder is pruned.
  const [own, ...found] = await owners([database, ...paths], signal).catch((): Owner[] => [])
  const isInOwnFolder = isOwnFolder(folder, database)
  const ours = others.filter((_, at) =>
    isOurs({ identity: found[at]?.identity, isInOwnFolder }, own?.identity),
  )
  return { ...snapshot, ...(await removeFiles(ours.slice(keep - 1).map(({ path }) => path))) }
}

/**
 * The newest first. Those of the time to come were made before the clock was set back, and are the last.
 * @param now by this machine's clock, in ms since the epoch
 */
export async function keptSnapshots(
  database: string,
  given: string | undefined,
  now: number,
): Promise<KeptSnapshot[]> {
  const folder = given ?? folderBeside(database)
  const kept = (await namesIn(folder))
    .filter(name => isNamed(database, name))
    .map(name => ({ path: join(folder, name), at: instantIn(name) }))
    .sort((a, b) => b.at - a.at)
  return [...kept.filter(({ at }) => at <= now), ...kept.filter(({ at }) => at > now)]
}

/** Nothing but the snapshots of this database lies there. */
export const folderBeside = (database: string): string => `${database}.snapshots`

export const isOwnFolder = (folder: string, database: string): boolean =>
  resolve(folder) === resolve(folderBeside(database))

const STAMP = /-(\d{4}-\d\d-\d\dT\d\d)(\d\d)(\d\d)Z$/

/** `parley-2026-01-31T034700Z.db`: in order of text they are in order of time. */
function nameAt(database: string, now: number): string {
  const { name, ext } = parse(database)
  const stamp = isoInstant(now).replace(/:|\.\d+/g, '')
  return `${name}-${stamp}${ext}`
}

/** What only looks like an instant, as the 31st of April does, is somebody else's. */
export function isNamed(database: string, candidate: string): boolean {
  const { name, ext } = parse(database)
  const given = parse(candidate)
  if (given.ext !== ext || given.name.replace(STAMP, '') !== name) return false
  const at = instantIn(candidate)
  return !Number.isNaN(at) && nameAt(database, at) === candidate
}

function instantIn(file: string): number {
  const [, hour, minute, second] = STAMP.exec(parse(file).name) ?? []
  return Date.parse(`${hour}:${minute}:${second}Z`)
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true })
    return entries.flatMap(entry => (entry.isFile() ? [entry.name] : []))
  } catch {
    // What is wrong with it is said when one is to be made there.
    return []
  }
}

/** Whoever may read the copies may enter it, and what had to be made around it. */
async function ensureFolder(folder: string, database: string, wanted: number): Promise<void> {
  try {
    const outermost = await mkdir(folder, { recursive: true, mode: 0o700 })
    for (const made of outermost === undefined ? [] : foldersFrom(outermost, resolve(folder))) {
      const mode = await modeFor(made, database, wanted)
      await chmod(made, 0o700 | enterable(mode, 0o040) | enterable(mode, 0o004))
    }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
    throw new StopError(`Cannot make ${folder}, the folder of the snapshots (${code})`, {
      code: 'snapshot-unwritable',
      hint: 'Check the place and who may write there, or choose another folder with snapshot.folder.',
      cause: error,
      exitStatus: EXIT_STATUS.databaseUnavailable,
    })
  }
}

const foldersFrom = (outer: string, inner: string): string[] =>
  inner.length <= outer.length ? [outer] : [...foldersFrom(outer, dirname(inner)), inner]

/** Reading and entering, where reading is given. */
const enterable = (mode: number, read: number): number => ((mode & read) === 0 ? 0 : read + (read >> 2))
