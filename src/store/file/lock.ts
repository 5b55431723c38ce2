import { accessSync, constants, lstatSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { type Clock, isoInstant } from '../../base/clock.ts'
import { EXIT_STATUS, StopError } from '../../base/errors.ts'
import { openSqlite } from '../database/sqlite.ts'
import { databaseError, isBusy, unlockableError } from '../database/sqlite-errors.ts'
import type { Sqlite } from '../database/sqlite-types.ts'
import { identityOf, isSameFile, resolvedPath } from '../disk/location.ts'
import { holdersHint, holdersText, type LockHolder, lockHolders } from '../disk/lock-holders.ts'
import { readWriter, type Writer, writerText } from '../sync/writer-note.ts'
import { applyMode, openWritableFile, readDatabase, refuseSecondName } from './open.ts'

export interface HeldLock {
  /** When the lock was taken: an RFC 3339 instant. */
  since: string
  /** False when the path of the lock file now names another file or none. */
  isCurrent(): boolean
  release(): void
}

/** How long to wait for the lock: `isLocked` of another process holds it for a moment. */
const PATIENCE_MS = 250

/**
 * Takes the lock that allows one writer per database. The lock is an open transaction on the small SQLite file
 * `<database>-lock`. The system releases it when the process ends, even on SIGKILL; a PID file would stay behind.
 * @param mode permission bits of the database
 * @throws StopError, exit status 73 when the database or the lock has a second name, 75 when another process holds the
 * lock
 */
export function lockDatabase(path: string, clock: Clock, mode: number): HeldLock {
  const file = `${resolvedPath(path)}-lock`
  let lock: Sqlite | undefined
  try {
    refuseSecondName(resolvedPath(path))
    accessSync(dirname(resolve(path)), constants.X_OK)
    refuseLinkedLock(file)
    lock = openWritableFile(file, lockMode(mode), PATIENCE_MS)
    // With the journal in memory, the open transaction creates no journal file.
    lock.pragma('journal_mode = MEMORY')
    lock.exec('BEGIN IMMEDIATE')
    // The check is repeated before chmod: a link put there meanwhile would give other users access to its target.
    refuseLinkedLock(file)
    applyMode([file], lockMode(mode))
  } catch (error) {
    lock?.close()
    throw isBusy(error) ? lockedError(path, clock.now()) : databaseError(error, path)
  }
  const held = lock
  const locked = identityOf(file)
  return {
    since: isoInstant(clock.now()),
    isCurrent: () => isSameFile(locked, identityOf(file)),
    release: () => held.close(),
  }
}

/**
 * Mode of the lock file. Users who may only read the database get no access: a user who may read the lock file can lock
 * it and so stop parley.
 */
const lockMode = (mode: number): number => (mode & 0o222) | ((mode & 0o222) << 1)

/**
 * Whether a process holds the lock. Undefined when that cannot be determined: the lock file does not exist, or this
 * process may not write it.
 */
export function isLocked(path: string): boolean | undefined {
  const file = `${resolvedPath(path)}-lock`
  if (!mayWrite(file)) return undefined
  const lock = openSqlite(file, { timeout: 0, fileMustExist: true })
  try {
    lock.pragma('journal_mode = MEMORY')
    // The lock is released at once, since until then a process that starts to write would find it held.
    lock.exec('BEGIN IMMEDIATE; ROLLBACK')
    return false
  } catch (error) {
    if (isBusy(error)) return true
    throw databaseError(error, path)
  } finally {
    lock.close()
  }
}

/** Refuses a lock file that is a link or has a second name. A folder passes: SQLite refuses it. */
function refuseLinkedLock(file: string): void {
  const found = lstatSync(file, { throwIfNoEntry: false })
  if (found === undefined || found.isDirectory() || (found.isFile() && found.nlink === 1)) return
  throw new StopError(
    `${file} is a symbolic link or has a second hard link; expected a lock file of parley`,
    {
      code: 'lock-linked',
      hint: 'Find out which user has put it there, then remove it.',
      exitStatus: EXIT_STATUS.databaseUnavailable,
    },
  )
}

function mayWrite(file: string): boolean {
  try {
    accessSync(file, constants.W_OK)
    return true
  } catch {
    return false
  }
}

function lockedError(path: string, now: number): StopError {
  const recorded = writerAt(path)
  const holders = lockHolders(path, 'writer') ?? []
  const unlockable = holders.length === 0 ? unlockableError(path) : undefined
  if (unlockable) return unlockable
  const advice =
    holders.length > 0
      ? 'Wait for that process or stop it.'
      : 'Wait for that process or stop it. If it no longer exists, parley doctor shows the process that holds the lock.'
  return new StopError(`${path} is being written by ${holderName(holders[0], recorded, now)}`, {
    code: 'database-locked',
    hint: `Only one process may write a warehouse. ${holdersHint(holders, advice)}`,
    exitStatus: EXIT_STATUS.unfinished,
  })
}

function holderName(holder: LockHolder | undefined, recorded: Writer | undefined, now: number): string {
  const writer = writerText(recorded, now)
  if (holder === undefined) return writer
  if (recorded?.pid !== holder.pid) return holdersText([holder], '')
  return holder.isHalted ? `${writer}, which is ${holder.state}` : writer
}

function writerAt(path: string): Writer | undefined {
  try {
    return readDatabase({ path }, readWriter)
  } catch {
    // The holder may still be creating the database. The message then names no process.
    return undefined
  }
}
