import { randomUUID } from 'node:crypto'
import { lstatSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { EXIT_STATUS, StopError } from '../../base/errors.ts'
import { type HeldLock, lockDatabase } from '../../store/file/lock.ts'

/** Holds files until they are uploaded. */
export interface TemporaryFolder {
  path: string
  remove(): void
}

const PREFIX = 'parley-publish-'
const OWNER_ONLY = 0o700

/**
 * Creates a folder in `parent` that only this user can read. A lock next to it, which the system releases at the end of
 * the process, says that it is in use. Folders that killed processes have left are removed.
 */
export function createTemporaryFolder(parent: string, clock: Clock): TemporaryFolder {
  try {
    removeLeftFolders(parent, clock)
    const path = join(parent, `${PREFIX}${randomUUID()}`)
    // The lock comes first, so a folder without a lock is always one that was left.
    const lock = lockFolder(path, clock)
    mkdirSync(path, { mode: OWNER_ONLY })
    return { path, remove: () => removeLocked(path, lock) }
  } catch (error) {
    throw new StopError(`Cannot create a folder for files to upload in ${parent}`, {
      code: 'publish-no-temporary-folder',
      hint: 'Set TMPDIR to a folder that this user may write, with space for the largest table.',
      cause: error,
      exitStatus: EXIT_STATUS.databaseUnavailable,
    })
  }
}

/** `lockDatabase` adds `-lock` to the name. */
const lockedName = (path: string): string => `${path}-folder`

const lockFolder = (path: string, clock: Clock): HeldLock => lockDatabase(lockedName(path), clock, 0o600)

function removeLeftFolders(parent: string, clock: Clock): void {
  const folders = readdirSync(parent).filter(name => /^parley-publish-[\da-f-]{36}$/.test(name))
  for (const name of folders) {
    const path = join(parent, name)
    if (lstatSync(path, { throwIfNoEntry: false })?.uid !== process.getuid?.()) continue
    const lock = tryLock(path, clock)
    if (lock) removeLocked(path, lock)
  }
}

/** Undefined when another process uses the folder. */
function tryLock(path: string, clock: Clock): HeldLock | undefined {
  try {
    return lockFolder(path, clock)
  } catch (error) {
    if (error instanceof StopError && error.code === 'database-locked') return undefined
    throw error
  }
}

function removeLocked(path: string, lock: HeldLock): void {
  rmSync(path, { recursive: true, force: true })
  lock.release()
  rmSync(`${lockedName(path)}-lock`, { force: true })
}
