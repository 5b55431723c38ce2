import { type Stats, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { EXIT_STATUS, errorCode, StopError } from '../../base/errors.ts'
import { databaseError } from '../database/sqlite-errors.ts'
import { isMountPoint, mountTable } from '../disk/location.ts'

/**
 * The file at the path of a database; undefined when there is none yet. `existsSync` would also be false for a path
 * that cannot be followed, and a command would then offer to create a database that it cannot create.
 * @throws StopError (73) when the path cannot be followed, or names a folder
 */
export function databaseStats(path: string): Stats | undefined {
  const file = resolve(path)
  try {
    const stats = statSync(file)
    if (stats.isDirectory()) throw Object.assign(new Error('It is a folder'), { code: 'EISDIR' })
    return stats
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    throw databaseError(error, file)
  }
}

/**
 * The path of the database determines the names of its `-wal`, `-shm` and `-lock` files. A file with two paths would
 * have two of each, so two processes could write it at the same time.
 * @param file path without symbolic links
 * @throws StopError (73) when the file has another name, or `databaseStats` refuses the path
 */
export function refuseSecondName(file: string): void {
  const names = databaseStats(file)?.nlink ?? 1
  if (names > 1) {
    throw secondNameError(
      `${file} has ${names} names (hard links), expected one`,
      `Remove the other names; find / -samefile ${file} lists them.`,
    )
  }
  if (isMountPoint(file, mountTable())) {
    throw secondNameError(
      `${file} is mounted as a single file, so its -wal and -lock files are not those of the original`,
      'Mount the folder that contains the database instead of the file.',
    )
  }
}

function secondNameError(message: string, hint: string): StopError {
  return new StopError(message, {
    code: 'database-second-name',
    hint,
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}
