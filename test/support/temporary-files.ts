import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Creates one temporary folder for all tests and the processes that they start, and removes it at the end. */
export function setup(): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'parley-tests-'))
  // Some tests read as another user, who needs access to the folder.
  chmodSync(folder, 0o711)
  process.env['TMPDIR'] = folder
  return () => rmSync(folder, { recursive: true, force: true })
}
