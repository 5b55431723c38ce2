import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { isoInstant } from '../clock.ts'
import { EXIT_STATUS, StopError } from '../errors.ts'
import { identityOf, isSameFile } from './database/file-identity.ts'
import { type Workspace, workspaceOf } from './database/workspace.ts'
import { openWritableFile } from './database/writable-file.ts'
import { databaseError, isBusy, openDatabase, type Sqlite } from './open.ts'
import { type Carried, NOTHING_CARRIED } from './restore-claim.ts'
import { META } from './state.ts'
import { bringToDisk } from './whole-copy.ts'

/**
 * The database that a copy is to replace, taken out of use. A program that still had it open would, when it closes it,
 * delete the -wal of the new one by its name; and what such a program had begun to write would be rolled back in the new
 * one. So SQLite gives up the -wal and -shm, which it only does for the last connection, and locks everyone else out
 * while the names change.
 */
export interface Present {
  /** Undefined where there is no database, or it cannot be read. */
  workspace: Workspace | undefined
  notes: Carried
  /** Gives a whole copy the database's name. Returns the name that the database from before has then. */
  replaceWith(part: string, mode: number): string | undefined
  close(): void
}

/** `parley.db-before-restore-2026-01-31T034700Z` */
function asideOf(database: string, now: number): string {
  const name = `${database}-before-restore-${isoInstant(now).replace(/:|\.\d+/g, '')}`
  return existsSync(name) ? asideOf(database, now + 1000) : name
}

const COMPANIONS = ['', '-wal', '-shm', '-journal']

const ASIDE = /^-before-restore-\d{4}-\d\d-\d\dT\d{6}Z(-wal|-shm|-journal)?$/

/** Paths of what earlier restores have kept of this database. */
export function keptByRestores(database: string): string[] {
  const [folder, name] = [dirname(database), basename(database)]
  return readdirSync(folder)
    .filter(one => one.startsWith(name) && ASIDE.test(one.slice(name.length)))
    .map(one => join(folder, one))
}

/** One that was killed between its two steps has left the database with a second name. */
export function finishEarlierSwap(database: string): void {
  const own = identityOf(database)
  if (own === undefined) return
  for (const aside of keptByRestores(database)) {
    if (isSameFile(identityOf(aside), own)) rmSync(aside)
  }
}

/**
 * @param now by this machine's clock, in ms since the epoch
 * @throws StopError 73 where the database is not parley's, 75 where another program has it open
 */
export function takePresent(database: string, now: number): Present {
  const aside = asideOf(database, now)
  if (!existsSync(database)) return unreadable(database, aside)
  try {
    return readable(database, aside)
  } catch (error) {
    const fault = databaseError(error, database)
    if (isDamaged(fault)) return unreadable(database, aside)
    throw fault
  }
}

/** For what it is, see DATABASE_FAULTS. */
function isDamaged(error: unknown): boolean {
  const { cause } = error instanceof StopError ? error : {}
  return cause instanceof Error && 'code' in cause && /^SQLITE_(NOTADB|CORRUPT)/.test(String(cause.code))
}

/** So long another program may take to end what it does. */
const PATIENCE_MS = 5000

function readable(database: string, aside: string): Present {
  refuseForeign(database)
  const db = openWritableFile(database, 0o600, PATIENCE_MS)
  try {
    const workspace = workspaceOf(db)
    const notes = notesIn(db)
    onlyFor(database, () => db.pragma('journal_mode = DELETE'))
    return {
      workspace,
      notes,
      replaceWith(part) {
        db.pragma('journal_mode = MEMORY')
        onlyFor(database, () => db.exec('BEGIN EXCLUSIVE'))
        likeBefore(part, database)
        giveSecondName(database, aside)
        takeName(part, database)
        return aside
      },
      close: () => db.close(),
    }
  } catch (error) {
    db.close()
    throw error
  }
}

/** Where a file system has no hard links there is an instant without a database. */
function giveSecondName(database: string, aside: string): void {
  try {
    linkSync(database, aside)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    if (!/^(EPERM|ENOTSUP|EOPNOTSUPP|ENOSYS|EMLINK)$/.test(code)) throw error
    renameSync(database, aside)
  }
}

/** @throws StopError 75 when another connection keeps SQLite from it */
function onlyFor(database: string, work: () => unknown): void {
  try {
    work()
  } catch (error) {
    if (!isBusy(error)) throw error
    throw new StopError(`Another program has ${database} open`, {
      code: 'database-busy',
      hint: 'Close it there, such as in an sqlite3 shell or in Datasette, then run this again. Nothing was changed.',
      cause: error,
      exitStatus: EXIT_STATUS.unfinished,
    })
  }
}

/** One of a newer version may be replaced: an older program does so on the way back. */
function refuseForeign(database: string): void {
  try {
    openDatabase({ path: database, readonly: true }).close()
  } catch (error) {
    if (!(error instanceof StopError) || error.code !== 'database-newer') throw error
  }
}

function notesIn(db: Sqlite): Carried {
  if (!db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'sync_meta'").get()) return NOTHING_CARRIED
  const meta = db.prepare('SELECT value FROM sync_meta WHERE key = ?').pluck()
  const value = (key: string) => meta.get(key) as string | undefined
  return { requestsToday: value(META.requestsToday), learnedRate: value(META.learnedRate) }
}

/** Nothing can be asked of SQLite: what is there is moved away as it is. */
function unreadable(database: string, aside: string): Present {
  return {
    workspace: undefined,
    notes: NOTHING_CARRIED,
    replaceWith(part, mode) {
      if (existsSync(database)) likeBefore(part, database)
      else chmodSync(part, mode)
      const files = COMPANIONS.filter(end => existsSync(`${database}${end}`))
      for (const end of files) renameSync(`${database}${end}`, `${aside}${end}`)
      takeName(part, database)
      return files.length === 0 ? undefined : aside
    },
    close: () => undefined,
  }
}

/** The users who could read the old database can read the new one. */
function likeBefore(part: string, database: string): void {
  const { mode, uid, gid } = statSync(database)
  const own = statSync(part)
  if (own.uid !== uid || own.gid !== gid) chownSync(part, uid, gid)
  chmodSync(part, mode & 0o777)
}

function takeName(part: string, database: string): void {
  renameSync(part, database)
  bringToDisk(dirname(database))
}
