import { dirname } from 'node:path'
import { askProgram } from './child-program.ts'

/** What the process of `rebuildOnDisk` is told. */
export interface RebuildOrder {
  database: string
}

/** The compiled one. Where only sources are, as in tests, there is none. */
const PROGRAM = new URL('./rebuild-worker.js', import.meta.url)

/**
 * Writes the whole database anew, in a process of its own and with its temporary file in the database's folder, so that
 * neither memory nor a small /tmp bounds its size. Nothing else may write meanwhile. Needs about twice the database's
 * size of free space there.
 * @returns false where it was not done, or was ended by the signal: the database is then as it was
 */
export async function rebuildOnDisk(
  database: string,
  signal: AbortSignal,
  program = PROGRAM,
): Promise<boolean> {
  const order: RebuildOrder = { database }
  const env = { SQLITE_TMPDIR: dirname(database) }
  try {
    return await askProgram<boolean>({ program, order, env, signal, cutOff: how => new Error(how) })
  } catch {
    return false
  }
}
