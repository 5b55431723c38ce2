import { rm } from 'node:fs/promises'
import { dirname, sep } from 'node:path'
import { type Clock, isoInstant } from '../clock.ts'
import { EXIT_STATUS, StopError } from '../errors.ts'
import { databaseBusy, databaseError, openDatabase, truePath } from './open.ts'
import { askProcess, cutOff, type SnapshotOrder, type WholeCopy } from './snapshot-process.ts'
import {
  type FreeBytes,
  freeOnDisk,
  giveName,
  isFolder,
  partOf,
  refuseTarget,
  refuseWithoutSpace,
  removeAbandoned,
  targetError,
} from './snapshot-target.ts'
import { databaseSizes, nothingThere, requireWarehouse, STATUS_ROWS, type StatusRow } from './status.ts'
import { contentBytes } from './whole-copy.ts'

/** A copy of the warehouse that opens anywhere: one file, whole, of one moment. A process of its own makes it. */
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
  /** A snapshot in the same folder that should be of the same warehouse. */
  earlier?: string | undefined
  /** Other names in the same folder that snapshots like this one have had. */
  isAlike?: (name: string) => boolean
  clock: Clock
  /** Ends it; nothing of it is left. It then rejects with the signal's reason. */
  signal: AbortSignal
  /** What the process runs. */
  program?: URL
  freeBytes?: FreeBytes
}

/** The compiled one. Where only sources are, as in tests, there is none. */
const PROGRAM = new URL('./snapshot-worker.js', import.meta.url)

/**
 * @throws StopError 64 when `file` is none that may be replaced; 73 when the database cannot be read or the copy not
 * be written; 75 when it is given up; 78 where the earlier one is of another warehouse
 */
export async function makeSnapshot(options: SnapshotOptions): Promise<Snapshot> {
  const [database, file] = [truePath(options.database), truePath(options.file)]
  requireWarehouse(database)
  if (options.file.endsWith(sep)) throw isFolder(file, database)
  try {
    return await make({ ...options, database, file })
  } catch (error) {
    throw targetError(error, file)
  }
}

async function make(options: SnapshotOptions): Promise<Snapshot> {
  const { database, file, clock, mode, isAlike = () => false, freeBytes = freeOnDisk } = options
  await refuseTarget(database, file)
  await removeAbandoned(file, isAlike, clock.now())
  await refuseWithoutSpace(file, bytesOf(database), freeBytes)
  const [begun, begunAt] = [clock.elapsed(), isoInstant(clock.now())]
  const part = partOf(file)
  try {
    const { bytes, status } = await copied(options, {
      database,
      part,
      earlier: options.earlier,
      statusSql: STATUS_ROWS,
    })
    // A warehouse may have come there meanwhile.
    await refuseTarget(database, file)
    await giveName(part, file, { database, mode })
    const resources = status as StatusRow[]
    return { path: file, bytes, durationMs: clock.elapsed() - begun, begunAt, resources }
  } finally {
    await rm(part, { force: true })
    await rm(`${part}-journal`, { force: true })
  }
}

/** @throws StopError, or what the system said of the place, as an error with its code */
async function copied(options: SnapshotOptions, order: SnapshotOrder): Promise<WholeCopy> {
  const { database, file, clock, signal, program = PROGRAM } = options
  const answer = await whileLogIsSmall(database, clock, signal, ended => askProcess(program, order, ended))
  if (!('failed' in answer)) return answer
  const { about, code } = answer.failed
  if (code === 'unsound') throw unsound(file)
  if (code === 'other') throw shared(file)
  if (code.startsWith('SQLITE_BUSY')) throw databaseBusy(database)
  const error = Object.assign(new Error(code), { code })
  if (about === 'snapshot' && code !== 'unknown') throw error
  const fault = databaseError(error, database)
  throw fault instanceof StopError ? fault : cutOff(database, code)
}

/** The instant before which all that was published is in it; null where something has not been read completely. */
export function completeAsOf(resources: readonly StatusRow[]): string | null {
  const offered = resources.filter(({ state }) => state !== 'unavailable')
  const instants = offered.map(({ complete_as_of }) => complete_as_of)
  if (instants.length === 0 || instants.includes(null)) return null
  return instants.reduce((least, at) => ((at ?? '') < (least ?? '') ? at : least))
}

function bytesOf(database: string): number {
  try {
    return contentOf(database)
  } catch (error) {
    throw databaseError(error, database)
  }
}

function contentOf(database: string): number {
  const db = openDatabase({ path: database, readonly: true })
  try {
    if (!db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'sync_status'").get()) {
      throw nothingThere(database)
    }
    return contentBytes(db)
  } finally {
    db.close()
  }
}

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

const unsound = (file: string) =>
  new StopError(`The snapshot ${file} was not made: what was written is not what was read`, {
    code: 'snapshot-unsound',
    hint: 'Check the disk, and the database with parley doctor.',
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })

const shared = (file: string) =>
  new StopError(`${dirname(file)} has snapshots of another warehouse, whose file has the same name`, {
    code: 'snapshot-folder-shared',
    hint: 'Give each warehouse a folder of its own with snapshot.folder, since each removes old ones. Where this one has taken the place of that other one, move the old snapshots elsewhere.',
    exitStatus: EXIT_STATUS.settings,
  })
