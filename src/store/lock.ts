import { accessSync, constants } from 'node:fs'
import { dirname, resolve } from 'node:path'
import Database from 'better-sqlite3'
import { type Clock, isoInstant } from '../clock.ts'
import { EXIT_STATUS, StopError } from '../errors.ts'
import { identityOf, isSameFile } from './database/file-identity.ts'
import { refuseSecondName } from './database/file-names.ts'
import { applyMode, openWritableFile } from './database/writable-file.ts'
import { databaseError, isBusy, openDatabase, truePath } from './open.ts'

export interface HeldLock {
  /** When it was taken, as an instant. */
  since: string
  /** False when another file, or none, has the name of the lock by now. */
  isCurrent(): boolean
  release(): void
}

/** A process that only checks whether the lock is held has it for an instant. */
const PATIENCE_MS = 250

/** Who writes to a database, as it said itself when it took the lock. */
export interface Writer {
  pid: number
  command: string
  since: string
}

/**
 * One writer per database. The lock is an open transaction on a small file beside it, which the system ends with
 * the process, even on SIGKILL; a file with a process id in it would stay behind.
 * @param mode of the lock's file: any user who may read it could keep parley out by locking it
 * @throws StopError 73 when the database has a second name, 75 when another process holds the lock
 */
export function lockDatabase(path: string, clock: Clock, mode: number): HeldLock {
  const file = `${truePath(path)}-lock`
  let lock: Database.Database | undefined
  try {
    accessSync(dirname(resolve(path)), constants.X_OK)
    refuseSecondName(truePath(path))
    lock = openWritableFile(file, mode, PATIENCE_MS)
    applyMode([file], mode)
    // In memory, so that the transaction leaves no file of its own beside this one.
    lock.pragma('journal_mode = MEMORY')
    lock.exec('BEGIN IMMEDIATE')
  } catch (error) {
    lock?.close()
    throw isBusy(error) ? heldBy(path) : databaseError(error, path)
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
 * Whether a process holds the lock now. A lock that this process may not write is not asked, and neither is one that
 * was never made: then nobody can tell (undefined).
 */
export function isLocked(path: string): boolean | undefined {
  const file = `${truePath(path)}-lock`
  if (!mayWrite(file)) return undefined
  const lock = new Database(file, { timeout: 0, fileMustExist: true })
  try {
    lock.pragma('journal_mode = MEMORY')
    // Given up at once: who wants the lock at this very moment would find it taken.
    lock.exec('BEGIN IMMEDIATE; ROLLBACK')
    return false
  } catch (error) {
    if (isBusy(error)) return true
    throw databaseError(error, path)
  } finally {
    lock.close()
  }
}

function mayWrite(file: string): boolean {
  try {
    accessSync(file, constants.W_OK)
    return true
  } catch {
    return false
  }
}

function heldBy(path: string): StopError {
  const writer = readWriter(path)
  const who = writer
    ? `process ${writer.pid} (parley ${writer.command}) since ${writer.since}`
    : 'another process'
  return new StopError(`${path} is being written by ${who}`, {
    code: 'database-locked',
    hint: 'Only one process may write a warehouse. Wait for that one or stop it, then run this again.',
    exitStatus: EXIT_STATUS.unfinished,
  })
}

function readWriter(path: string): Writer | undefined {
  try {
    const db = openDatabase({ path, readonly: true })
    const value = db.prepare("SELECT value FROM sync_meta WHERE key = 'writer'").pluck().get()
    db.close()
    return typeof value === 'string' ? (JSON.parse(value) as Writer) : undefined
  } catch {
    // The holder may still be making the database; that it is held is news enough.
    return undefined
  }
}
