import { readdir, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { HOUR_MS } from '../../base/clock.ts'
import { errorCode } from '../../base/errors.ts'
import { wholeName } from './copy-names.ts'

/** Removes partial and old copies. All calls are asynchronous, since the disk of a copy may be slow or not answer. */

/** Removes a partial copy and its journal. A finished copy has been renamed, so it stays. */
export async function removePartial(part: string): Promise<void> {
  await rm(part, { force: true })
  await rm(`${part}-journal`, { force: true })
}

/** A writer modifies its partial file all the time, except in fsync and verification. Both take less time than this. */
const ABANDONED_MS = HOUR_MS

interface Partials {
  /** Path of the complete copy. */
  of: string
  /** True for the names of other complete copies in the same folder: their partial copies are removed too. */
  isAlike?: (name: string) => boolean
  /**
   * This machine's clock, in ms since the epoch: partial copies that may still have a writer stay. Undefined removes
   * all. The caller must then hold the lock of the database, so that no other process writes one.
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
