import { createHash, randomUUID } from 'node:crypto'
import { createReadStream, lstatSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { appendFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import PQueue from 'p-queue'
import type { Clock } from '../../base/clock.ts'
import { EXIT_STATUS, StopError } from '../../base/errors.ts'
import { type HeldLock, lockDatabase } from '../../store/file/lock.ts'
import type { FileContent } from './s3-client.ts'
import type { Storage } from './storage.ts'
import { openStoredFile, type TargetReader } from './target-reader.ts'

/** Local files of a bucket: those that wait for their upload, those that are downloaded, and the folder that has them. */

export interface TemporaryFiles {
  /** The parent of a new folder that only this user can read. */
  temporary: string
  clock: Clock
}

/**
 * Uploads of local files. A file is written, waits, is uploaded, and is then removed. After the first error no other
 * file is uploaded, and every verb but `close` throws that error.
 */
export type Uploads = Pick<Storage, 'beginFile' | 'uploaded' | 'close'>

const AT_ONCE = 8

/** @throws StopError (exit status 73) when the folder cannot be created */
export function createUploads(
  { temporary, clock }: TemporaryFiles,
  put: (path: string, content: FileContent) => Promise<void>,
): Uploads {
  const folder = createTemporaryFolder(temporary, clock)
  const queue = new PQueue({ concurrency: AT_ONCE })
  const unfinished = new Set<Promise<void>>()
  let failure: { error: unknown } | undefined

  const upload = async (path: string, file: string): Promise<void> => {
    if (failure) return
    try {
      await put(path, await fileContent(file))
      rmSync(file, { force: true })
    } catch (error) {
      failure ??= { error }
    }
  }
  const refuseAfterFailure = () => {
    if (failure) throw failure.error
  }
  return {
    beginFile(path) {
      refuseAfterFailure()
      const file = join(folder.path, `${randomUUID()}.parquet`)
      return {
        file,
        end() {
          refuseAfterFailure()
          const work = queue.add(() => upload(path, file)).then(() => void unfinished.delete(work))
          unfinished.add(work)
        },
        abandon: () => rmSync(file, { force: true }),
      }
    },
    async uploaded() {
      await Promise.all(unfinished)
      refuseAfterFailure()
    },
    close: folder.remove,
  }
}

const CHUNK_BYTES = 256 * 1024

async function fileContent(file: string): Promise<FileContent> {
  // The first chunk opens the file: nothing would handle a stream error of a request that was stopped before.
  const chunks = async function* (): AsyncGenerator<Buffer> {
    yield* createReadStream(file, { highWaterMark: CHUNK_BYTES })
  }
  const hash = createHash('sha256')
  const { size } = statSync(file)
  // A file that is too large is refused by its size, so its digest is not needed.
  if (size <= MAX_OBJECT_BYTES) for await (const chunk of chunks()) hash.update(chunk)
  const read = () => Readable.from(chunks(), { objectMode: false })
  return { bytes: size, sha256: hash.digest('hex'), read }
}

/** The limit of S3 for one PUT. */
export const MAX_OBJECT_BYTES = 5 * 2 ** 30

/**
 * Downloads of objects that may not fit into memory. An open object is a temporary file, so that it can be read in any
 * order and is transferred once. The folder for these files is created with the first download.
 */
export type Downloads = Pick<TargetReader, 'open' | 'close'>

/** How many bytes one request asks for. */
const PIECE_BYTES = 8 * 2 ** 20

/** @param readRange returns fewer bytes than asked for at the end of the object; undefined where there is no such object */
export function createDownloads(
  { temporary, clock }: TemporaryFiles,
  readRange: (path: string, from: number, bytes: number) => Promise<Buffer | undefined>,
): Downloads {
  let folder: TemporaryFolder | undefined
  return {
    async open(path) {
      folder ??= createTemporaryFolder(temporary, clock)
      const place = join(folder.path, randomUUID())
      try {
        for (let bytes = 0, isWhole = false; !isWhole; ) {
          const piece = await readRange(path, bytes, PIECE_BYTES)
          if (piece === undefined) return undefined
          await save(place, temporary, piece)
          bytes += piece.length
          isWhole = piece.length < PIECE_BYTES
        }
        return await openStoredFile(place, path)
      } finally {
        // The open file stays readable.
        await rm(place, { force: true })
      }
    },
    close: () => folder?.remove(),
  }
}

async function save(place: string, temporary: string, bytes: Buffer): Promise<void> {
  try {
    await appendFile(place, bytes, { mode: 0o600 })
  } catch (error) {
    throw temporaryError(error, {
      problem: `Cannot write a downloaded file in ${temporary}`,
      needs: 'the largest file of the target',
    })
  }
}

interface TemporaryFolder {
  path: string
  remove(): void
}

/**
 * Creates a folder in `parent` that only this user can read. A lock next to the folder, which the system releases at
 * the end of the process, says that the folder is in use. Folders that killed processes have left are removed.
 */
function createTemporaryFolder(parent: string, clock: Clock): TemporaryFolder {
  try {
    removeLeftFolders(parent, clock)
    const path = join(parent, `parley-publish-${randomUUID()}`)
    // The lock comes first, so a folder without a lock is always one that was left.
    const lock = lockFolder(path, clock)
    mkdirSync(path, { mode: 0o700 })
    return { path, remove: () => removeLocked(path, lock) }
  } catch (error) {
    throw temporaryError(error, {
      problem: `Cannot create a folder for files to upload in ${parent}`,
      needs: 'the largest table',
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

/** @returns undefined when another process uses the folder */
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

function temporaryError(cause: unknown, { problem, needs }: { problem: string; needs: string }): StopError {
  return new StopError(problem, {
    code: 'publish-no-temporary-folder',
    hint: `Set TMPDIR to a folder that this user may write, with space for ${needs}.`,
    cause,
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}
