import { systemClock } from '../base/clock.ts'
import { EXIT_STATUS, errorCode, exitStatusOf, ParleyError, StopError } from '../base/errors.ts'
import { lowerPriority } from '../base/lower-priority.ts'
import { answerParent } from '../store/database/child-program.ts'
import { publishOnce } from './publish-once.ts'
import type { PublishAnswer, PublishInput } from './publish-process.ts'

/** The program of the child process in publish-process.ts. It makes one publication, answers, and exits. */

const orphaned = new AbortController()
process.once('disconnect', () => orphaned.abort(new Error('The parent process has ended')))

answerParent(async (input: PublishInput): Promise<PublishAnswer> => {
  lowerPriority()
  try {
    const onEmptied = (error: StopError) => {
      throw error
    }
    const work = { clock: systemClock(), signal: orphaned.signal, onProgress: () => undefined, onEmptied }
    return { summary: await publishOnce({ ...input, ...work }) }
  } catch (error) {
    const raised = error instanceof ParleyError ? error : faultError(error)
    const { message, code, hint } = raised
    return { failed: { message, code, hint, exitStatus: exitStatusOf(raised) } }
  }
})

/** The error to report for an unexpected one. It has only the code or name of that, since a message may quote data. */
function faultError(error: unknown): StopError {
  const name = errorCode(error) ?? (error instanceof Error ? error.name : 'unknown')
  return new StopError(`A fault of the program ended the publication (${name})`, {
    code: 'publish-fault',
    hint: 'Run parley publish: it shows where.',
    exitStatus: EXIT_STATUS.fault,
  })
}
