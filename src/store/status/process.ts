import { runProgram } from '../database/child-program.ts'
import type { CountedStatus } from './overview.ts'
import type { StartCountedRead } from './thread.ts'

/** The compiled program. It is missing when parley runs from its sources, as in tests. */
const PROGRAM = new URL('./worker.js', import.meta.url)

/**
 * Reads in a child process that the signal kills. A thread that is inside SQLite cannot be terminated, so the end of a
 * command would wait for it.
 * @returns a function that never rejects. Its result is undefined when the process was killed or could not read
 */
export function countedReadInProcess(signal: AbortSignal, program: URL = PROGRAM): StartCountedRead {
  return async input => {
    try {
      const noAnswerError = (how: string) => new Error(how)
      return await runProgram<CountedStatus>({ program, input, signal, noAnswerError })
    } catch {
      return undefined
    }
  }
}
