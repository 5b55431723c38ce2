import { closeSync, fstatSync, open, read, readdirSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { EXIT_STATUS, errorCode, isMissingFile, StopError } from '../../base/errors.ts'

/**
 * The objects of a target, for reading: nothing is locked, marked or written, so publications go on at the same time.
 * Paths are relative to the target, with `/`.
 */
export interface TargetReader {
  /** The target as the user named it. */
  readonly name: string
  /** The target as readers find it, without a slash at the end. */
  readonly location: string
  /**
   * @returns undefined where there is no such object
   * @throws StopError (exit status 73) when the target cannot be read
   */
  read(path: string): Promise<Buffer | undefined>
  /** The paths of all objects below a folder of the target; for an empty text, of the whole target. */
  list(folder: string): Promise<readonly string[]>
  /** `ours`: parley publish has marked the target. `others`: it has objects but no mark, and is refused. */
  holds(): Promise<'nothing' | 'ours' | 'others'>
  /**
   * Opens an object that may not fit into memory. @returns undefined where there is no such object
   * @throws StopError (exit status 73) when it cannot be read
   */
  open(path: string): Promise<StoredFile | undefined>
  close(): void
}

/**
 * Reads and decodes an object. After a failed decoding the object is read again: storage may have sent only half of it.
 * @returns undefined where there is no such object
 * @throws the error of the second decoding
 */
export async function readDecoded<Value>(
  { read }: Pick<TargetReader, 'read'>,
  path: string,
  decode: (bytes: Buffer) => Value | Promise<Value>,
): Promise<Value | undefined> {
  const first = await read(path)
  try {
    return first && (await decode(first))
  } catch {
    const second = await read(path)
    return second && (await decode(second))
  }
}

export interface StoredFile {
  readonly bytes: number
  /** @throws StopError (exit status 73) when the range cannot be read */
  read(from: number, to: number): Promise<Buffer>
  close(): void
}

const openFile = promisify(open)
export const readFrom = promisify(read)

/**
 * @param path an absolute path. A folder that does not exist is a target without objects.
 * @param location where readers find it. Default: `file://` and its path
 */
export function folderReader(path: string, location = `file://${path}`): TargetReader {
  const found = async <Result>(file: string, work: (place: string) => Promise<Result>) => {
    try {
      return await work(join(path, file))
    } catch (error) {
      if (isMissingFile(error)) return undefined
      throw unreadable(file === '' ? path : `${file} in ${path}`, error)
    }
  }
  return {
    name: path,
    // Readers take the path as it is: a space is a space, not %20.
    location: location.replace(/(?<!\/)\/+$/, ''),
    read: file => found(file, place => readFile(place)),
    open: file => found(file, async place => storedFile(await openFile(place, 'r'), file)),
    async list(folder) {
      return (await found(folder, async () => filesBelow(path, folder))) ?? []
    },
    async holds() {
      const inside = (await found('', place => readdir(place))) ?? []
      if (inside.length === 0) return 'nothing'
      return inside.includes(`${TARGET_MARK}-lock`) ? 'ours' : 'others'
    },
    close: () => undefined,
  }
}

/** Marks a target: in a bucket, an object with this name; in a folder, the lock, whose file has `-lock` at the end. */
export const TARGET_MARK = '.parley-publish'

/** The paths of all files below a folder of a target. @throws the error of the file system */
function filesBelow(path: string, folder: string): string[] {
  return readdirSync(join(path, folder), { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name).slice(path.length + 1))
}

/** An object as a local file. @param path of the object, for messages */
export function storedFile(file: number, path: string): StoredFile {
  return {
    bytes: fstatSync(file).size,
    async read(from, to) {
      const bytes = Buffer.allocUnsafe(to - from)
      let filled = 0
      try {
        while (filled < bytes.length) {
          const { bytesRead } = await readFrom(file, bytes, filled, bytes.length - filled, from + filled)
          if (bytesRead === 0) throw new Error('The file became shorter')
          filled += bytesRead
        }
      } catch (error) {
        throw unreadable(path, error)
      }
      return bytes
    },
    close: () => closeSync(file),
  }
}

function unreadable(what: string, error: unknown): StopError {
  return new StopError(`Cannot read ${what} (${errorCode(error) ?? 'unknown error'})`, {
    code: 'publish-unreadable',
    hint: 'Check the disk and the permissions of the folder.',
    cause: error,
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}
