import { statfsSync, statSync } from 'node:fs'
import { statfs } from 'node:fs/promises'

/** Sizes of databases and free space, in bytes. */

/** The sizes of a database and of its `-wal`; 0 for a missing file. */
export function databaseSizes(file: string): { bytes: number; walBytes: number } {
  return { bytes: fileBytes(file), walBytes: fileBytes(`${file}-wal`) }
}

/** 0 for a missing file. */
export function fileBytes(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0
}

/** Free bytes for this user, as statfs(2) reports them. */
export const freeOnDisk = (folder: string): number => freeBytesIn(statfsSync(folder))

/** As `freeOnDisk`, for a disk that may be slow or not answer. */
export const freeOnSlowDisk = async (folder: string): Promise<number> => freeBytesIn(await statfs(folder))

const freeBytesIn = ({ bavail, bsize }: { bavail: number; bsize: number }) => bavail * bsize
