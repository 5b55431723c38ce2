import { createHash, randomUUID } from 'node:crypto'
import { createReadStream, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import PQueue from 'p-queue'
import type { FileContent } from './s3-client.ts'
import type { FileInProgress } from './storage.ts'

/**
 * Uploads of local files. A file is being written, waits, is uploaded, and is removed then. After the first error
 * nothing more is uploaded, and every verb throws it.
 */
export interface Uploads {
  begin(path: string): FileInProgress
  /** Resolves when every file that has ended before this call is uploaded. */
  finished(): Promise<void>
}

export interface UploadsOptions {
  folder: string
  put(path: string, content: FileContent): Promise<void>
}

const AT_ONCE = 8

export function createUploads({ folder, put }: UploadsOptions): Uploads {
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
    begin(path) {
      refuseAfterFailure()
      const file = join(folder, `${randomUUID()}.parquet`)
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
    async finished() {
      await Promise.all(unfinished)
      refuseAfterFailure()
    },
  }
}

const CHUNK_BYTES = 256 * 1024

async function fileContent(file: string): Promise<FileContent> {
  // Opened with the first chunk: nothing would handle an error of a request that was stopped before.
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
