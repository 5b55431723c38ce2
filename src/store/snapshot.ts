import { type ChildProcess, fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readSync,
  statSync,
} from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { type Clock, isoInstant } from '../clock.ts'
import { EXIT_STATUS, StopError } from '../errors.ts'
import { type FreeBytes, freeOnDisk } from './backup.ts'
import { APPLICATION_ID, databaseError, faultOf, openDatabase, truePath } from './open.ts'
import { databaseSizes, nothingThere, requireWarehouse, STATUS_ROWS, type StatusRow } from './status.ts'
import { contentBytes } from './whole-copy.ts'

/**
 * A copy of the warehouse that opens anywhere: one file, whole, of one moment. A process of its own makes it, and not
 * a thread: nothing can end a thread that is inside SQLite, so that whoever is to stop would have to wait for it.
 */
export interface Snapshot {
  path: string
  bytes: number
  durationMs: number
  /** When it was begun, by this machine's clock, as an instant: what was committed before is in it. */
  begunAt: string
  /** The rows of `sync_status` in it. */
  resources: readonly StatusRow[]
}

export interface SnapshotOptions {
  /** Path of the warehouse. */
  database: string
  /** Where the copy goes. An earlier snapshot there is replaced once the new one is whole. */
  file: string
  /** Of the copy, as an octal number. */
  mode: number
  /** Other names in the same folder that snapshots like this one have had. */
  isAlike?: (name: string) => boolean
  clock: Clock
  /** Ends it; nothing of it is left. It then rejects with the signal's reason. */
  signal: AbortSignal
  /** What the process runs. */
  program?: URL
  freeBytes?: FreeBytes
}

/** What the process that makes the copy is told. */
export interface SnapshotOrder {
  database: string
  /** Where it writes: a new file. */
  part: string
  /** Files of the same kind that a process which died may have left. */
  abandoned: readonly string[]
  statusSql: string
}

/** What it answers; the code is SQLite's or the system's, or `unsound` for a copy that is not as it should be. */
export type SnapshotAnswer =
  | { bytes: number; status: readonly unknown[] }
  | { failed: { about: 'database' | 'snapshot'; code: string } }

/** The compiled one. Where only sources are, as in tests, there is none. */
const PROGRAM = new URL('./snapshot-worker.js', import.meta.url)

/**
 * @throws StopError 64 when `file` is none that may be replaced; 73 when the database cannot be read or the copy not
 * be written; 75 when it is given up
 */
export async function makeSnapshot(options: SnapshotOptions): Promise<Snapshot> {
  const { clock, signal, mode, isAlike = () => false, program = PROGRAM, freeBytes = freeOnDisk } = options
  const [database, file] = [truePath(options.database), truePath(options.file)]
  requireWarehouse(database)
  refuseTarget(database, file)
  refuseWithoutSpace(file, bytesOf(database), freeBytes)
  const part = `${file}.${randomBytes(4).toString('hex')}.part`
  const begun = clock.elapsed()
  const begunAt = isoInstant(clock.now())
  try {
    const order = { database, part, abandoned: abandonedBeside(file, isAlike), statusSql: STATUS_ROWS }
    const answer = await whileLogIsSmall(database, clock, signal, ended => ask(program, order, ended))
    if ('failed' in answer) throw failure(answer.failed, database, file)
    await giveName(part, file, { database, mode })
    const resources = answer.status as StatusRow[]
    return { path: file, bytes: answer.bytes, durationMs: clock.elapsed() - begun, begunAt, resources }
  } finally {
    await rm(part, { force: true })
    await rm(`${part}-journal`, { force: true })
  }
}

/** The instant before which all that was published is in it; null where something has not been read completely. */
export function completeAsOf(resources: readonly StatusRow[]): string | null {
  const offered = resources.filter(({ state }) => state !== 'unavailable')
  const instants = offered.map(({ complete_as_of }) => complete_as_of)
  if (instants.length === 0 || instants.includes(null)) return null
  return instants.reduce((least, at) => ((at ?? '') < (least ?? '') ? at : least))
}

// ------------------------------------------------------------------------------------------------ the file

const COMPANIONS = ['-wal', '-shm', '-journal', '-lock']

