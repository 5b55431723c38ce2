import { accessSync, constants, existsSync, readFileSync, type Stats, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { errorCode } from '../error-code.ts'
import { EXIT_STATUS, StopError } from '../errors.ts'
import { sizeText } from '../size-text.ts'
import { openDatabase } from '../store/database/open.ts'
import type { Sqlite } from '../store/database/sqlite-types.ts'
import { refuseOtherWorkspace, type WantedWorkspace, workspaceOf } from '../store/database/workspace.ts'
import { refuseSecondName, resolvedPath } from '../store/file/path-checks.ts'
import { fileBytes, freeOnDisk } from '../store/file/size.ts'
import { octalMode } from '../store/file/writable.ts'
import { brokenReferences } from '../store/migrations/broken-references.ts'
import { appliedMigrations, newestMigration } from '../store/migrations/journal.ts'
import { ownObjects } from '../store/migrations/migrate.ts'
import { readWriter } from '../store/sync/writer-note.ts'
import { countText } from '../terminal/wording.ts'
import { createFinder, type Finder, type Finding } from './check.ts'

/** Checks of this machine and of the database. They write nothing. */

export interface MachineContext {
  database: string
  /** From the settings; undefined unless id and address are valid. */
  workspace: WantedWorkspace | undefined
  mode: number
  /** Undefined when the database does not exist or cannot be opened. */
  db: Sqlite | undefined
  /** Why the database cannot be opened. */
  openError: StopError | undefined
  version: string
  /** `engines.node` of package.json, such as `>=20.19`. */
  engines: string
  node: string
}

export type MachineCheck = (context: MachineContext) => readonly Finding[]

export const MACHINE_CHECKS: readonly MachineCheck[] = [
  nodeVersion,
  databaseFolder,
  diskSpace,
  databaseFile,
  databaseName,
  databaseWorkspace,
  fileMode,
  schemaVersion,
  quickCheck,
  foreignKeys,
  walSize,
  writer,
]

/** Opens an existing database for reading. A StopError is returned, and the check `database` reports it. */
export function openForChecks(path: string): Pick<MachineContext, 'db' | 'openError'> {
  if (!existsSync(path)) return { db: undefined, openError: undefined }
  try {
    return { db: openDatabase({ path, readonly: true }), openError: undefined }
  } catch (error) {
    if (error instanceof StopError) return { db: undefined, openError: error }
    throw error
  }
}

const DATABASE = EXIT_STATUS.databaseUnavailable

function nodeVersion({ version, engines, node }: MachineContext): Finding[] {
  const line = createFinder('version')
  const found = `parley ${version} on Node ${node}`
  const wanted = /(\d+)\.(\d+)/.exec(engines)?.slice(1).map(Number) ?? [0, 0]
  const [major = 0, minor = 0] = node.split('.').map(Number)
  const [least = 0, leastMinor = 0] = wanted
  const fits = major > least || (major === least && minor >= leastMinor)
  if (fits) return [line.ok(found)]
  return [line.wrong(`${found}, expected Node ${engines}`, EXIT_STATUS.fault, `Install Node ${engines}.`)]
}

function databaseFolder({ database }: MachineContext): Finding[] {
  const line = createFinder('database folder')
  const path = dirname(database)
  const stats = readStats(path)
  if (!stats?.isDirectory()) {
    return [
      line.wrong(
        `${path} ${stats ? 'is a file, expected a folder' : 'does not exist'}`,
        DATABASE,
        stats ? 'Change database.path.' : `Create it (mkdir -p ${path}), or change database.path.`,
      ),
    ]
  }
  try {
    accessSync(path, constants.W_OK | constants.X_OK)
  } catch {
    const hint = 'Run parley as the owner of the folder, change its owner or mode, or change database.path.'
    return [line.wrong(`${path} is not writable for this user`, DATABASE, hint)]
  }
  const open = (stats.mode & 0o002) !== 0 && (stats.mode & 0o1000) === 0
  if (!open) return [line.ok(`${path} is writable`)]
  return [line.warning(`${path} is writable for every user`, `Run chmod o-w ${path}, or use another folder.`)]
}

const MIN_SPACE = 16 * 1024 ** 2
const COMFORTABLE_SPACE = 1024 ** 3

function diskSpace({ database }: MachineContext): Finding[] {
  const line = createFinder('disk space')
  const path = dirname(database)
  if (!existsSync(path)) return []
  const free = freeOnDisk(path)
  const size = fileBytes(database)
  const found = `${sizeText(free)} free, database size ${sizeText(size)}`
  const comfortable = Math.max(COMFORTABLE_SPACE, size / 4)
  const hint = 'Delete files on this disk, or move the database to a larger one (database.path).'
  if (free < MIN_SPACE)
    return [line.wrong(`${found}; expected at least ${sizeText(MIN_SPACE)} free`, DATABASE, hint)]
  if (free > comfortable) return [line.ok(found)]
  return [line.warning(`${found}; expected more than ${sizeText(comfortable)} free`, hint)]
}

function databaseFile({ database, db, openError }: MachineContext): Finding[] {
  const line = createFinder('database')
  if (openError) return [stopFinding(line, openError)]
  if (db) return [line.ok(`${database} is a parley database`)]
  return [line.note(`${database} does not exist yet`, 'parley backfill creates it.')]
}

function databaseName({ database, db }: MachineContext): Finding[] {
  if (!db) return []
  try {
    refuseSecondName(resolvedPath(database))
    return []
  } catch (error) {
    return [stopFinding(createFinder('name'), error)]
  }
}

function databaseWorkspace({ database, db, workspace }: MachineContext): Finding[] {
  const held = db && workspaceOf(db)
  if (!db || !held) return []
  const line = createFinder('workspace of the database')
  try {
    if (workspace) refuseOtherWorkspace(db, database, workspace)
  } catch (error) {
    return [stopFinding(line, error)]
  }
  const found = `${held.id}, read from ${held.base_url}`
  if (!workspace || workspace.baseUrl === held.base_url) return [line.ok(found)]
  return [
    line.warning(
      `${found}; api.base_url is ${workspace.baseUrl}`,
      'Check that both addresses serve the same workspace.',
    ),
  ]
}

/** @throws any error that is not a StopError */
function stopFinding(line: Finder, error: unknown): Finding {
  if (!(error instanceof StopError)) throw error
  return line.wrong(error.message, error.exitStatus, error.hint ?? 'Check database.path.')
}

function fileMode({ database, mode }: MachineContext): Finding[] {
  const stats = readStats(database)
  if (!stats) return []
  const line = createFinder('database mode')
  const found = stats.mode & 0o777
  const excess = found & ~mode & 0o077
  if (excess === 0) return [line.ok(octalMode(found))]
  const hint = `The next backfill or daemon sets it to ${octalMode(mode)}. To keep the current mode, set database.mode.`
  return [
    line.warning(
      `${octalMode(found)} gives other users access, expected ${octalMode(mode)} (database.mode)`,
      hint,
    ),
  ]
}

function schemaVersion({ db, version }: MachineContext): Finding[] {
  if (!db) return []
  const line = createFinder('schema')
  const applied = appliedMigrations(db).at(-1)
  if (applied === newestMigration()) return [line.ok(`current for parley ${version}`)]
  if (applied === undefined) return [line.note('empty', 'parley backfill creates the tables.')]
  const hint = 'The next backfill or daemon migrates it. It copies a database larger than 10 MB first.'
  return [line.note(`older than parley ${version}`, hint)]
}

const DAMAGED = 'Restore a snapshot (parley restore FILE), or move the file away and run parley backfill.'

function quickCheck({ db }: MachineContext): Finding[] {
  if (!db) return []
  const line = createFinder('integrity')
  const sql = 'PRAGMA quick_check'
  const checked = runPragma(
    line,
    sql,
    () =>
      db
        .prepare(sql)
        .pluck()
        .all()
        .filter(row => row !== 'ok').length,
  )
  if ('finding' in checked) return [checked.finding]
  const faults = checked.found
  if (faults === 0) return [line.ok(`${sql} found no error`)]
  return [line.wrong(`${sql} found ${countText(faults, 'error')}`, DATABASE, DAMAGED)]
}

function foreignKeys({ db }: MachineContext): Finding[] {
  if (!db) return []
  const line = createFinder('references')
  const broken = runPragma(line, 'PRAGMA foreign_key_check', () => brokenReferences(db, ownObjects()))
  if ('finding' in broken) return [broken.finding]
  const findings = broken.found.map(({ table, isOwn, rows }) => {
    const found =
      rows === undefined
        ? `${table} has a foreign key to columns that are not unique`
        : `${table}: ${countText(rows, 'row refers', 'rows refer')} to missing rows`
    if (isOwn) return line.wrong(found, DATABASE, DAMAGED)
    return line.note(`${found}; parley did not create this table`, 'The warehouse is not affected.')
  })
  return findings.some(({ mark }) => mark === 'wrong')
    ? findings
    : [line.ok('PRAGMA foreign_key_check found no error'), ...findings]
}

/** The result of a check of the whole database, or a finding when the check cannot run. */
function runPragma<T>(line: Finder, sql: string, check: () => T): { found: T } | { finding: Finding } {
  try {
    return { found: check() }
  } catch (error) {
    const code = errorCode(error) ?? 'unknown'
    if (code.startsWith('SQLITE_BUSY'))
      return { finding: line.note(`${sql}: the database is busy`, 'Run parley doctor again.') }
    return { finding: line.wrong(`${sql} failed (${code})`, DATABASE, DAMAGED) }
  }
}

const LARGE_WAL = 512 * 1024 ** 2

function walSize({ database }: MachineContext): Finding[] {
  const stats = readStats(`${database}-wal`)
  if (!stats) return []
  const line = createFinder('write-ahead log')
  const found = sizeText(stats.size)
  if (stats.size < LARGE_WAL) return [line.ok(found)]
  return [
    line.warning(
      found,
      'A long query of another program usually keeps it from shrinking. End that query; the daemon or the next parley backfill then shrinks it.',
    ),
  ]
}

function writer({ database, db }: MachineContext): Finding[] {
  if (!db && !existsSync(`${database}-lock`)) return []
  const line = createFinder('writer')
  const holder = lockHolder(`${database}-lock`)
  const recorded = db && readWriter(db)
  if (holder === 'unknown') {
    const last = recorded
      ? `the last writer was process ${recorded.pid} (parley ${recorded.command}), started ${recorded.since}`
      : 'no earlier writer is recorded'
    return [line.note(`this system does not show whether a process holds the lock; ${last}`)]
  }
  if (holder === undefined) return [line.ok('no process holds the lock')]
  const who =
    recorded?.pid === holder ? `parley ${recorded.command} since ${recorded.since}` : 'command unknown'
  return [
    line.note(
      `process ${holder} holds the lock (${who})`,
      'A backfill or daemon cannot start until it ends.',
    ),
  ]
}

/**
 * The process that holds the lock, from /proc/locks; `unknown` where the system has no such file. This check does not
 * try to take the lock: a process that starts at that moment would fail. The device is not compared either: btrfs and
 * overlayfs show it differently in that file.
 */
function lockHolder(file: string): number | undefined | 'unknown' {
  const stats = readStats(file)
  if (!stats) return undefined
  let locks: string
  try {
    locks = readFileSync('/proc/locks', 'utf8')
  } catch {
    return 'unknown'
  }
  const holders = locks.split('\n').flatMap(text => {
    const [, pid, , inode] = / WRITE +(-?\d+) +(\S+?):(\d+) /.exec(text) ?? []
    return inode === String(stats.ino) && pid !== undefined ? [Number(pid)] : []
  })
  return holders[0]
}

function readStats(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false })
}
