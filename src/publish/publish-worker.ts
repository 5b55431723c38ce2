import { systemClock } from '../base/clock.ts'
import { errorCode, exitStatusOf, ParleyError, type StopError } from '../base/errors.ts'
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
    if (!(error instanceof ParleyError)) return { fault: errorCode(error) ?? nameOf(error) }
    const { message, code, hint } = error
    return { failed: { message, code, hint, exitStatus: exitStatusOf(error) } }
  }
})

const nameOf = (error: unknown): string => (error instanceof Error ? error.name : 'unknown')