function refuseTarget(database: string, file: string): void {
  const own = statSync(database)
  const there = statSync(file, { throwIfNoEntry: false })
  const isDatabase = there !== undefined && there.ino === own.ino && there.dev === own.dev
  if (isDatabase || ['', ...COMPANIONS].some(end => file === `${database}${end}`)) {
    throw refusal(`${file} belongs to the warehouse itself`, 'Name another file for the snapshot.')
  }
  if (!statSync(dirname(file), { throwIfNoEntry: false })?.isDirectory()) {
    throw new StopError(`Cannot write the snapshot ${file}: there is no such folder`, {
      code: 'snapshot-unwritable',
      hint: `Make the folder (mkdir -p ${dirname(file)}), or name another file.`,
      exitStatus: EXIT_STATUS.databaseUnavailable,
    })
  }
  const beside = COMPANIONS.find(end => existsSync(`${file}${end}`))
  if (beside !== undefined) {
    // SQLite would take it for a part of the new file.
    const what = `there is ${basename(file)}${beside} beside it: a database that is in use, or what is left of one`
    throw refusal(`${file} cannot be replaced, since ${what}`, 'Name another file, or remove both first.')
  }
  if (there === undefined || (there.isFile() && (there.size === 0 || isSnapshot(file)))) return
  if (there.isDirectory()) {
    throw refusal(`${file} is a folder`, `Name a file in it, such as ${join(file, basename(database))}.`)
  }
  throw refusal(
    `${file} is there already, is no snapshot of parley, and was not touched`,
    'Only snapshots are replaced. Name another file, or remove that one first.',
  )
}

const refusal = (message: string, hint: string) =>
  new StopError(message, { code: 'snapshot-refused', hint, exitStatus: EXIT_STATUS.usage })

/** By its header (sqlite.org/fileformat2.html): parley's, and not in WAL mode as every warehouse is. */
function isSnapshot(file: string): boolean {
  const header = Buffer.alloc(72)
  const handle = openSync(file, 'r')
  try {
    readSync(handle, header, 0, header.length, 0)
  } finally {
    closeSync(handle)
  }
  const isDatabase = header.toString('latin1', 0, 16) === 'SQLite format 3\0'
  return isDatabase && header[18] === 1 && header[19] === 1 && header.readInt32BE(68) === APPLICATION_ID
}

const PART = /\.[0-9a-f]{8}\.part$/

/** What a process that died may have left of this snapshot and of those that are named alike. */
function abandonedBeside(file: string, isAlike: (name: string) => boolean): string[] {
  const folder = dirname(file)
  const isOurs = (name: string) => name === basename(file) || isAlike(name)
  return readdirSync(folder)
    .filter(name => PART.test(name) && isOurs(name.replace(PART, '')))
    .map(name => join(folder, name))
}

async function giveName(
  part: string,
  file: string,
  { database, mode }: { database: string; mode: number },
): Promise<void> {
  try {
    takeGroup(part, database)
    chmodSync(part, mode)
    // Off the event loop: to free what it replaces, and to reach the disk, may take long.
    await rename(part, file)
    const folder = await open(dirname(file))
    try {
      await folder.sync()
    } finally {
      await folder.close()
    }
  } catch (error) {
    throw unwritable(file, codeOf(error)) ?? error
  }
}

const SET_GROUP_ID = 0o2000

/** The group of the database, so that who reads the one reads the other; where the folder gives its own, that one. */
export function takeGroup(path: string, database: string): void {
  if ((statSync(dirname(path)).mode & SET_GROUP_ID) !== 0) return
  const { gid } = statSync(database)
  if (statSync(path).gid === gid) return
  try {
    chownSync(path, -1, gid)
  } catch {
    // Only its members, and root, may give a file to a group.
  }
}

// ------------------------------------------------------------------------------------------------ space

function bytesOf(database: string): number {
  const db = openDatabase({ path: database, readonly: true })
  try {
    if (!db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'sync_status'").get()) {
      throw nothingThere(database)
    }
    return contentBytes(db)
  } catch (error) {
    throw databaseError(error, database)
  } finally {
    db.close()
  }
}

