import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Gives the whole run one folder for temporary files, of tests and of the processes they start, and removes it. */
export function setup(): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'parley-tests-'))
  // Some tests read as another user, who needs access to it.
  chmodSync(folder, 0o711)
  process.env['TMPDIR'] = folder
  return () => rmSync(folder, { recursive: true, force: true })
}
