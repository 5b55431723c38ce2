import { chmodSync, chownSync, existsSync, linkSync, renameSync, rmSync, statSync } from 'node:fs'
import { EXIT_STATUS, errorCode, StopError } from '../../base/errors.ts'
import { shellWord } from '../../base/safe-text.ts'
import { asidePath, keptByRestores } from '../copies/copy-files.ts'
import { closeDatabase } from '../database/connections.ts'
import { isBusy, openElsewhere } from '../database/sqlite-errors.ts'
import type { Sqlite } from '../database/sqlite-types.ts'
import { identityOf, isSameFile } from '../disk/location.ts'
import { renameDurably } from '../disk/new-files.ts'
import { openDatabase, openWritableFile } from '../file/open.ts'
import { type Workspace, workspaceOf } from '../file/workspace.ts'
import { writeError } from '../migrations/foreign-objects.ts'
import { clearGates } from '../sync/gates.ts'
import { createMeta, META, NOTE_DAMAGED, readMeta, readNote } from '../sync/meta.ts'
import type { RequestsToday } from '../sync/requests-today.ts'
import type { Writer } from '../sync/writer-note.ts'

/**
 * The database that a copy replaces, taken out of use: no other program has it open. A program with the old database
 * open would delete the -wal of the new database when it closes the old one. SQLite would also apply the journal of
 * that program's open transaction to the new database. So this process first leaves WAL mode, which removes the -wal
 * and -shm files; SQLite permits this only to a sole connection. Then an exclusive lock keeps other programs out during
 * the rename.
 */
export interface CurrentDatabase {
  /** Undefined when there is no database or it cannot be read. */
  workspace: Workspace | undefined
  notes: CarriedNotes
  /** Renames a complete copy to the database's path. Returns the new path of the old database, if there was one. */
  replaceWith(part: string, mode: number): string | undefined
  /** Closes the old database. If no copy has replaced it, its journal mode is restored first. */
  close(): void
}

const COMPANIONS = ['', '-wal', '-shm', '-journal']

/** A restore that was killed between link and rename left a second hard link to the database. Removes that link. */
export function finishEarlierSwap(database: string): void {
  const own = identityOf(database)
  if (own === undefined) return
  for (const aside of keptByRestores(database)) {
    if (isSameFile(identityOf(aside), own)) rmSync(aside)
  }
}

/**
 * @param now ms since the epoch, by this machine's clock
 * @throws StopError, exit status 73 when parley did not create the database, 75 when another program has it open
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
  openUnlessNewer(database)
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
    // The next process that opens the database for writing sets this mode itself.
  }
  closeDatabase(db)
}

/**
 * Puts the database that has replaced another one into WAL mode. In this mode each connection holds a lock from its
 * first read until it is closed, so that the next restore finds a program that has the database open and idle.
 */
export function putInUse(database: string): void {
  putBackInUse(openWritableFile(database, 0o600, BUSY_TIMEOUT_MS), 'WAL')
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

/** @throws StopError (75) when another program has the database open */
function requireSoleUse(database: string, work: () => unknown): void {
  try {
    work()
  } catch (error) {
    throw isBusy(error) ? openElsewhere(database, 'Nothing was changed.', error) : error
  }
}

/** Refuses a database that parley did not create, before a lock file is created next to it. */
export function refuseForeign(database: string): void {
  try {
    openUnlessNewer(database)
  } catch (error) {
    if (error instanceof StopError && error.code === 'database-foreign') throw error
  }
}

/** Throws for a database that cannot be used, except of a newer version: a downgrade restores an older copy. */
function openUnlessNewer(database: string): void {
  try {
    openDatabase({ path: database, readonly: true }).close()
  } catch (error) {
    if (!(error instanceof StopError) || error.code !== 'database-newer') throw error
  }
}

/**
 * @returns the value that `read` reads from `sync_meta`; undefined when another program has damaged it. A restore
 * replaces the file anyway.
 */
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
  return {
    requestsToday: note<RequestsToday>(META.requestsToday),
    learnedRate: note(META.learnedRate),
    announcedProblems: note(META.announcedProblems),
  }
}

/** Takes a missing or damaged database out of use. Its files are renamed without SQLite. */
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

/**
 * Users that could read the old database can read the new one.
 * @throws StopError (73) when this user may not give the file away
 */
function copyOwnerAndMode(part: string, database: string): void {
  const { mode, uid, gid } = statSync(database)
  const own = statSync(part)
  try {
    if (own.uid !== uid || own.gid !== gid) chownSync(part, uid, gid)
  } catch (error) {
    throw errorCode(error) === 'EPERM' ? ownerError(database, `${uid}:${gid}`, error) : error
  }
  chmodSync(part, mode & 0o777)
}

const ownerError = (database: string, owner: string, cause: unknown) =>
  new StopError(`This user may not give the restored file the owner and group of ${database} (${owner})`, {
    code: 'restore-owner',
    hint: `Run parley restore as the user and group that this command prints: stat -c %U:%G ${shellWord(database)}. The database is unchanged.`,
    cause,
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })

/** Values of the current database that replace the older values of the copy. */
interface CarriedNotes {
  requestsToday: RequestsToday | undefined
  learnedRate: unknown
  /** The hook was called for these problems, and is still to be called when they are gone. */
  announcedProblems: unknown
}

export const NOTHING_CARRIED: CarriedNotes = {
  requestsToday: undefined,
  learnedRate: undefined,
  announcedProblems: undefined,
}

interface NoteUpdate {
  carried: CarriedNotes
  writer: Writer
  now: string
}

/**
 * Keys about the process that wrote the warehouse when it was copied. They do not apply to the restored database.
 * Without openings, the next publication compares all rows and does not rely on the changes noted in the copy.
 */
const KEYS_NOT_RESTORED = [META.daemonState, META.announcedProblems, META.publishing, META.openings]

/**
 * Updates the values in `sync_meta` of a copy that replaces the database. Call this before the copy is renamed. The copy
 * may be of any earlier version.
 */
export function updateNotes(file: string, { carried, writer, now }: NoteUpdate): void {
  const db = openWritableFile(file, 0o600)
  try {
    db.pragma('synchronous = FULL')
    const meta = createMeta(sql => db.prepare(sql))
    const end = db.prepare(
      "UPDATE sync_runs SET ended_at = ?, outcome = 'interrupted' WHERE ended_at IS NULL",
    )
    const update = db.transaction(() => {
      const requests = readNote<RequestsToday>(meta.get, META.requestsToday)
      const notes: readonly [key: string, note: unknown][] = [
        [META.writer, writer],
        [META.learnedRate, carried.learnedRate],
        [META.requestsToday, laterRequests(requests, carried.requestsToday)],
        [META.announcedProblems, carried.announcedProblems],
      ]
      for (const key of KEYS_NOT_RESTORED) meta.remove(key)
      for (const [key, note] of notes) if (note !== undefined) meta.set(key, JSON.stringify(note))
      clearGates(db)
      // Earlier versions stored a closed API here, of which an upgrade would make a gate.
      meta.remove('unreachable')
      end.run(now)
    })
    update.immediate()
  } finally {
    db.close()
  }
}

/**
 * @returns the count of the later day. For the same day: the larger count, so that the daily limit is never exceeded.
 * Pure.
 */
export function laterRequests(
  copy: RequestsToday | undefined,
  present: RequestsToday | undefined,
): RequestsToday | undefined {
  const noted = [copy, present].filter(note => note !== undefined)
  noted.sort((one, other) => one.day.localeCompare(other.day) || one.used - other.used)
  return noted.at(-1)
}
