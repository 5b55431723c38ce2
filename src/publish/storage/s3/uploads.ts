import { createHash, randomUUID } from 'node:crypto'
import { createReadStream, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { FileInProgress } from '../storage.ts'
import type { RequestBody } from './requests.ts'

/**
 * Uploads of local files. A file is being written, waits, is uploaded, and is removed then. After the first error
 * nothing more is uploaded, and every verb throws it.
 */
export interface Uploads {
  begin(path: string): FileInProgress
  /** Resolves when every ended file is uploaded. */
  finished(): Promise<void>
}

export interface UploadsOptions {
  folder: string
  put(path: string, body: RequestBody): Promise<void>
}

const AT_ONCE = 4

export function createUploads({ folder, put }: UploadsOptions): Uploads {
  const waiting: { path: string; file: string }[] = []
  const running = new Set<Promise<void>>()
  let failure: { error: unknown } | undefined

  const upload = async ({ path, file }: { path: string; file: string }): Promise<void> => {
    try {
      await put(path, await fileBody(file))
      rmSync(file, { force: true })
    } catch (error) {
      failure ??= { error }
      waiting.length = 0
    }
  }
  const start = () => {
    while (running.size < AT_ONCE) {
      const next = waiting.shift()
      if (next === undefined) return
      const work: Promise<void> = upload(next).then(() => {
        running.delete(work)
        start()
      })
      running.add(work)
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
          waiting.push({ path, file })
          start()
        },
        abandon: () => rmSync(file, { force: true }),
      }
    },
    async finished() {
      while (running.size > 0) await Promise.all(running)
      refuseAfterFailure()
    },
  }
}

const CHUNK_BYTES = 256 * 1024

async function fileBody(file: string): Promise<RequestBody> {
  const chunks = () => createReadStream(file, { highWaterMark: CHUNK_BYTES })
  const hash = createHash('sha256')
  const { size } = statSync(file)
  // A file that is too large is refused by its size, so its digest is not needed.
  if (size <= MAX_OBJECT_BYTES) for await (const chunk of chunks()) hash.update(chunk)
  return { bytes: size, sha256: hash.digest('hex'), chunks }
}

/** The limit of S3 for one PUT. */
export const MAX_OBJECT_BYTES = 5 * 2 ** 30

export function bytesBody(bytes: Buffer): RequestBody {
  return {
    bytes: bytes.length,
    sha256: createHash('sha256').update(bytes).digest('hex'),
    chunks: () => [bytes],
  }
}
