import { chmodSync, chownSync, existsSync, linkSync, renameSync, rmSync, statSync } from 'node:fs'
import { errorCode, StopError } from '../../base/errors.ts'
import { asidePath, keptByRestores } from '../copies/copy-names.ts'
import { renameDurably } from '../copies/whole-copy.ts'
import { closeDatabase } from '../database/close.ts'
import { isBusy, openElsewhere } from '../database/sqlite-errors.ts'
import type { Sqlite } from '../database/sqlite-types.ts'
import { identityOf, isSameFile } from '../disk/identity.ts'
import { openDatabase } from '../file/open.ts'
import { type Workspace, workspaceOf } from '../file/workspace.ts'
import { openWritableFile } from '../file/writable.ts'
import { writeError } from '../migrations/foreign-objects.ts'
import { META, NOTE_DAMAGED, readMeta, readNote } from '../sync/meta.ts'
import type { RequestsToday } from '../sync/requests-today.ts'
import { type CarriedNotes, NOTHING_CARRIED } from './carried-values.ts'

/**
 * The database that a copy replaces, taken out of use: no other program has it open. A program that had it open would
 * delete the -wal of the new database when it closes the old one. SQLite would also apply the journal of that program's
 * open transaction to the new database. So this process first leaves WAL mode, which removes the -wal and -shm files;
 * SQLite permits this only to a sole connection. Then an exclusive lock keeps other programs out during the rename.
 */
export interface CurrentDatabase {
  /** Undefined when there is no database or it cannot be read. */
  workspace: Workspace | undefined
  notes: CarriedNotes
  /** Renames a complete copy to the database's path. Returns the new path of the old database, if there was one. */
  replaceWith(part: string, mode: number): string | undefined
  /** Closes the old database. If it was not replaced, its journal mode is restored first. */
  close(): void
}

const COMPANIONS = ['', '-wal', '-shm', '-journal']

/** Removes the second hard link of the database that a restore left when it was killed between link and rename. */
export function finishEarlierSwap(database: string): void {
  const own = identityOf(database)
  if (own === undefined) return
  for (const aside of keptByRestores(database)) {
    if (isSameFile(identityOf(aside), own)) rmSync(aside)
  }
}

/**
 * @param now ms since the epoch, by this machine's clock
 * @throws StopError 73 when parley did not create the database, 75 when another program has it open
 */
export function takeOutOfUse(database: string, now: number): CurrentDatabase {
  const aside = asidePath(database, now)
  if (!existsSync(database)) return takeUnreadable(database, aside)
  try {
    return takeReadable(database, aside)
  } catch (error) {
    const fault = writeError(error, database)
    if (isDamaged(fault)) return takeUnreadable(database, aside)
    throw fault
  }
}

/** True when the file is corrupt or not a SQLite database. Such a file is renamed without being opened. */
function isDamaged(error: unknown): boolean {
  return error instanceof StopError && /^SQLITE_(NOTADB|CORRUPT)/.test(errorCode(error.cause) ?? '')
}

/** How long to wait for another program to end its transaction. */
const BUSY_TIMEOUT_MS = 5000

function takeReadable(database: string, aside: string): CurrentDatabase {
  refuseForeign(database)
  const db = openWritableFile(database, 0o600, BUSY_TIMEOUT_MS)
  try {
    const workspace = unlessDamaged(() => workspaceOf(db))
    const notes = notesIn(db)
    const journalMode = db.pragma('journal_mode', { simple: true })
    let isReplaced = false
    requireSoleUse(database, () => db.pragma('journal_mode = DELETE'))
    return {
      workspace,
      notes,
      replaceWith(part) {
        db.pragma('journal_mode = MEMORY')
        requireSoleUse(database, () => db.exec('BEGIN EXCLUSIVE'))
        copyOwnerAndMode(part, database)
        linkAside(database, aside)
        renameDurably(part, database)
        isReplaced = true
        return aside
      },
      close() {
        if (isReplaced) db.close()
        else putBackInUse(db, journalMode)
      },
    }
  } catch (error) {
    db.close()
    throw error
  }
}

function putBackInUse(db: Sqlite, journalMode: unknown): void {
  if (db.inTransaction) db.exec('ROLLBACK')
  try {
    db.pragma(`journal_mode = ${journalMode}`)
  } catch {
    // The next process that opens the database for writing sets the mode.
  }
  closeDatabase(db)
}

/**
 * Gives the old database a second name, a hard link. On a file system without hard links, the database is renamed, and
 * its path names no file until the copy is renamed.
 */
function linkAside(database: string, aside: string): void {
  try {
    linkSync(database, aside)
  } catch (error) {
    if (!/^(EPERM|ENOTSUP|EOPNOTSUPP|ENOSYS|EMLINK)$/.test(errorCode(error) ?? '')) throw error
    renameSync(database, aside)
  }
}

/** @throws StopError 75 when another program has the database open */
function requireSoleUse(database: string, work: () => unknown): void {
  try {
    work()
  } catch (error) {
    throw isBusy(error) ? openElsewhere(database, 'Nothing was changed.', error) : error
  }
}

/** Refuses a database that parley did not create. One of a newer version passes: a downgrade restores an older copy. */
function refuseForeign(database: string): void {
  try {
    openDatabase({ path: database, readonly: true }).close()
  } catch (error) {
    if (!(error instanceof StopError) || error.code !== 'database-newer') throw error
  }
}

/** A value of `sync_meta`; undefined where another program has damaged it. A restore replaces the file anyway. */
function unlessDamaged<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (error instanceof StopError && error.code === NOTE_DAMAGED) return undefined
    throw error
  }
}

function notesIn(db: Sqlite): CarriedNotes {
  const note = <T>(key: string) => unlessDamaged(() => readNote<T>(name => readMeta(db, name), key))
  return { requestsToday: note<RequestsToday>(META.requestsToday), learnedRate: note(META.learnedRate) }
}

/** For a missing or damaged database: its files are renamed without SQLite. */
function takeUnreadable(database: string, aside: string): CurrentDatabase {
  return {
    workspace: undefined,
    notes: NOTHING_CARRIED,
    replaceWith(part, mode) {
      if (existsSync(database)) copyOwnerAndMode(part, database)
      else chmodSync(part, mode)
      const files = COMPANIONS.filter(end => existsSync(`${database}${end}`))
      for (const end of files) renameSync(`${database}${end}`, `${aside}${end}`)
      renameDurably(part, database)
      return files.length === 0 ? undefined : aside
    },
    close: () => undefined,
  }
}

/** Users that could read the old database can read the new one. */
function copyOwnerAndMode(part: string, database: string): void {
  const { mode, uid, gid } = statSync(database)
  const own = statSync(part)
  if (own.uid !== uid || own.gid !== gid) chownSync(part, uid, gid)
  chmodSync(part, mode & 0o777)
}
