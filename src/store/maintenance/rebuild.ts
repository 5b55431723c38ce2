import { dirname } from 'node:path'
import { runProgram } from '../database/child-program.ts'

/** Input of the child process. */
export interface RebuildInput {
  database: string
}

/** The compiled program. It is missing when parley runs from its sources, as in tests. */
const PROGRAM = new URL('./rebuild-worker.js', import.meta.url)

/**
 * Rewrites the whole database (VACUUM) in a child process, for `clean` in `store/deletions/purge.ts`. The temporary
 * file is in the folder of the database, so the database may be larger than the memory or /tmp. That folder needs free
 * space of about twice the size of the database. No other process may write meanwhile.
 * @returns false when it failed or the signal aborted it; the database is then unchanged
 */
export async function rebuildOnDisk(
  database: string,
  signal: AbortSignal,
  program = PROGRAM,
): Promise<boolean> {
  const input: RebuildInput = { database }
  const env = { SQLITE_TMPDIR: dirname(database) }
  try {
    return await runProgram<boolean>({ program, input, env, signal, noAnswerError: how => new Error(how) })
  } catch {
    return false
  }
}
