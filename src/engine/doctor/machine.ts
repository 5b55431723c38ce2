import { accessSync, constants, existsSync, readFileSync, type Stats, statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { EXIT_STATUS, StopError } from '../../errors.ts'
import { sizeText } from '../../size-text.ts'
import { refuseSecondName } from '../../store/database/file-names.ts'
import { brokenReferences } from '../../store/database/references.ts'
import { refuseOtherWorkspace, type WantedWorkspace, workspaceOf } from '../../store/database/workspace.ts'
import { appliedMigrations, newestMigration, ownObjects } from '../../store/migrate.ts'
import { openDatabase, type Sqlite, truePath } from '../../store/open.ts'
import { type Finding, finder } from './check.ts'

/** Checks of this machine and of the database. Nothing is written. */

export interface MachineContext {
  database: string
  /** Of the settings; undefined where these are wrong. */
  workspace: WantedWorkspace | undefined
  mode: number
  /** undefined where there is no database yet or it cannot be opened. */
  db: Sqlite | undefined
  /** Why it cannot be opened. */
  trouble: StopError | undefined
  version: string
  /** `node` of the package's engines, such as `>=20.19`. */
  engines: string
  node: string
}

export type MachineCheck = (context: MachineContext) => readonly Finding[]

export const MACHINE_CHECKS: readonly MachineCheck[] = [
  nodeVersion,
  folder,
  diskSpace,
  databaseOpens,
  oneName,
  workspaceHeld,
  fileMode,
  schemaVersion,
  quickCheck,
  foreignKeys,
  logSize,
  writer,
]

/** Opens the database for reading where there is one; a fault is kept for the check that tells of it. */
export function lookAtDatabase(path: string): Pick<MachineContext, 'db' | 'trouble'> {
  if (!existsSync(path)) return { db: undefined, trouble: undefined }
  try {
    return { db: openDatabase({ path, readonly: true }), trouble: undefined }
  } catch (error) {
    if (error instanceof StopError) return { db: undefined, trouble: error }
    throw error
  }
}

const DATABASE = EXIT_STATUS.databaseUnavailable

function nodeVersion({ version, engines, node }: MachineContext): Finding[] {
  const line = finder('version')
  const found = `parley ${version} on Node ${node}`
  const wanted = /(\d+)\.(\d+)/.exec(engines)?.slice(1).map(Number) ?? [0, 0]
  const [major = 0, minor = 0] = node.split('.').map(Number)
  const [least = 0, leastMinor = 0] = wanted
  const fits = major > least || (major === least && minor >= leastMinor)
  if (fits) return [line.ok(found)]
  return [line.wrong(`${found}; it needs ${engines}`, EXIT_STATUS.fault, `Install Node ${engines}.`)]
}

function folder({ database }: MachineContext): Finding[] {
  const line = finder('database folder')
  const path = dirname(database)
  const stats = statOf(path)
  if (!stats?.isDirectory()) {
    return [
      line.wrong(`${path} is no folder`, DATABASE, `Make it (mkdir -p ${path}), or change database.path.`),
    ]
  }
  try {
    accessSync(path, constants.W_OK | constants.X_OK)
  } catch {
    const hint = 'Run parley as the user that owns it, change its owner or mode, or change database.path.'
    return [line.wrong(`${path} cannot be written by this user`, DATABASE, hint)]
  }
  const open = (stats.mode & 0o002) !== 0 && (stats.mode & 0o1000) === 0
  if (!open) return [line.ok(`${path} can be written`)]
  return [
    line.warning(`${path} can be written by everybody`, `Run chmod o-w ${path}, or use a folder of its own.`),
  ]
}

const LEAST_SPACE = 16 * 1024 ** 2
const COMFORTABLE_SPACE = 1024 ** 3

function diskSpace({ database }: MachineContext): Finding[] {
  const line = finder('disk space')
  const path = dirname(database)
  if (!existsSync(path)) return []
  const { bavail, bsize } = statfsSync(path)
  const free = bavail * bsize
  const size = statOf(database)?.size ?? 0
  const found = `${sizeText(free)} free, the database has ${sizeText(size)}`
  if (free < LEAST_SPACE) return [line.wrong(found, DATABASE, 'Free some space, or move the database.')]
  if (free > Math.max(COMFORTABLE_SPACE, size / 4)) return [line.ok(found)]
  return [line.warning(found, 'Free some space before the disk is full; a backfill can need several GB.')]
}

function databaseOpens({ database, db, trouble }: MachineContext): Finding[] {
  const line = finder('database')
  if (trouble)
    return [line.wrong(trouble.message, trouble.exitStatus, trouble.hint ?? 'Check database.path.')]
  if (db) return [line.ok(`${database} is a parley database`)]
  return [line.note(`${database} is not there yet`, 'parley backfill makes it.')]
}

function oneName({ database, db }: MachineContext): Finding[] {
  if (!db) return []
  try {
    refuseSecondName(truePath(database))
    return []
  } catch (error) {
    if (!(error instanceof StopError)) throw error
    return [finder('name').wrong(error.message, error.exitStatus, error.hint ?? 'Check database.path.')]
  }
}

function workspaceHeld({ database, db, workspace }: MachineContext): Finding[] {
  const held = db && workspaceOf(db)
  if (!db || !held) return []
  const line = finder('workspace of the database')
  try {
    if (workspace) refuseOtherWorkspace(db, database, workspace)
  } catch (error) {
    if (!(error instanceof StopError)) throw error
    return [line.wrong(error.message, error.exitStatus, error.hint ?? 'Check database.path.')]
  }
  const found = `${held.id}, read from ${held.base_url}`
  if (!workspace || workspace.baseUrl === held.base_url) return [line.ok(found)]
  return [
    line.warning(
      `${found}; api.base_url is ${workspace.baseUrl}`,
      'Make sure that it is the same workspace.',
    ),
  ]
}

function fileMode({ database, mode }: MachineContext): Finding[] {
  const stats = statOf(database)
  if (!stats) return []
  const line = finder('database mode')
  const found = stats.mode & 0o777
  const excess = found & ~mode & 0o077
  if (excess === 0) return [line.ok(octal(found))]
  const hint = `The next backfill or daemon sets it to ${octal(mode)}; set database.mode where it is to stay.`
  return [line.warning(`${octal(found)} lets others in; database.mode is ${octal(mode)}`, hint)]
}

function schemaVersion({ db, version }: MachineContext): Finding[] {
  if (!db) return []
  const line = finder('schema')
  const applied = appliedMigrations(db).at(-1)
  if (applied === newestMigration()) return [line.ok(`as parley ${version} wants it`)]
  if (applied === undefined) return [line.note('empty', 'parley backfill makes the tables.')]
  const hint =
    'The next backfill or daemon brings it up to date, after a copy beside it when it is larger than 10 MB.'
  return [line.note(`older than parley ${version}`, hint)]
}

const DAMAGED =
  'Restore a snapshot (parley restore FILE), or move the file away and read everything again with parley backfill.'

function quickCheck({ db }: MachineContext): Finding[] {
  if (!db) return []
  const line = finder('integrity')
  const sql = 'PRAGMA quick_check'
  const checked = withFaults(
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
  if (faults === 0) return [line.ok(`${sql}: no fault`)]
  return [line.wrong(`${sql}: ${faults} ${faults === 1 ? 'fault' : 'faults'}`, DATABASE, DAMAGED)]
}

function foreignKeys({ db }: MachineContext): Finding[] {
  if (!db) return []
  const line = finder('references')
  const broken = withFaults(line, 'PRAGMA foreign_key_check', () => brokenReferences(db, ownObjects()))
  if ('finding' in broken) return [broken.finding]
  const findings = broken.found.map(({ table, isOwn, rows }) => {
    const found =
      rows === undefined
        ? `${table} refers to columns that are no key`
        : `${table}: ${rows} ${rows === 1 ? 'row refers' : 'rows refer'} to rows that are not there`
    if (isOwn) return line.wrong(found, DATABASE, DAMAGED)
    return line.note(`${found}; parley did not make this table`, 'The warehouse is not affected by it.')
  })
  return findings.some(({ mark }) => mark === 'wrong')
    ? findings
    : [line.ok('PRAGMA foreign_key_check: no fault'), ...findings]
}

/** What a check of the whole database found, or why it could not be made. */
function withFaults<T>(
  line: ReturnType<typeof finder>,
  sql: string,
  check: () => T,
): { found: T } | { finding: Finding } {
  try {
    return { found: check() }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
    if (code.startsWith('SQLITE_BUSY'))
      return { finding: line.note(`${sql}: the database is busy`, 'Run this again.') }
    return { finding: line.wrong(`${sql} failed (${code})`, DATABASE, DAMAGED) }
  }
}

const LARGE_WAL = 512 * 1024 ** 2

function logSize({ database }: MachineContext): Finding[] {
  const stats = statOf(`${database}-wal`)
  if (!stats) return []
  const line = finder('write-ahead log')
  const found = sizeText(stats.size)
  if (stats.size < LARGE_WAL) return [line.ok(found)]
  return [
    line.warning(
      found,
      'A program that keeps reading holds it open: end long queries, then run parley backfill.',
    ),
  ]
}

function writer({ database, db }: MachineContext): Finding[] {
  if (!db && !existsSync(`${database}-lock`)) return []
  const line = finder('writer')
  const holder = lockHolder(`${database}-lock`)
  const said = db && lastWriter(db)
  if (holder === 'unknown') {
    const last = said
      ? `process ${said.pid} (parley ${said.command}) since ${said.since} was the last`
      : 'unknown'
    return [line.note(`whether one runs cannot be seen here; ${last}`)]
  }
  if (holder === undefined) return [line.ok('nobody holds the lock')]
  const who =
    said?.pid === holder ? `parley ${said.command} since ${said.since}` : 'which has not said what it is'
  return [line.note(`process ${holder} holds the lock (${who})`, 'Another backfill has to wait for it.')]
}

/**
 * The process that holds the lock, by the system's own list: taking the lock to see whether it is free could turn
 * away a process that starts just then.
 */
function lockHolder(file: string): number | undefined | 'unknown' {
  const stats = statOf(file)
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

interface LastWriter {
  pid: number
  command: string
  since: string
}

function lastWriter(db: Sqlite): LastWriter | undefined {
  const table = db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'sync_meta'").get()
  const value = table && db.prepare("SELECT value FROM sync_meta WHERE key = 'writer'").pluck().get()
  return typeof value === 'string' ? (JSON.parse(value) as LastWriter) : undefined
}

function statOf(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false })
}

const octal = (mode: number): string => mode.toString(8).padStart(4, '0')
