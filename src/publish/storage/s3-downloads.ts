import { randomUUID } from 'node:crypto'
import { appendFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { EXIT_STATUS, StopError } from '../../base/errors.ts'
import { openStoredFile, type StoredFile } from './target-reader.ts'
import { createTemporaryFolder, type TemporaryFolder } from './temporary-folder.ts'

/**
 * Downloads of objects that may not fit into memory. Each is a temporary file while it is open, so that it can be read
 * in any order and is transferred once.
 */
export interface Downloads {
  /** Undefined where there is no such object. @throws StopError 73 */
  open(path: string): Promise<StoredFile | undefined>
  close(): void
}

export interface DownloadsOptions {
  /** The folder in which a new folder for the files is created, with the first download. */
  temporary: string
  clock: Clock
  /** Fewer bytes than asked for at the end of the object. Undefined where there is no such object. */
  readRange(path: string, from: number, bytes: number): Promise<Buffer | undefined>
}

/** What one request asks for. */
const PIECE_BYTES = 8 * 2 ** 20

export function createDownloads({ temporary, clock, readRange }: DownloadsOptions): Downloads {
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
    throw new StopError(`Cannot write a downloaded file in ${temporary}`, {
      code: 'publish-no-temporary-folder',
      hint: 'Set TMPDIR to a folder that this user may write, with space for the largest file of the target.',
      cause: error,
      exitStatus: EXIT_STATUS.databaseUnavailable,
    })
  }
}
