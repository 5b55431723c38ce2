import { accessSync, constants, type Stats, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { EXIT_STATUS, errorCode, StopError } from '../base/errors.ts'
import { shellWord } from '../base/safe-text.ts'
import { sizeText } from '../base/size-text.ts'
import { BOOKKEEPING } from '../catalog/bookkeeping/tables.ts'
import { TABLES } from '../catalog/catalog.ts'
import { octalMode } from '../config/kinds.ts'
import { lacksColumns } from '../export/export-tables.ts'
import { tableNames } from '../store/database/existing-tables.ts'
import { quote } from '../store/database/sql.ts'
import { openSqlite } from '../store/database/sqlite.ts'
import { databaseFault, isBusy } from '../store/database/sqlite-errors.ts'
import type { Sqlite } from '../store/database/sqlite-types.ts'
import { fileBytes, freeOnDisk } from '../store/disk/disk-space.ts'
import { resolvedPath, SHARE_ADVICE, shareOf } from '../store/disk/location.ts'
import { holdersHint, holdersText, LARGE_WAL_BYTES, walReaders } from '../store/disk/lock-holders.ts'
import { databaseStats, openDatabase, refuseSecondName } from '../store/file/open.ts'
import { refuseOtherWorkspace, type WantedWorkspace, workspaceOf } from '../store/file/workspace.ts'
import {
  brokenReferences,
  deadObjectErrors,
  foreignObjects,
  indicesOf,
  ownIndices,
  ownObjects,
} from '../store/migrations/foreign-objects.ts'
import { appliedMigrations, newestMigration } from '../store/migrations/journal.ts'
import { takenNameErrors } from '../store/migrations/migrate.ts'
import type { ReportConfig } from '../store/reporting/report-settings.ts'
import { lostFileError } from '../store/status/status.ts'
import { countText } from '../terminal/wording.ts'
import { exportFindings } from './exports.ts'
import { type CheckFindings, type Finding, findingsOf } from './finding.ts'
import { reportFindings } from './report-settings.ts'
import { writeLockFindings, writerFinding } from './writer.ts'

/** Checks of this machine and of the database. They change no data. */

export interface MachineContext {
  database: string
  /** The workspace in the settings; undefined unless its id and address are valid. */
  workspace: WantedWorkspace | undefined
  mode: number
  /** What the settings say about reports. */
  reports: ReportConfig
  /** Undefined when the database does not exist or cannot be opened. */
  db: Sqlite | undefined
  openError: StopError | undefined
  version: string
  /** `engines.node` of package.json, such as `^20.19 || >=22`. */
  engines: string
  node: string
}

interface MachineCheck {
  name: string
  find(context: MachineContext, line: CheckFindings): Iterable<Finding>
}

/** A check of the database's content. It is left out while no database exists, as before the first backfill. */
interface ContentCheck {
  name: string
  findIn(db: Sqlite, line: CheckFindings, context: MachineContext): Iterable<Finding>
}

const CHECKS: readonly (MachineCheck | ContentCheck)[] = [
  { name: 'version', find: nodeVersion },
  { name: 'SQLite', find: sqliteVersion },
  { name: 'database folder', find: databaseFolder },
  { name: 'file system', find: fileSystem },
  { name: 'disk space', find: diskSpace },
  { name: 'database', find: databaseFile },
  { name: 'name', find: databaseName },
  { name: 'workspace of the database', findIn: databaseWorkspace },
  { name: 'database mode', find: fileMode },
  { name: 'schema', findIn: schemaVersion },
  { name: 'columns', findIn: missingColumns },
  { name: 'integrity', findIn: quickCheck },
  { name: 'references', findIn: foreignKeys },
  { name: 'triggers', findIn: foreignTriggers },
  { name: 'write-ahead log', find: walSize },
  { name: 'exports', findIn: exportFindings },
  { name: 'reports', findIn: reportFindings },
  { name: 'writer', find: writerFindings },
]

/** When a check throws an error, its finding reports that it did not run, and the other checks still run. */
export function* checkMachine(context: MachineContext): Generator<Finding> {
  for (const check of CHECKS) {
    const line = findingsOf(check.name)
    try {
      if ('find' in check) yield* check.find(context, line)
      else if (context.db) yield* check.findIn(context.db, line, context)
      else if (context.openError) yield line.note(NOT_OPENED)
    } catch (error) {
      yield uncheckedFinding(line, error, context)
    }
  }
}

const NOT_OPENED = 'not checked: the database cannot be opened'

/**
 * The finding of a check that could not run. When the database cannot be opened, that is usually the reason, and
 * the check `database` reports it.
 */
export function uncheckedFinding(
  line: CheckFindings,
  error: unknown,
  { database, openError }: Pick<MachineContext, 'database' | 'openError'>,
): Finding {
  if (isBusy(error)) return line.note('not checked: the database is busy', 'Run parley doctor again.')
  if (openError && error instanceof StopError) return line.note(NOT_OPENED)
  const { problem, status, hint } = problemOf(error, database)
  const found = `not checked: ${problem}`
  return openError ? line.note(found) : line.wrong(found, status, hint)
}

function problemOf(error: unknown, database: string) {
  if (error instanceof StopError) {
    const { message, exitStatus, hint = 'Run parley doctor again.' } = error
    return { problem: message, status: exitStatus, hint }
  }
  const code = errorCode(error) ?? (error instanceof Error ? error.name : typeof error)
  const fault = databaseFault(code, database)
  if (fault) return { problem: `${fault.problem} (${code})`, status: DATABASE, hint: fault.hint }
  // parley stores some values as JSON. A SyntaxError means that another program changed one.
  const isOfContent = code.startsWith('SQLITE_') || error instanceof SyntaxError
  if (isOfContent)
    return { problem: `the database cannot be read (${code})`, status: DATABASE, hint: DAMAGED }
  return { problem: `internal error (${code})`, status: EXIT_STATUS.fault, hint: 'Please report this error.' }
}

/** Opens an existing database for reading. A StopError is returned, and the check `database` reports it. */
export function openForChecks(path: string): Pick<MachineContext, 'db' | 'openError'> {
  try {
    if (databaseStats(path) === undefined) return { db: undefined, openError: undefined }
    return { db: openDatabase({ path, readonly: true }), openError: undefined }
  } catch (error) {
    if (error instanceof StopError) return { db: undefined, openError: error }
    throw error
  }
}

const DATABASE = EXIT_STATUS.databaseUnavailable

function nodeVersion({ version, engines, node }: MachineContext, line: CheckFindings): Finding[] {
  const found = `parley ${version} on Node ${node}`
  if (isInRange(node, engines)) return [line.ok(found)]
  return [line.wrong(`${found}, expected Node ${engines}`, EXIT_STATUS.fault, `Install Node ${engines}.`)]
}

/** @param range alternatives such as `^20.19 || >=22`: at least that version, with a caret of the same major version */
function isInRange(version: string, range: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return range.split('||').some(alternative => {
    const [least = 0, leastMinor = 0] = alternative
      .replace(/[^\d.]/g, '')
      .split('.')
      .map(Number)
    if (major === least) return minor >= leastMinor
    return major > least && !alternative.includes('^')
  })
}

function sqliteVersion(_context: MachineContext, line: CheckFindings): Finding[] {
  try {
    const db = openSqlite(':memory:')
    const version = db.prepare('SELECT sqlite_version()').pluck().get()
    db.close()
    return [line.ok(`version ${version}`)]
  } catch (error) {
    if (!(error instanceof StopError)) throw error
    return [line.wrong(error.message, error.exitStatus, error.hint ?? '')]
  }
}

function databaseFolder({ database }: MachineContext, line: CheckFindings): Finding[] {
  const path = dirname(database)
  const stats = readStats(path)
  if (!stats?.isDirectory()) {
    return [
      line.wrong(
        `${path} ${stats ? 'is a file, expected a folder' : 'does not exist'}`,
        DATABASE,
        stats ? 'Change database.path.' : `Create it (mkdir -p ${shellWord(path)}), or change database.path.`,
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
  return [
    line.warning(
      `${path} is writable for every user`,
      `Run chmod o-w ${shellWord(path)}, or use another folder.`,
    ),
  ]
}

function fileSystem({ database }: MachineContext, line: CheckFindings): Finding[] {
  const share = shareOf(database)
  return share === undefined ? [] : [line.warning(`${database} is on ${share}`, SHARE_ADVICE)]
}

const MIN_SPACE = 16 * 1024 ** 2
const COMFORTABLE_SPACE = 1024 ** 3

function diskSpace({ database }: MachineContext, line: CheckFindings): Finding[] {
  const path = dirname(database)
  if (!readStats(path)) return [line.note(`not checked: ${path} does not exist`)]
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

export function databaseFile(
  { database, db, openError }: Pick<MachineContext, 'database' | 'db' | 'openError'>,
  line: CheckFindings,
): Finding[] {
  if (openError) return [stopFinding(line, openError)]
  if (db && isEmpty(db))
    return [line.note(`${database} is empty`, 'parley backfill or parley daemon creates the tables.')]
  if (db) return [line.ok(`${database} is a parley database`)]
  const lost = lostFileError(database)
  if (lost) return [stopFinding(line, lost)]
  return [line.note(`${database} does not exist yet`, 'parley backfill or parley daemon creates it.')]
}

/** Whether the file has none of parley's tables, as for a moment at the start of a first backfill. */
export const isEmpty = (db: Sqlite): boolean =>
  appliedMigrations(db).length === 0 && missingTables(db).length === OWN_TABLES.length

function databaseName({ database, openError }: MachineContext, line: CheckFindings): Finding[] {
  try {
    refuseSecondName(resolvedPath(database))
    return []
  } catch (error) {
    return [openError ? line.note(NOT_OPENED) : stopFinding(line, error)]
  }
}

function databaseWorkspace(
  db: Sqlite,
  line: CheckFindings,
  { database, workspace }: MachineContext,
): Finding[] {
  const held = workspaceOf(db)
  if (!held) return []
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

function foreignTriggers(db: Sqlite, line: CheckFindings, { database }: MachineContext): Finding[] {
  const dead = deadObjectErrors(db, database).map(error => stopFinding(line, error))
  const triggers = foreignObjects(db).filter(({ type }) => type === 'trigger')
  if (triggers.length === 0) return dead
  const names = triggers.map(({ name, table }) => `${name} on ${table}`).join(', ')
  const found = `parley did not create ${names}`
  return [
    ...dead,
    line.note(found, 'They run with each of its writes: one that fails or is slow stops the sync.'),
  ]
}

/** @throws the error when it is not a StopError */
function stopFinding(line: CheckFindings, error: unknown): Finding {
  if (!(error instanceof StopError)) throw error
  return line.wrong(error.message, error.exitStatus, error.hint ?? 'Check database.path.')
}

function fileMode({ database, mode }: MachineContext, line: CheckFindings): Finding[] {
  const stats = databaseStats(database)
  if (!stats) return []
  try {
    accessSync(database, constants.W_OK)
  } catch {
    const hint = 'Run parley as the owner of the database, or change its owner or mode.'
    return [line.wrong(`${database} is not writable for this user`, DATABASE, hint)]
  }
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

/** The tables of this version, without the typed ones of CRM objects. */
const OWN_TABLES: readonly string[] = [...TABLES.keys(), ...BOOKKEEPING.map(({ name }) => name)]

function missingTables(db: Sqlite): string[] {
  const present = tableNames(db)
  return OWN_TABLES.filter(name => !present.has(name))
}

/** A version may have new columns without a migration: those of views and of the tables for reports. */
function missingColumns(db: Sqlite, line: CheckFindings, { version }: MachineContext): Finding[] {
  if (appliedMigrations(db).at(-1) !== newestMigration() || !lacksColumns(db)) return []
  return [line.note(`older than parley ${version}`, 'The next backfill or daemon brings them up to date.')]
}

function schemaVersion(db: Sqlite, line: CheckFindings, { version, database }: MachineContext): Finding[] {
  const applied = appliedMigrations(db).at(-1)
  const missing = missingTables(db)
  if (applied === newestMigration()) {
    if (missing.length === 0)
      return [line.ok(`current for parley ${version}`), ...missingIndices(db, line, database)]
    return [line.wrong(`missing tables: ${missing.join(', ')}`, DATABASE, DAMAGED)]
  }
  if (isEmpty(db)) return []
  if (applied === undefined)
    return [line.wrong('the list of applied migrations is missing', DATABASE, DAMAGED)]
  const hint = 'The next backfill or daemon migrates it. It copies a database larger than 10 MB first.'
  const taken = takenNameErrors(db, database).map(error => stopFinding(line, error))
  return [line.note(`older than parley ${version}`, hint), ...taken]
}

/**
 * Finds missing indices: migrations create them only once. Without a unique index, writes fail; without any other,
 * reads are slow.
 */
function missingIndices(db: Sqlite, line: CheckFindings, database: string): Finding[] {
  const present = indicesOf(db)
  return [...ownIndices()].flatMap(([name, sql]) => {
    if (present.has(name)) return []
    const found = `the index ${name} is missing`
    const hint = `Create it again: ${sqliteCommand(database, sql)}`
    return sql.startsWith('CREATE UNIQUE') ? line.wrong(found, DATABASE, hint) : line.note(found, hint)
  })
}

/** A command for a shell, whatever characters the path and the names in the SQL have. */
function sqliteCommand(database: string, sql: string): string {
  const words = [resolvedPath(database), sql].map(word =>
    /^[\w./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`,
  )
  return `sqlite3 ${words.join(' ')}`
}

const DAMAGED =
  'Stop the daemon if it runs. Then restore a snapshot with parley restore FILE, or move the file away and run parley backfill.'

/**
 * A fault of an index alone, which REINDEX repairs. REINDEX cannot repair a damaged page, since SQLite cannot free it.
 */
const OF_INDEX = /^(?:wrong # of entries in|row \d+ missing from|non-unique entry in) index (\S+)$/

function quickCheck(db: Sqlite, line: CheckFindings, { database }: MachineContext): Finding[] {
  const sql = 'PRAGMA quick_check'
  const faults = db
    .prepare<unknown[], string>(sql)
    .pluck()
    .all()
    .filter(row => row !== 'ok')
  if (faults.length === 0) return [line.ok(`${sql} found no error`)]
  const ofSearch = databaseFault('SQLITE_CORRUPT_VTAB', database)
  if (ofSearch && faults.every(fault => /fts5/i.test(fault) && fault.includes('search_')))
    return [line.wrong(ofSearch.problem, DATABASE, ofSearch.hint)]
  const indices = faults.map(fault => OF_INDEX.exec(fault)?.[1])
  const [name, ...others] = new Set(indices)
  if (name !== undefined && others.length === 0)
    return [
      line.wrong(
        `the index ${name} does not fit its table`,
        DATABASE,
        `The rows are not affected. Build it again: ${sqliteCommand(database, `REINDEX ${quote(name)}`)}`,
      ),
    ]
  return [line.wrong(`${sql} found ${countText(faults.length, 'error')}`, DATABASE, DAMAGED)]
}

function foreignKeys(db: Sqlite, line: CheckFindings): Finding[] {
  const findings = brokenReferences(db, ownObjects()).map(({ table, isOwn, rows }) => {
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

/**
 * The size that is reported without a known reader. Below it, the WAL may be that of a rebuild, which the next commit
 * shrinks.
 */
const VERY_LARGE_WAL = 2 * LARGE_WAL_BYTES

function walSize({ database }: MachineContext, line: CheckFindings): Finding[] {
  const stats = readStats(`${database}-wal`)
  if (!stats) return []
  const found = sizeText(stats.size)
  const readers = stats.size < LARGE_WAL_BYTES ? [] : walReaders(database)
  if (readers.length === 0 && stats.size < VERY_LARGE_WAL) return [line.ok(found)]
  const reader = holdersText(readers, 'another program, usually with a long query')
  const hint = holdersHint(readers, 'End that query; the daemon or the next parley backfill then shrinks it.')
  return [line.warning(`${found}; it is kept from shrinking by ${reader}`, hint)]
}

function writerFindings(context: MachineContext, line: CheckFindings): Finding[] {
  const { database, db, openError } = context
  const isInUse = db !== undefined || openError !== undefined || readStats(`${database}-lock`) !== undefined
  return isInUse ? [writerFinding(context, line), ...writeLockFindings(database, line)] : []
}

function readStats(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false })
}
