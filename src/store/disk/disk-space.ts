import { dirname } from 'node:path'
import { EXIT_STATUS, StopError } from '../../base/errors.ts'
import { sizeText } from '../../base/size-text.ts'

/** Bytes that this process may still write to the disk of a folder. */
export type FreeBytes = (folder: string) => number | Promise<number>

interface SpaceNeed {
  /** Path of the file that needs the space. */
  file: string
  bytes: number
  message: string
  code: string
  /** End of the hint, with its punctuation. */
  advice: string
}

/**
 * @param free bytes that may still be written to the folder of the file
 * @throws StopError 73
 */
export function requireSpace(free: number, { file, bytes, message, code, advice }: SpaceNeed): void {
  if (free >= bytes) return
  const folder = dirname(file)
  throw new StopError(message, {
    code,
    hint: `Free ${sizeText(bytes - free)} more in ${folder} (needed: ${sizeText(bytes)})${advice}`,
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}
