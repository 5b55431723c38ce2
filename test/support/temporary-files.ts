import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Several times what the tests leave there until they end. */
const ENOUGH_BYTES = 8 * 2 ** 30

/** Creates one temporary folder for all tests and the processes that they start, and removes it at the end. */
export function setup(): () => void {
  const folder = mkdtempSync(join(isMemoryRoomy() ? MEMORY : tmpdir(), 'parley-tests-'))
  // Some tests read as another user, who needs access to the folder.
  chmodSync(folder, 0o711)
  process.env['TMPDIR'] = folder
  return () => rmSync(folder, { recursive: true, force: true })
}

const MEMORY = '/dev/shm'

/** Thousands of databases and many installations take a disk minutes to write and to remove. */
function isMemoryRoomy(): boolean {
  if (process.env['TMPDIR'] !== undefined || !existsSync(MEMORY)) return false
  const { bavail, bsize } = statfsSync(MEMORY)
  const options = readFileSync('/proc/mounts', 'utf8')
    .match(/^\S+ \/dev\/shm \S+ (\S+)/m)?.[1]
    ?.split(',')
  return (
    Math.min(bavail * bsize, process.availableMemory()) >= ENOUGH_BYTES &&
    options !== undefined &&
    !options.includes('noexec')
  )
}
