import type { Stats } from 'node:fs'
import { dirname } from 'node:path'
import { type Clock, isoInstant } from '../../base/clock.ts'
import { EXIT_STATUS, StopError } from '../../base/errors.ts'
import { partialPath, removePartial, removePartials } from '../copies/copy-files.ts'
import { databaseError } from '../database/sqlite-errors.ts'
import { contentBytes } from '../database/whole-copy.ts'
import { freeOnSlowDisk, requireSpace } from '../disk/disk-space.ts'
import { isSameFile, resolvedPath } from '../disk/location.ts'
import { isLocked, lockDatabase } from '../file/lock.ts'
import { databaseStats, readDatabase } from '../file/open.ts'
import { type WantedWorkspace, type Workspace, workspaceOf } from '../file/workspace.ts'
import { runSnapshotProcess } from '../snapshot/copy-process.ts'
import { isWarehouse, STATUS_ROWS } from '../status/status.ts'
import {
  type CurrentDatabase,
  finishEarlierSwap,
  putInUse,
  refuseForeign,
  takeOutOfUse,
  updateNotes,
} from './swap.ts'

export interface Restored {
  database: string
  bytes: number
  durationMs: number
  workspace: Workspace | undefined
  /** The new path of the old database; undefined when there was none. */
  keptAs: string | undefined
}

export interface RestoreOptions {
  /** Path of the warehouse. */
  database: string
  /** Path of the copy, which is not changed. */
  file: string
  /** Permission bits of the new database when there is no old one. */
  mode: number
  /** The workspace that the settings name; undefined when they name none. */
  workspace: WantedWorkspace | undefined
  clock: Clock
  pid: number
  /** Aborts the restore before the rename; the promise then rejects with the signal's reason. */
  signal: AbortSignal
}

/**
 * Replaces the database with a copy of a warehouse. The copy is written next to the database, verified, fsynced, and
 * then renamed. When the process is killed, the path names either the old database or the complete new one. On a file
 * system without hard links, or when the old database is damaged, the path may also name no file. The old database is
 * kept under another name.
 * @throws StopError, exit status 64 when the copy is the database itself; 73 when the copy is not a warehouse, is
 * damaged or of a newer version, or the database cannot be replaced; 75 while another process uses the database; 78
 * when the copy holds another workspace
 */
export async function restoreDatabase(options: RestoreOptions): Promise<Restored> {
  const [database, from] = [resolvedPath(options.database), resolvedPath(options.file)]
  const { clock, mode } = options
  const begun = clock.elapsed()
  const copy = copyStats(from)
  if (copy === undefined) throw missingError(from)
  if (isSameFile(copy, databaseStats(database))) throw itselfError(from)
  const source = inspectSource(from, options.workspace)
  try {
    const held = isLocked(database)
    if (held !== true) finishEarlierSwap(database)
    if (held === undefined) refuseForeign(database)
    const lock = lockDatabase(database, clock, mode)
    try {
      const replaced = await replace({ ...options, database, file: from }, source, lock.since)
      putInUse(database)
      return { ...replaced, database, workspace: source.workspace, durationMs: clock.elapsed() - begun }
    } finally {
      lock.release()
    }
  } catch (error) {
    throw databaseError(error, database)
  }
}

function copyStats(file: string): Stats | undefined {
  try {
    return databaseStats(file)
  } catch (error) {
    throw sourceError(error, file)
  }
}

interface CopyFacts {
  bytes: number
  workspace: Workspace | undefined
}

