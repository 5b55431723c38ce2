import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { errorCode } from '../../error-code.ts'
import { EXIT_STATUS, StopError } from '../../errors.ts'

/** A target that is only read: nothing is locked, marked or written, so publications go on at the same time. */
export interface TargetReader {
  /** Undefined where there is no such object. @throws StopError 73 when the target cannot be read */
  read(path: string): Promise<Buffer | undefined>
  close(): void
}

/** @param path an absolute path. A folder that does not exist is a target without objects. */
export function folderReader(path: string): TargetReader {
  return {
    async read(file) {
      try {
        return await readFile(join(path, file))
      } catch (error) {
        const code = errorCode(error)
        if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
        throw new StopError(`Cannot read ${file} in ${path} (${code ?? 'unknown error'})`, {
          code: 'publish-unreadable',
          hint: 'Check the disk and the permissions of the folder.',
          cause: error,
          exitStatus: EXIT_STATUS.databaseUnavailable,
        })
      }
    },
    close: () => undefined,
  }
}
