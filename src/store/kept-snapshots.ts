import { chmodSync, mkdirSync, readdirSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join, parse } from 'node:path'
import { isoInstant } from '../clock.ts'
import { EXIT_STATUS, StopError } from '../errors.ts'
import { makeSnapshot, type Snapshot, type SnapshotOptions, takeGroup } from './snapshot.ts'
import { requireWarehouse } from './status.ts'

/** Snapshots of which the newest are kept, in a folder of their own, each named by when it was begun. */
export interface Keeping {
  /** Undefined for the one beside the database. */
  folder: string | undefined
  /** How many stay. */
  keep: number
  /** None older than this stays but the one just made, in ms since the epoch. */
  notBefore: number
}

export interface KeptSnapshot {
  path: string
  /** In ms since the epoch. */
  at: number
}

/** @throws StopError as `makeSnapshot` does */
export async function keepSnapshot(
  options: Omit<SnapshotOptions, 'file'>,
  { folder: given, keep, notBefore }: Keeping,
): Promise<Snapshot & { removed: readonly string[] }> {
  const { database, clock, mode } = options
  const folder = given ?? folderBeside(database)
  requireWarehouse(database)
  ensureFolder(folder, database, mode)
  const file = join(folder, nameAt(database, clock.now()))
  const snapshot = await makeSnapshot({ ...options, file, isAlike: name => isNamed(database, name) })
  const others = keptSnapshots(database, folder).filter(({ path }) => path !== file)
  const old = others.filter(({ at }, index) => index >= keep - 1 || at < notBefore)
  return { ...snapshot, removed: await remove(old) }
}

/** Removes those begun before an instant, in ms since the epoch: they keep what has been erased since. */
export function removeSnapshotsBefore(
  database: string,
  folder: string | undefined,
  before: number,
): Promise<string[]> {
  return remove(keptSnapshots(database, folder).filter(({ at }) => at < before))
}

/** The newest first. */
export function keptSnapshots(database: string, folder: string = folderBeside(database)): KeptSnapshot[] {
  return namesIn(folder)
    .filter(name => isNamed(database, name))
    .map(name => ({ path: join(folder, name), at: instantIn(name) }))
    .sort((a, b) => b.at - a.at)
}

const folderBeside = (database: string): string => `${database}.snapshots`

const STAMP = /-(\d{4}-\d\d-\d\dT\d\d)(\d\d)(\d\d)Z$/

/** `parley-2026-01-31T034700Z.db`: in order of text they are in order of time. */
function nameAt(database: string, now: number): string {
  const { name, ext } = parse(database)
  const stamp = isoInstant(now).replace(/:|\.\d+/g, '')
  return `${name}-${stamp}${ext}`
}

function isNamed(database: string, candidate: string): boolean {
  const { name, ext } = parse(database)
  const given = parse(candidate)
  return given.ext === ext && STAMP.test(given.name) && given.name.replace(STAMP, '') === name
}

function instantIn(file: string): number {
  const [, hour, minute, second] = STAMP.exec(parse(file).name) ?? []
  return Date.parse(`${hour}:${minute}:${second}Z`)
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).flatMap(entry => (entry.isFile() ? [entry.name] : []))
  } catch {
    // What is wrong with it is said when one is to be made there.
    return []
  }
}

/** Whoever may read the copies may enter it. */
function ensureFolder(folder: string, database: string, mode: number): void {
  try {
    if (mkdirSync(folder, { recursive: true, mode: 0o700 }) === undefined) return
    takeGroup(folder, database)
    chmodSync(folder, 0o700 | enterable(mode, 0o040) | enterable(mode, 0o004))
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

/** Reading and entering, where reading is given. */
const enterable = (mode: number, read: number): number => ((mode & read) === 0 ? 0 : read + (read >> 2))

/** Off the event loop, since to free a large file takes long. */
async function remove(kept: readonly KeptSnapshot[]): Promise<string[]> {
  for (const { path } of kept) await rm(path, { force: true })
  return kept.map(({ path }) => path)
}
