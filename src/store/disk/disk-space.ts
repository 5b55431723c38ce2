import { statfsSync, statSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { EXIT_STATUS, StopError } from '../../base/errors.ts'
import { sizeText } from '../../base/size-text.ts'

/** Sizes of databases and free space, in bytes. */

/** Bytes that this process may still write to the disk of a folder. */
export type FreeBytes = (folder: string) => number | Promise<number>

interface SpaceNeed {
  /** Path of the file that needs the space. */
  file: string
  bytes: number
  message: string
  code: string
  /** End of the hint, with its punctuation. */
  advice: string
}

/**
 * @param free bytes that may still be written to the folder of the file
 * @throws StopError (73) when there is less
 */
export function requireSpace(free: number, { file, bytes, message, code, advice }: SpaceNeed): void {
  if (free >= bytes) return
  const folder = dirname(file)
  throw new StopError(message, {
    code,
    hint: `Free ${sizeText(bytes - free)} more in ${folder} (needed: ${sizeText(bytes)})${advice}`,
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}

/** The sizes of a database and of its `-wal`; 0 for a missing file. */
export function databaseSizes(file: string): { bytes: number; walBytes: number } {
  return { bytes: fileBytes(file), walBytes: fileBytes(`${file}-wal`) }
}

/** The size of a file; 0 for a missing file. */
export function fileBytes(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0
}

/** Free bytes for this user, as statfs(2) reports them. */
export const freeOnDisk = (folder: string): number => freeBytesIn(statfsSync(folder))

/** As `freeOnDisk`, for a disk that may be slow or not answer. */
export const freeOnSlowDisk = async (folder: string): Promise<number> => freeBytesIn(await statfs(folder))

const freeBytesIn = ({ bavail, bsize }: { bavail: number; bsize: number }) => bavail * bsize
