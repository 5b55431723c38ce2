import { randomUUID } from 'node:crypto'
import { existsSync, linkSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { errorCode } from '../../base/errors.ts'
import { type FolderUse, lockFolder, targetError } from '../../export/target-folder.ts'
import { beginNewFile, fsyncPath, makeFolder, replaceFile, writeNewFile } from '../../store/disk/new-files.ts'
import type { Storage } from './storage.ts'
import { folderReader, TARGET_MARK } from './target-reader.ts'

export interface FolderOptions {
  /** An absolute path. */
  path: string
  /** Where readers find the folder. Default: `file://` and its path. */
  location: string | undefined
  /** File mode. Users who may read the files may also enter the folders. */
  mode: number
  clock: Clock
}

const FOLDER: FolderUse = {
  verb: 'publish',
  lockedName: TARGET_MARK,
  accepts: 'is a target of parley publish',
  foreign: 'parley publish did not write',
}

/**
 * A folder as a target. Each write reaches the disk before the next commit (`writeIfAbsent`) is visible.
 * @throws StopError (exit status 64) when the folder has other files, 73 when it cannot be used, 75 when another
 * process publishes
 */
export function openFolder({ path, location, mode, clock }: FolderOptions): Storage {
  const lock = lockFolder(path, mode, clock, FOLDER)
  const reader = folderReader(path, location)
  const unsynced = new Set<string>()
  const prepare = (file: string): string => {
    const place = join(path, file)
    makeFolders(dirname(place), mode, path)
    unsynced.add(dirname(place))
    return place
  }
  const syncFolders = () => {
    for (const folder of unsynced) if (existsSync(folder)) fsyncPath(folder)
    unsynced.clear()
  }
  return {
    ...reader,
    isLocked: true,
    write: async (file, bytes) => writeNewFile(prepare(file), bytes, mode),
    async writeIfAbsent(file, bytes) {
      const place = prepare(file)
      // A process that is killed leaves the file, and the next publication removes it.
      const temporary = join(dirname(place), `.tmp-${randomUUID()}`)
      writeNewFile(temporary, bytes, mode)
      syncFolders()
      try {
        linkSync(temporary, place)
        return true
      } catch (error) {
        if (errorCode(error) !== 'EEXIST') throw error
        return false
      } finally {
        rmSync(temporary, { force: true })
        fsyncPath(dirname(place))
      }
    },
    replace: async (file, bytes) => replaceFile(prepare(file), bytes, mode),
    beginFile: file => beginNewFile(prepare(file), mode),
    uploaded: async () => undefined,
    remove: async file => rmSync(join(path, file), { force: true }),
    // SQLite only reports errors of the warehouse here.
    fault: error => (errorCode(error)?.startsWith('SQLITE_') ? error : targetError(error, path, FOLDER)),
    close: () => lock.release(),
  }
}

/** Creates a folder of a target and its parents. */
function makeFolders(folder: string, mode: number, target: string): void {
  if (folder === target) return
  makeFolders(dirname(folder), mode, target)
  makeFolder(folder, mode)
}
