import { readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Clock } from '../base/clock.ts'
import { EXIT_STATUS, errorCode, StopError } from '../base/errors.ts'
import { isReadOnly } from '../store/database/sqlite-errors.ts'
import { shareOf } from '../store/disk/location.ts'
import { holdersHint, holdersText, lockHolders } from '../store/disk/lock-holders.ts'
import { createFolder, makeFolder } from '../store/disk/new-files.ts'
import { type HeldLock, lockDatabase } from '../store/file/lock.ts'

/** The folder that an export or a publication writes to: its lock, and what its errors mean to a person. */

/** What a command does to the folder. */
export interface FolderUse {
  /** The verb in messages, and the first word of error codes. */
  verb: 'export' | 'publish'
  /** The lock is `<lockedName>-lock`. It marks the folder as a target, and allows one process at a time. */
  lockedName: string
  /** What the folder may have in it, for a hint. */
  accepts: string
  /** What the files of other programs are, for a message. */
  foreign: string
  /** Recognizes a folder of parley that lacks the lock, such as a copy. */
  isOurs?(path: string): boolean
}

const lockFile = ({ lockedName }: FolderUse): string => `${lockedName}-lock`

/**
 * @throws StopError (exit status 64) when the folder has other files, 73 when it cannot be used, 75 when another
 * process uses it
 */
export function lockFolder(path: string, mode: number, clock: Clock, use: FolderUse): HeldLock {
  const { verb, lockedName } = use
  const locked = join(path, lockedName)
  try {
    makeTarget(path, mode, use)
    refuseForeign(path, use)
    return lockDatabase(locked, clock, mode)
  } catch (error) {
    if (!(error instanceof StopError)) throw targetError(error, path, use)
    if (error.code === 'database-unavailable') throw targetError(lockCause(error.cause, path, use), path, use)
    if (error.code === 'database-unlockable') throw unlockableError(path, verb)
    if (error.code !== 'database-locked') throw error
    const holders = lockHolders(locked, 'writer') ?? []
    throw new StopError(`${path} is in use by ${holdersText(holders, 'another process')}`, {
      code: `${verb}-locked`,
      hint: holdersHint(holders, 'Wait until it ends, or choose another folder.'),
      exitStatus: EXIT_STATUS.unfinished,
    })
  }
}

const unlockableError = (path: string, verb: FolderUse['verb']): StopError =>
  new StopError(
    `${path} is on ${shareOf(path)}, where locks do not work, or another machine holds the lock`,
    {
      code: `${verb}-unlockable`,
      hint: `Let parley ${verb} write to a folder on a local disk, and copy that. If another machine writes to this one, wait until it ends.`,
      exitStatus: EXIT_STATUS.databaseUnavailable,
    },
  )

/**
 * The cause to report in place of SQLite's error about the lock file. A folder in its place becomes EISDIR, which SQLite
 * reports as a missing permission. A file that is no database gets its path, which SQLite does not name. SQLite's many
 * codes for a failed read, write or lock become EIO.
 */
function lockCause(cause: unknown, path: string, use: FolderUse): unknown {
  if (errorCode(cause)?.startsWith('SQLITE_IOERR'))
    return Object.assign(new Error('Not locked'), { code: 'EIO' })
  const place = join(path, lockFile(use))
  const isFolder = statSync(place, { throwIfNoEntry: false })?.isDirectory() === true
  if (!isFolder && errorCode(cause) !== 'SQLITE_NOTADB') return cause
  return Object.assign(new Error('Not a lock'), { code: isFolder ? 'EISDIR' : 'SQLITE_NOTADB', path: place })
}

/** The target and its parents may be links, since the user has named them. */
function makeTarget(path: string, mode: number, { verb, accepts }: FolderUse): void {
  const there = statSync(path, { throwIfNoEntry: false })
  if (there?.isDirectory()) return
  if (there) {
    throw new StopError(`${path} is not a folder`, {
      code: `${verb}-no-folder`,
      hint: `Name a folder that is empty, does not exist yet, or ${accepts}.`,
      exitStatus: EXIT_STATUS.usage,
    })
  }
  makeParents(path)
  makeFolder(path, mode)
}