async function replace(
  { database, file, mode, clock, pid, signal }: RestoreOptions,
  source: CopyFacts,
  since: string,
): Promise<Pick<Restored, 'bytes' | 'keptAs'>> {
  await removePartials({ of: database })
  requireSpace(await freeOnSlowDisk(dirname(database)), {
    file: database,
    bytes: source.bytes,
    message: `No space to restore ${database}`,
    code: 'no-space-for-restore',
    advice: '. The database is unchanged.',
  })
  const current = takeOutOfUse(database, clock.now())
  const part = partialPath(database)
  try {
    refuseOtherWorkspaceThanCurrent(current, source, file)
    const { bytes } = await copyToPart(file, part, signal)
    updateNotes(part, {
      carried: current.notes,
      writer: { pid, command: 'restore', since },
      now: isoInstant(clock.now()),
    })
    signal.throwIfAborted()
    const keptAs = current.replaceWith(part, mode)
    return { bytes, keptAs }
  } finally {
    current.close()
    await removePartial(part)
  }
}

async function copyToPart(file: string, part: string, signal: AbortSignal) {
  const input = { database: file, part, earlier: undefined, statusSql: STATUS_ROWS }
  const answer = await runSnapshotProcess(input, signal)
  if (!('failed' in answer)) return answer
  const { about, code } = answer.failed
  if (code === 'unsound') throw verificationError(file)
  const error = Object.assign(new Error(code), { code })
  // An error while writing is reported as an error of the database that is replaced.
  throw about === 'database' ? sourceError(databaseError(error, file), file) : error
}

function inspectSource(file: string, wanted: WantedWorkspace | undefined): CopyFacts {
  try {
    return readDatabase({ path: file, workspace: wanted }, db => {
      if (!isWarehouse(db)) throw emptyError(file)
      return { bytes: contentBytes(db), workspace: workspaceOf(db) }
    })
  } catch (error) {
    throw sourceError(error, file)
  }
}

/** The copy must be of the workspace of the current database, even when the settings name no workspace. */
function refuseOtherWorkspaceThanCurrent(
  current: CurrentDatabase,
  { workspace }: CopyFacts,
  file: string,
): void {
  const held = current.workspace
  if (held === undefined || workspace === undefined || held.id === workspace.id) return
  throw new StopError(
    `${file} holds workspace ${workspace.id}, but the current database holds workspace ${held.id}`,
    {
      code: 'other-workspace',
      hint: 'Use a copy of the same workspace, or choose another database with --database.',
      exitStatus: EXIT_STATUS.settings,
    },
  )
}

/** Hints for errors of the copy, by error code. The hints of `openDatabase` are about database.path. */
const HINTS: Readonly<Record<string, string>> = {
  'database-foreign': 'Use a snapshot or another copy of a warehouse. Nothing was changed.',
  'database-newer': 'Install the newer version again, or use an older copy. Nothing was changed.',
  'database-unavailable': 'Use an undamaged snapshot that this user may read. Nothing was changed.',
  'other-workspace': 'Check api.workspace_id, or use a copy with that workspace. Nothing was changed.',
}

function sourceError(error: unknown, file: string): unknown {
  if (!(error instanceof StopError)) return error
  const { message, code, hint, exitStatus, cause } = error
  const text = message.replace(`Cannot use the database ${file}`, `Cannot read ${file}`)
  return new StopError(text, { code, hint: HINTS[code] ?? hint ?? '', cause, exitStatus })
}

const itselfError = (file: string) =>
  new StopError(`${file} is the database itself`, {
    code: 'restore-itself',
    hint: 'Name the copy that will replace the database.',
    exitStatus: EXIT_STATUS.usage,
  })

const missingError = (file: string) =>
  new StopError(`There is no file ${file}`, {
    code: 'no-copy',
    hint: 'Name an existing snapshot; parley snapshot creates one. Nothing was changed.',
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })

const emptyError = (file: string) =>
  new StopError(`${file} is not a warehouse`, {
    code: 'database-foreign',
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })

const verificationError = (file: string) =>
  new StopError(`${file} was not restored: the database file written from it failed verification`, {
    code: 'restore-unsound',
    hint: 'The copy is damaged, or the disk is: try another snapshot, or check the disk. The database is unchanged.',
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
