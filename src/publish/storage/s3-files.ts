import { appendFile, closeSync } from 'node:fs'
import { Readable } from 'node:stream'
import { promisify } from 'node:util'
import PQueue from 'p-queue'
import { EXIT_STATUS, StopError } from '../../base/errors.ts'
import { createUnnamedFile } from '../../store/disk/new-files.ts'
import type { FileContent } from './s3-client.ts'
import type { Storage } from './storage.ts'
import { readFrom, type StoredFile, storedFile } from './target-reader.ts'

/**
 * Local files of a bucket: those that wait for their upload, and those that are downloaded. None has a name, so nothing
 * is left of a file when it is closed or its process is killed.
 */

const AT_ONCE = 8

/**
 * Uploads of local files. A file is written, waits, is uploaded, and is then closed. After the first error no other file
 * is uploaded, and every verb throws that error.
 * @param temporary the folder that has the files
 */
export function createUploads(
  temporary: string,
  put: (path: string, content: FileContent) => Promise<void>,
): Pick<Storage, 'beginFile' | 'uploaded'> {
  const queue = new PQueue({ concurrency: AT_ONCE })
  const unfinished = new Set<Promise<void>>()
  let failure: { error: unknown } | undefined

  const upload = async (path: string, file: number, content: Omit<FileContent, 'read'>): Promise<void> => {
    try {
      if (!failure) await put(path, { ...content, read: () => readable(file) })
    } catch (error) {
      failure ??= { error }
    } finally {
      closeSync(file)
    }
  }
  const refuseAfterFailure = () => {
    if (failure) throw failure.error
  }
  return {
    beginFile(path) {
      refuseAfterFailure()
      const file = unnamedFile(temporary)
      return {
        file,
        end(content) {
          refuseAfterFailure()
          const work = queue.add(() => upload(path, file, content)).then(() => void unfinished.delete(work))
          unfinished.add(work)
        },
        abandon: () => closeSync(file),
      }
    },
    async uploaded() {
      await Promise.all(unfinished)
      refuseAfterFailure()
    },
  }
}

const CHUNK_BYTES = 256 * 1024

const readable = (file: number): Readable => Readable.from(chunksOf(file), { objectMode: false })

async function* chunksOf(file: number): AsyncGenerator<Buffer> {
  for (let from = 0; ; ) {
    const { bytesRead, buffer } = await readFrom(file, Buffer.allocUnsafe(CHUNK_BYTES), 0, CHUNK_BYTES, from)
    if (bytesRead === 0) return
    yield buffer.subarray(0, bytesRead)
    from += bytesRead
  }
}

/** The limit of S3 for one PUT. */
export const MAX_OBJECT_BYTES = 5 * 2 ** 30

/** How many bytes one request asks for. */
const PIECE_BYTES = 8 * 2 ** 20

/**
 * Downloads an object that may not fit into memory, so that it can be read in any order and is transferred once.
 * @param readRange returns fewer bytes than asked for at the end of the object; undefined where there is no such object
 */
export async function download(
  path: string,
  temporary: string,
  readRange: (path: string, from: number, bytes: number) => Promise<Buffer | undefined>,
): Promise<StoredFile | undefined> {
  const file = unnamedFile(temporary)
  try {
    for (let bytes = 0, isWhole = false; !isWhole; ) {
      const piece = await readRange(path, bytes, PIECE_BYTES)
      if (piece === undefined) {
        closeSync(file)
        return undefined
      }
      await append(file, piece).catch(error => {
        throw temporaryError(error, temporary)
      })
      bytes += piece.length
      isWhole = piece.length < PIECE_BYTES
    }
    return storedFile(file, path)
  } catch (error) {
    closeSync(file)
    throw error
  }
}

const append = promisify(appendFile)

function unnamedFile(temporary: string): number {
  try {
    return createUnnamedFile(temporary)
  } catch (error) {
    throw temporaryError(error, temporary)
  }
}

const temporaryError = (cause: unknown, temporary: string): StopError =>
  new StopError(`Cannot write a temporary file in ${temporary}`, {
    code: 'publish-no-temporary-folder',
    hint: 'Set TMPDIR to a folder that this user may write, with space for the largest table.',
    cause,
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
