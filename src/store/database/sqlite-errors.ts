import { accessSync, constants, statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { EXIT_STATUS, errorCode, StopError } from '../../base/errors.ts'
import { sizeText } from '../../base/size-text.ts'
import { freeOnDisk } from '../disk/disk-space.ts'
import { fileSystemOf, resolvedPath, SHARE_ADVICE, shareOf } from '../disk/location.ts'
import { holdersHint, holdersText, type LockHolder, otherHolders } from '../disk/lock-holders.ts'

interface DatabaseFault {
  /** A clause for the end of a message, such as `the disk is full`. */
  problem: string
  hint: string
}

const FULL = /^(SQLITE_FULL|ENOSPC|EDQUOT)/

/** Codes of a file system without locks or without shared memory. */
const NO_WAL = /^(SQLITE_IOERR_\w*(SHM|LOCK)|SQLITE_PROTOCOL|ENOLCK)/

/** What each other error code of SQLite or of the file system means to a person. The first match counts. */
const DATABASE_FAULTS: readonly (DatabaseFault & { codes: RegExp })[] = [
  {
    codes: /^(SQLITE_CANTOPEN_ISDIR|EISDIR)/,
    problem: 'it is a folder, not a file',
    hint: 'Check database.path.',
  },
  {
    codes: /^EFTYPE/,
    problem: 'it is a device, a pipe or a socket, not a file',
    hint: 'Check database.path.',
  },
  {
    codes: /^SQLITE_READONLY_DIRECTORY/,
    problem: 'the -wal and -shm files are missing, and this user may not create them',
    hint: 'Run parley status once as a user who may write in its folder, or use a snapshot.',
  },
  {
    codes: /^EROFS/,
    problem: 'its file system is read-only',
    hint: 'Mount it read-write, or choose another file with database.path.',
  },
  {
    codes: /^(SQLITE_READONLY|SQLITE_CANTOPEN|SQLITE_PERM|EACCES|EPERM)/,
    problem: 'no permission to open or write it',
    hint: 'Check the owner and mode of the file, of its -lock, -wal and -shm files, and of its folder, or choose another file with database.path.',
  },
  {
    codes: /^ENOTDIR/,
    problem: 'a part of its path is a file, not a folder',
    hint: 'Check database.path.',
  },
  {
    codes: /^ELOOP/,
    problem: 'its path has a loop of symbolic links',
    hint: 'Remove the link that leads back to itself, or choose another file with database.path.',
  },
  {
    codes: /^ENAMETOOLONG/,
    problem: 'its path is too long',
    hint: 'Choose a shorter path with database.path.',
  },
  {
    codes: /^ENOENT/,
    problem: 'the file or its folder does not exist',
    hint: 'Check database.path. If its folder is missing, create it with mkdir -p.',
  },
  {
    codes: /^SQLITE_NOTADB/,
    problem: 'it is not a SQLite database',
    hint: 'Choose another file with database.path. If this file was a warehouse, stop the daemon and restore a snapshot with parley restore FILE.',
  },
  {
    // The only virtual tables are the full-text indices.
    codes: /^SQLITE_CORRUPT_VTAB/,
    problem: 'a full-text index of the search is damaged, the rows are not',
    hint: 'A daemon or backfill builds it again from the rows when its writes meet the damage. To do it now, set search.enabled = false and run parley backfill or reload the daemon, then the same with true.',
  },
  {
    codes: /^SQLITE_CORRUPT/,
    problem: 'it is damaged',
    hint: 'Stop the daemon if it runs. Then restore a snapshot with parley restore FILE, or move the file away and run parley backfill.',
  },
  {
    codes: /^(SQLITE_IOERR|EIO|EFBIG)/,
    problem: 'reading or writing it failed',
    hint: 'Check the disk, its free space and any limit on file sizes.',
  },
]

/**
 * Turns an error of SQLite or of the file system into a StopError: exit status 75 when another program has locked the
 * database, else 73. Returns every other error unchanged. For the error of a write, see `writeError`.
 */
export function databaseError(error: unknown, file: string): unknown {
  if (error instanceof StopError || !(error instanceof Error)) return error
  if (isBusy(error)) return databaseBusy(file, error)
  const code = errorCode(error)
  if (code === undefined) return error.cause === undefined ? error : databaseError(error.cause, file)
  const fault = databaseFault(code, file)
  if (!fault) return error
  const { problem, hint } = fault
  return new StopError(`Cannot use the database ${file}: ${problem} (${code})`, {
    code: 'database-unavailable',
    hint,
    cause: error,
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}

/** What an error code of SQLite or of the file system means for this file; undefined for any other code. */
export function databaseFault(code: string, file: string): DatabaseFault | undefined {
  const share = NO_WAL.test(code) ? shareOf(file) : undefined
  if (share !== undefined) return { problem: `it is on ${share}`, hint: SHARE_ADVICE }
  const mayBeFull = FULL.test(code) || /^(SQLITE_IOERR|SQLITE_CANTOPEN|EIO|EFBIG)/.test(code)
  if (FULL.test(code) || (mayBeFull && isDiskFull(file))) return fullDisk(file)
  const fault = DATABASE_FAULTS.find(({ codes }) => codes.test(code))
  const mayBeReadOnly = fault?.codes.test('SQLITE_CANTOPEN') && isReadOnly(file)
  return mayBeReadOnly ? DATABASE_FAULTS.find(({ codes }) => codes.test('EROFS')) : fault
}

/** Bytes. With more free space than this, a failed write counts as ended by a quota or limit, not by a full disk. */
const SPACE_FOR_A_WRITE = 64 * 1024 ** 2

function fullDisk(file: string): DatabaseFault {
  const { mountPoint, type } = fileSystemOf(resolvedPath(file)) ?? {
    mountPoint: dirname(file),
    type: undefined,
  }
  const place = type === undefined ? mountPoint : `${mountPoint} (${type})`
  const free = freeBytes(file)
  const temporary = '$TMPDIR or /var/tmp, where SQLite writes temporary files'
  if (free !== undefined && free > SPACE_FOR_A_WRITE) {
    return {
      problem: `the system let it write no more, although ${sizeText(free)} are free on ${place}`,
      hint: `Check quotas and limits on file sizes (ulimit -f, LimitFSIZE of the service), and the space in ${temporary}.`,
    }
  }
  const found = free === undefined ? '' : `: ${sizeText(free)} free on ${place}`
  return { problem: `the disk is full${found}`, hint: `Free disk space, also in ${temporary}.` }
}

function freeBytes(file: string): number | undefined {
  try {
    return freeOnDisk(dirname(file))
  } catch {
    return undefined
  }
}

/** Whether the file system is mounted read-only. SQLite reports that with the same code as a missing permission. */
export function isReadOnly(file: string): boolean {
  try {
    accessSync(dirname(file), constants.W_OK)
    return false
  } catch (error) {
    return errorCode(error) === 'EROFS'
  }
}

/** On a full disk SQLite reports some failed writes as SQLITE_IOERR, and a file it cannot create as SQLITE_CANTOPEN. */
function isDiskFull(file: string): boolean {
  try {
    const { blocks, bavail } = statfsSync(dirname(file))
    // Virtual file systems such as /sys have no blocks at all.
    return blocks > 0 && bavail < 16
  } catch {
    return false
  }
}

/**
 * - `READONLY_RECOVERY`: the reader may not write the `-shm`, and a writer has emptied it and is about to rebuild it.
 * - `PROTOCOL`: SQLite tried in vain to read the WAL for about ten seconds, for example because a halted process holds
 *   a lock.
 */
const BUSY = /^SQLITE_(BUSY|READONLY_RECOVERY|PROTOCOL)/

export function isBusy(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return BUSY.test(errorCode(error) ?? '') || isBusy(error.cause)
}

/** The code of the error while another program keeps parley from writing. */
export const DATABASE_BUSY = 'database-busy'

export function databaseBusy(
  file: string,
  cause?: Error,
  holders: readonly LockHolder[] = otherHolders(file, 'writing'),
): StopError {
  const unlockable = holders.length === 0 ? unlockableError(file, cause) : undefined
  if (unlockable) return unlockable
  return new StopError(`The database ${file} is locked by ${holdersText(holders, 'another program')}`, {
    code: DATABASE_BUSY,
    hint: holdersHint(
      holders,
      'Close that program, or end its transaction (often one of an sqlite3 shell that was left open).',
    ),
    cause,
    exitStatus: EXIT_STATUS.unfinished,
  })
}

/** The error of a step that needs the database for this process alone. @param more the end of the hint */
export function openElsewhere(file: string, more: string, cause: unknown): StopError {
  const holders = otherHolders(file, 'open')
  const advice = 'Close it there, for example in an sqlite3 shell or Datasette.'
  return new StopError(`${file} is open in ${holdersText(holders, 'another program')}`, {
    code: DATABASE_BUSY,
    hint: `${holdersHint(holders, advice)} ${more}`,
    cause,
    exitStatus: EXIT_STATUS.unfinished,
  })
}

/**
 * @returns the error for a lock that no process of this machine holds, on a network file system; undefined on a local
 * disk. Such a file system may have no locks, which SQLite reports as a lock of another process.
 */
export function unlockableError(file: string, cause?: Error): StopError | undefined {
  const share = shareOf(file)
  if (share === undefined) return undefined
  return new StopError(
    `Cannot lock ${file}: it is on ${share}, where locks do not work, or another machine holds the lock`,
    {
      code: 'database-unlockable',
      hint: SHARE_ADVICE,
      cause,
      exitStatus: EXIT_STATUS.databaseUnavailable,
    },
  )
}