function refuseForeign(path: string, use: FolderUse): void {
  const inside = readdirSync(path)
  if (inside.length === 0 || inside.includes(lockFile(use)) || use.isOurs?.(path)) return
  throw new StopError(`${path} has files that ${use.foreign}`, {
    code: `${use.verb}-foreign`,
    hint: `Name a folder that is empty, does not exist yet, or ${use.accepts}; this one was not changed.`,
    exitStatus: EXIT_STATUS.usage,
  })
}

/**
 * Creates the missing parents of a folder. The recursive mkdir of Node is not used: it reports a read-only file system
 * as a missing folder, and it never returns where the system refuses new folders with ENOENT, such as in /proc.
 */
function makeParents(path: string): void {
  const parent = dirname(path)
  if (statSync(parent, { throwIfNoEntry: false })) return
  makeParents(parent)
  createFolder(parent)
}

interface TargetFault {
  codes: readonly string[]
  says: string
  hint: string
  /** True when the message names the path inside the folder. */
  isAtPath?: true
}

/** Message and hint by error code of the file system. */
const FAULTS: readonly TargetFault[] = [
  {
    codes: ['ENOSPC', 'EDQUOT'],
    says: 'the disk is full',
    hint: 'Free some space and run the command again; it continues where it stopped. Until then, readers find what was there before.',
  },
  {
    codes: ['EFBIG'],
    says: 'a file would exceed the size limit of this user or of the file system',
    hint: 'Raise the limit (ulimit -f, or LimitFSIZE of the service) and run the command again; it continues where it stopped.',
  },
  {
    codes: ['EROFS'],
    says: 'its file system is read-only',
    hint: 'Mount it read-write, or choose another folder.',
  },
  {
    codes: ['EACCES', 'EPERM', 'SQLITE_CANTOPEN'],
    says: 'no permission to write there',
    hint: 'Check the owner and mode of the folder, or choose another one.',
  },
  {
    codes: ['ENOTDIR', 'EISDIR', 'ERR_FS_EISDIR', 'EEXIST', 'ENOTEMPTY', 'SQLITE_NOTADB'],
    says: 'something else is in the way',
    isAtPath: true,
    hint: 'Move it away, or choose another folder.',
  },
  {
    codes: ['ELOOP'],
    says: 'a symbolic link is in the way',
    isAtPath: true,
    hint: 'The folder itself can be a link, but links inside it are refused, since another user could have made them. Remove the link, or choose another folder.',
  },
  {
    codes: ['ENOENT'],
    says: 'a folder or file is missing',
    isAtPath: true,
    hint: 'Check whether another program removed it, then run the command again.',
  },
  { codes: ['ENAMETOOLONG'], says: 'its path is too long', hint: 'Choose a folder with a shorter path.' },
  { codes: ['EIO'], says: 'reading or writing failed', hint: 'Check the disk.' },
]

/** A file system error becomes a StopError (exit status 73). Any other error is returned unchanged. */
export function targetError(
  error: unknown,
  path: string,
  { verb, lockedName }: Pick<FolderUse, 'verb' | 'lockedName'>,
): unknown {
  const found = errorCode(error)
  if (error instanceof StopError || found === undefined) return error
  const code = found === 'SQLITE_CANTOPEN' && isReadOnly(join(path, lockedName)) ? 'EROFS' : found
  const fault = FAULTS.find(({ codes }) => codes.includes(code))
  if (!fault) return error
  const at = fault.isAtPath ? placeOf(error) : ''
  return new StopError(`Cannot ${verb} to ${path}: ${fault.says}${at} (${code})`, {
    code: `${verb}-unwritable`,
    hint: fault.hint,
    cause: error,
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}

/** The file that the error is about. For a rename that is the target, which could not be replaced. */
function placeOf(error: unknown): string {
  if (!(error instanceof Error)) return ''
  if ('dest' in error) return ` at ${error.dest}`
  return 'path' in error ? ` at ${error.path}` : ''
}
