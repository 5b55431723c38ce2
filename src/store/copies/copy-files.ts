import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { readdir, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, parse } from 'node:path'
import { HOUR_MS, isoInstant } from '../../base/clock.ts'
import { errorCode } from '../../base/errors.ts'

/**
 * Names and removes the copies of a database that parley makes. Only files with such a name are ever removed:
 * - `parley-2026-01-31T034700Z.db`, in the snapshot folder: a kept snapshot, named after its start;
 * - `parley.db-before-0003_analysts`, next to the database: the copy from before an upgrade, named after the first
 *   migration that the copy lacks. The name ends in `.part` until the copy is complete;
 * - `parley.db-before-restore-2026-01-31T034700Z`, next to the database: the old database, kept by a restore;
 * - `NAME.0123abcd.part`, next to NAME: a copy that is not complete yet.
 */

const STAMP = /-(\d{4}-\d\d-\d\dT\d\d)(\d\d)(\d\d)Z$/

/** @param at in ms since the epoch */
export function snapshotName(database: string, at: number): string {
  const { name, ext } = parse(database)
  return `${name}-${timeStamp(at)}${ext}`
}

/**
 * The instant in the name of a kept snapshot, in ms since the epoch. Undefined for any other name, such as one whose
 * date does not exist.
 */
export function snapshotInstant(database: string, name: string): number | undefined {
  const [, hour, minute, second] = STAMP.exec(parse(name).name) ?? []
  const at = Date.parse(`${hour}:${minute}:${second}Z`)
  return !Number.isNaN(at) && snapshotName(database, at) === name ? at : undefined
}

export const upgradeCopyPath = (database: string, tag: string): string => `${database}-before-${tag}`

/** A path, not in use yet, for the old database that a restore keeps. */
export function asidePath(database: string, now: number): string {
  const path = `${database}-before-restore-${timeStamp(now)}`
  return existsSync(path) ? asidePath(database, now + 1000) : path
}

const UPGRADE_COPY = /^-before-\d{4}_[a-z0-9_]+(\.part)?$/
const ASIDE = /^-before-restore-\d{4}-\d\d-\d\dT\d{6}Z(-wal|-shm|-journal)?$/

/** Paths of all copies before upgrades, partial ones (`.part`) included. */
export const copiesBeforeUpgrades = (database: string): string[] => pathsNextTo(database, UPGRADE_COPY)

/** Paths of the old databases that earlier restores have kept, and of their `-wal`, `-shm` and `-journal` files. */
export const keptByRestores = (database: string): string[] => pathsNextTo(database, ASIDE)

function pathsNextTo(database: string, end: RegExp): string[] {
  const [folder, start] = [dirname(database), basename(database)]
  return readdirSync(folder)
    .filter(name => name.startsWith(start) && end.test(name.slice(start.length)))
    .map(name => join(folder, name))
}

export const partialPath = (file: string): string => `${file}.${randomBytes(4).toString('hex')}.part`

/** The name that a partial copy gets when it is complete; undefined for the name of any other file. */
function wholeName(name: string): string | undefined {
  const whole = name.replace(/\.[0-9a-f]{8}\.part(-journal)?$/, '')
  return whole === name ? undefined : whole
}

/** An instant for a file name, such as `2026-01-31T034700Z`. The text order of such names is their time order. */
function timeStamp(ms: number): string {
  return isoInstant(ms).replace(/:|\.\d+/g, '')
}

/**
 * Removes a partial copy and its journal. A finished copy has been renamed, so it stays. The functions that remove
 * files are asynchronous, since the disk of a copy may be slow or not answer.
 */
export async function removePartial(part: string): Promise<void> {
  await rm(part, { force: true })
  await rm(`${part}-journal`, { force: true })
}

/**
 * A writer modifies its partial file all the time, except in fsync and verification. Each takes less time than this.
 */
const ABANDONED_MS = HOUR_MS

interface Partials {
  /** Path of the complete copy. */
  of: string
  /** True for the names of other complete copies in the same folder: their partial copies are removed too. */
  isAlike?: (name: string) => boolean
  /**
   * This machine's clock, in ms since the epoch: partial copies that may still have a writer stay. Undefined removes
   * all partial copies. The caller must then hold the lock of the database, so that no other process writes one.
   */
  now?: number
}

/** Removes the partial copies that dead processes left. */
export async function removePartials({ of: file, isAlike = () => false, now }: Partials): Promise<Removal> {
  const isWanted = (whole: string | undefined) =>
    whole !== undefined && (whole === basename(file) || isAlike(whole))
  const abandoned: string[] = []
  for (const name of await namesIn(dirname(file))) {
    const path = join(dirname(file), name)
    if (isWanted(wholeName(name)) && (await isAbandoned(path, now))) abandoned.push(path)
  }
  return removeFiles(abandoned)
}

/** A file time far in the future counts as old too: the clock was wrong when the file was written. */
async function isAbandoned(path: string, now: number | undefined): Promise<boolean> {
  if (now === undefined) return true
  const modifiedAt = await stat(path).then(
    ({ mtimeMs }) => mtimeMs,
    // A file that cannot be examined counts as new.
    () => now,
  )
  return Math.abs(now - modifiedAt) > ABANDONED_MS
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch {
    // A user may be allowed to write to a folder but not to list it.
    return []
  }
}

/** Paths of the files that were removed, and the files that could not be removed. */
export interface Removal {
  removed: readonly string[]
  stuck: readonly StuckFile[]
}

export interface StuckFile {
  path: string
  /** Code of the system's error. */
  reason: string
}

export async function removeFiles(paths: readonly string[]): Promise<Removal> {
  const [removed, stuck]: [string[], StuckFile[]] = [[], []]
  for (const path of paths) {
    try {
      await rm(path, { force: true })
      removed.push(path)
    } catch (error) {
      stuck.push({ path, reason: errorCode(error) ?? 'unknown' })
    }
  }
  return { removed, stuck }
}