function refuseWithoutSpace(file: string, needed: number, freeBytes: FreeBytes): void {
  const free = freeBytes(dirname(file))
  if (free >= needed) return
  const [all, missing] = [needed, needed - free].map(bytes => Math.ceil(bytes / 1e6))
  throw new StopError(`There is no space for the snapshot ${file}`, {
    code: 'no-space-for-snapshot',
    hint: `It needs about ${all} MB in ${dirname(file)}: free ${missing} MB more, or name a file on another disk.`,
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}

// ------------------------------------------------------------------------------------------------ the log

/** What is written while the copy is made stays in the WAL: so much may come, or as much as the database is large. */
const LOG_GROWTH_BYTES = 1024 ** 3
const LOOK_MS = 1000

async function whileLogIsSmall<T>(
  database: string,
  clock: Clock,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const before = databaseSizes(database)
  const most = before.walBytes + Math.max(LOG_GROWTH_BYTES, before.bytes)
  const [over, tooLong] = [new AbortController(), new AbortController()]
  const watch = async () => {
    while (!over.signal.aborted) {
      await clock.sleep(LOOK_MS, over.signal)
      if (databaseSizes(database).walBytes > most) tooLong.abort(outrun(database))
    }
  }
  const watching = watch()
  try {
    return await work(AbortSignal.any([signal, tooLong.signal]))
  } finally {
    over.abort()
    await watching
  }
}

const outrun = (database: string) =>
  new StopError(
    `The snapshot of ${database} was given up: meanwhile more was written than it could wait for`,
    {
      code: 'snapshot-outrun',
      hint: 'Try it again when less is being written, such as after the backfill.',
      exitStatus: EXIT_STATUS.unfinished,
    },
  )

// ------------------------------------------------------------------------------------------------ the process

/** Its heap holds a few rows; what the database needs is outside of it. It gets no environment: there are secrets in it. */
const PROCESS = {
  execArgv: ['--max-semi-space-size=2'],
  env: {},
  stdio: ['ignore', 'ignore', 'ignore', 'ipc'] as const,
}

function ask(program: URL, order: SnapshotOrder, signal: AbortSignal): Promise<SnapshotAnswer> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const child: ChildProcess = fork(program, [], { ...PROCESS, stdio: [...PROCESS.stdio] })
    let answer: SnapshotAnswer | undefined
    const end = () => child.kill('SIGKILL')
    signal.addEventListener('abort', end, { once: true })
    child.on('message', said => {
      answer = said as SnapshotAnswer
    })
    child.on('error', error => reject(cutOff(order.database, error.message)))
    child.on('close', (status, killedBy) => {
      signal.removeEventListener('abort', end)
      if (signal.aborted) reject(signal.reason)
      else if (answer) resolve(answer)
      else reject(cutOff(order.database, killedBy ?? `status ${status}`))
    })
    child.send(order, error => {
      if (error) end()
    })
  })
}

const cutOff = (database: string, how: string) =>
  new StopError(`The snapshot of ${database} failed: the process that makes it was cut off (${how})`, {
    code: 'snapshot-cut-off',
    hint: 'Try it again; if it stays so, look for a limit on memory or on processes.',
    exitStatus: EXIT_STATUS.unfinished,
  })

// ------------------------------------------------------------------------------------------------ faults

function failure({ about, code }: { about: string; code: string }, database: string, file: string): Error {
  if (code === 'unsound') {
    return new StopError(`The snapshot ${file} was not made: what was written is not what was read`, {
      code: 'snapshot-unsound',
      hint: 'Check the disk, and the database with parley doctor.',
      exitStatus: EXIT_STATUS.databaseUnavailable,
    })
  }
  if (code.startsWith('SQLITE_BUSY')) return busy(database)
  const error =
    about === 'database'
      ? databaseError(Object.assign(new Error(code), { code }), database)
      : unwritable(file, code)
  return error instanceof StopError ? error : cutOff(database, code)
}

const busy = (database: string) =>
  new StopError(`${database} is busy`, {
    code: 'database-busy',
    hint: 'Try it again in a moment.',
    exitStatus: EXIT_STATUS.unfinished,
  })

function unwritable(file: string, code: string): StopError | undefined {
  const fault = faultOf(code, file)
  if (fault === undefined) return undefined
  return new StopError(`Cannot write the snapshot ${file}: ${fault.says} (${code})`, {
    code: 'snapshot-unwritable',
    hint: `Check ${dirname(file)}: its owner and mode, its disk and the space on it; or name another file. Nothing was left, and an earlier snapshot of that name is as it was.`,
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}
