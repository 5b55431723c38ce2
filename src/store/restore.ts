import { existsSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { type Clock, isoInstant } from '../clock.ts'
import { EXIT_STATUS, StopError } from '../errors.ts'
import { sizeText } from '../size-text.ts'
import { identityOf, isSameFile } from './database/file-identity.ts'
import { type WantedWorkspace, type Workspace, workspaceOf } from './database/workspace.ts'
import { isLocked, lockDatabase } from './lock.ts'
import { databaseError, openDatabase, truePath } from './open.ts'
import { claimCopy } from './restore-claim.ts'
import { finishEarlierSwap, type Present, takePresent } from './restore-swap.ts'
import { askProcess } from './snapshot-process.ts'
import { type FreeBytes, freeOnDisk, partOf, removeParts } from './snapshot-target.ts'
import { isWarehouse, STATUS_ROWS, type StatusRow } from './status.ts'
import { contentBytes } from './whole-copy.ts'

/**
 * Puts a whole copy of a warehouse in the place of the database. The copy is made next to the database, checked and
 * brought to the disk, and then takes its name: killed at any instant, the name leads to the database from before or to
 * the whole new one. The database from before keeps its content under another name.
 */
export interface Restored {
  database: string
  bytes: number
  durationMs: number
  workspace: Workspace | undefined
  /** The name that the database from before has now; undefined where there was none. */
  keptAs: string | undefined
  /** The rows of `sync_status` in it. */
  resources: readonly StatusRow[]
}

export interface RestoreOptions {
  /** Path of the warehouse. */
  database: string
  /** The copy. It stays as it is. */
  file: string
  /** Of the database where there is none yet, as an octal number. */
  mode: number
  /** Of the settings, where they name one. */
  workspace: WantedWorkspace | undefined
  clock: Clock
  pid: number
  /** Ends it before the names change; it then rejects with the signal's reason. */
  signal: AbortSignal
  freeBytes?: FreeBytes
}

const PROGRAM = new URL('./snapshot-worker.js', import.meta.url)

/**
 * @throws StopError 64 when the copy is the database itself; 73 when the copy is no warehouse, is damaged, or of a newer
 * version, or the database cannot be replaced; 75 while another process uses the database; 78 for another workspace
 */
export async function restoreDatabase(options: RestoreOptions): Promise<Restored> {
  const [database, from] = [truePath(options.database), truePath(options.file)]
  const { clock, mode } = options
  const begun = clock.elapsed()
  if (isSameFile(identityOf(from), identityOf(database))) throw isItself(from)
  if (!existsSync(from)) throw isMissing(from)
  const source = lookInto(from, options.workspace)
  try {
    if (isLocked(database) !== true) finishEarlierSwap(database)
    const lock = lockDatabase(database, clock, mode)
    try {
      const replaced = await replace({ ...options, database, file: from }, source, lock.since)
      return { ...replaced, database, workspace: source.workspace, durationMs: clock.elapsed() - begun }
    } finally {
      lock.release()
    }
  } catch (error) {
    throw databaseError(error, database)
  }
}

interface Source {
  bytes: number
  workspace: Workspace | undefined
}

async function replace(
  { database, file, mode, clock, pid, signal, freeBytes = freeOnDisk }: RestoreOptions,
  source: Source,
  since: string,
): Promise<Pick<Restored, 'bytes' | 'keptAs' | 'resources'>> {
  removeParts(database)
  await refuseWithoutSpace(database, source.bytes, freeBytes)
  const present = takePresent(database, clock.now())
  const part = partOf(database)
  try {
    refuseOtherThanPresent(present, source, file)
    const { bytes, status } = await copied(file, part, signal)
    claimCopy(part, {
      carried: present.notes,
      writer: { pid, command: 'restore', since },
      now: isoInstant(clock.now()),
    })
    signal.throwIfAborted()
    const keptAs = present.replaceWith(part, mode)
    return { bytes, keptAs, resources: status as StatusRow[] }
  } finally {
    present.close()
    rmSync(part, { force: true })
    rmSync(`${part}-journal`, { force: true })
  }
}

async function copied(file: string, part: string, signal: AbortSignal) {
  const order = { database: file, part, earlier: undefined, statusSql: STATUS_ROWS }
  const answer = await askProcess(PROGRAM, order, signal)
  if (!('failed' in answer)) return answer
  const { about, code } = answer.failed
  if (code === 'unsound') throw damaged(file)
  const error = Object.assign(new Error(code), { code })
  // What is wrong with the place is told as a fault of the database that is to be there.
  throw about === 'database' ? sourceError(databaseError(error, file), file) : error
}

function lookInto(file: string, wanted: WantedWorkspace | undefined): Source {
  try {
    const db = openDatabase({ path: file, readonly: true, workspace: wanted })
    try {
      if (!isWarehouse(db)) throw isEmpty(file)
      return { bytes: contentBytes(db), workspace: workspaceOf(db) }
    } finally {
      db.close()
    }
  } catch (error) {
    throw sourceError(databaseError(error, file), file)
  }
}

async function refuseWithoutSpace(database: string, needed: number, freeBytes: FreeBytes): Promise<void> {
  const free = await freeBytes(dirname(database))
  if (free >= needed) return
  throw new StopError(`There is no space to restore ${database}`, {
    code: 'no-space-for-restore',
    hint: `It needs about ${sizeText(needed)} in ${dirname(database)}: free ${sizeText(needed - free)} more. The database is as it was.`,
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}

/** Where the settings name no workspace, the database that is there does. */
function refuseOtherThanPresent(present: Present, { workspace }: Source, file: string): void {
  const held = present.workspace
  if (held === undefined || workspace === undefined || held.id === workspace.id) return
  throw new StopError(`${file} holds workspace ${workspace.id}, and the database in its place ${held.id}`, {
    code: 'other-workspace',
    hint: 'Name a copy of the same workspace, or another database with --database.',
    exitStatus: EXIT_STATUS.settings,
  })
}

/** What to do where the copy is at fault; the hints of a database that is opened speak of database.path. */
const HINTS: Readonly<Record<string, string>> = {
  'database-foreign': 'Name a snapshot, or another copy of a warehouse. Nothing was changed.',
  'database-newer': 'Install that version again, or name an older copy. Nothing was changed.',
  'database-unavailable': 'Name a whole snapshot that this user may read. Nothing was changed.',
  'other-workspace': 'Name a copy of this workspace, or check api.workspace_id. Nothing was changed.',
}

function sourceError(error: unknown, file: string): unknown {
  if (!(error instanceof StopError)) return error
  const { message, code, hint, exitStatus, cause } = error
  const said = message.replace(`Cannot use the database ${file}`, `Cannot read ${file}`)
  return new StopError(said, { code, hint: HINTS[code] ?? hint ?? '', cause, exitStatus })
}

const isItself = (file: string) =>
  new StopError(`${file} is the database itself`, {
    code: 'restore-itself',
    hint: 'Name the copy that is to take its place.',
    exitStatus: EXIT_STATUS.usage,
  })

const isMissing = (file: string) =>
  new StopError(`There is no file ${file}`, {
    code: 'no-copy',
    hint: 'Name a snapshot; parley snapshot makes one. Nothing was changed.',
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })

const isEmpty = (file: string) =>
  new StopError(`${file} holds no warehouse`, {
    code: 'database-foreign',
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })

const damaged = (file: string) =>
  new StopError(`${file} was not restored: what was written is not what was read`, {
    code: 'restore-unsound',
    hint: `Check the disk, and name another copy. The database is as it was.`,
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
