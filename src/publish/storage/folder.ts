import { randomUUID } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  existsSync,
  fchmodSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Clock } from '../../clock.ts'
import { errorCode } from '../../error-code.ts'
import { EXIT_STATUS, StopError } from '../../errors.ts'
import { lockDatabase } from '../../store/file/lock.ts'
import { fsyncPath } from '../../store/file/whole-copy.ts'
import type { Storage } from './storage.ts'

export interface FolderOptions {
  /** An absolute path. */
  path: string
  /** Where readers find the folder. Default: its `file:` URL. */
  location: string | undefined
  /** File mode. Users who may read the files may also enter the folders. */
  mode: number
  clock: Clock
}

/** A lock of this name marks the folder as a target of parley, and prevents two publications at the same time. */
const LOCKED_NAME = '.parley-publish'
const LOCK = `${LOCKED_NAME}-lock`
/** Files with this prefix were being written when the process was killed. */
const TEMPORARY = '.tmp-'

/**
 * A folder as a target. Each write reaches the disk before the next commit (`writeIfAbsent`) is visible.
 * @throws StopError 64 when the folder has other files, 73 when it cannot be used, 75 when another process publishes
 */
export function openFolder({ path, location, mode, clock }: FolderOptions): Storage {
  makeFolder(path, mode)
  refuseOtherFiles(path)
  const lock = lockFolder(path, mode, clock)
  const unsynced = new Set<string>()
  const prepare = (file: string): string => {
    const place = join(path, file)
    makeFolder(dirname(place), mode)
    unsynced.add(dirname(place))
    return place
  }
  const syncFolders = () => {
    for (const folder of unsynced) if (existsSync(folder)) fsyncPath(folder)
    unsynced.clear()
  }
  const writeTemporary = (place: string, bytes: Buffer): string => {
    const temporary = join(dirname(place), `${TEMPORARY}${randomUUID()}`)
    writeSynced(temporary, bytes, mode)
    return temporary
  }
  return {
    name: path,
    location: location ?? pathToFileURL(path).href,
    async read(file) {
      try {
        return readFileSync(join(path, file))
      } catch (error) {
        if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return undefined
        throw error
      }
    },
    write: async (file, bytes) => writeSynced(prepare(file), bytes, mode),
    async writeIfAbsent(file, bytes) {
      const place = prepare(file)
      const temporary = writeTemporary(place, bytes)
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
    async replace(file, bytes) {
      const place = prepare(file)
      renameSync(writeTemporary(place, bytes), place)
      fsyncPath(dirname(place))
    },
    beginFile(file) {
      const place = prepare(file)
      return { file: place, end: () => undefined, abandon: () => rmSync(place, { force: true }) }
    },
    uploaded: async () => undefined,
    list: async folder => filesBelow(path, folder),
    settled: async folder => filesBelow(path, folder),
    remove: async file => rmSync(join(path, file), { force: true }),
    close: () => lock.release(),
  }
}

function writeSynced(place: string, bytes: Buffer, mode: number): void {
  const handle = openSync(place, 'wx', mode)
  try {
    writeFileSync(handle, bytes)
    fchmodSync(handle, mode)
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}

function makeFolder(path: string, mode: number): void {
  if (existsSync(path)) {
    if (statSync(path).isDirectory()) return
    throw new StopError(`${path} is not a folder`, {
      code: 'publish-no-folder',
      hint: 'Name a folder that is empty, does not exist yet, or is a target of parley publish.',
      exitStatus: EXIT_STATUS.usage,
    })
  }
  if (!existsSync(dirname(path))) makeFolder(dirname(path), mode)
  mkdirSync(path)
  chmodSync(path, mode | ((mode & 0o444) >> 2))
}

function refuseOtherFiles(path: string): void {
  const inside = readdirSync(path)
  if (inside.length === 0 || inside.includes(LOCK)) return
  throw new StopError(`${path} has files that parley publish did not write`, {
    code: 'publish-foreign',
    hint: 'Name a folder that is empty, does not exist yet, or is a target of parley publish; this one was not changed.',
    exitStatus: EXIT_STATUS.usage,
  })
}

function lockFolder(path: string, mode: number, clock: Clock) {
  try {
    return lockDatabase(join(path, LOCKED_NAME), clock, mode)
  } catch (error) {
    if (!(error instanceof StopError) || error.code !== 'database-locked') throw error
    throw new StopError(`Another process is publishing to ${path}`, {
      code: 'publish-locked',
      hint: 'Wait until it ends, or choose another folder.',
      exitStatus: EXIT_STATUS.unfinished,
    })
  }
}

function filesBelow(path: string, folder: string): string[] {
  const place = join(path, folder)
  if (!existsSync(place)) return []
  return readdirSync(place, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name).slice(path.length + 1))
}
