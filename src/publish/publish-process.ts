import { tmpdir } from 'node:os'
import { EXIT_STATUS, type ExitStatus, StopError } from '../base/errors.ts'
import type { Environment } from '../config/loaded-settings.ts'
import { runProgram } from '../store/database/child-program.ts'
import type { PublishSummary } from './publish.ts'
import type { OncePublishing } from './publish-once.ts'

/** Publishes in a child process, so that neither the event loop nor a slow target delays the caller. */

/** Input of the child process. It arrives through a pipe that other users cannot read. */
export type PublishInput = Pick<OncePublishing, 'database' | 'target' | 'settings' | 'version'>

/** The answer of the child process. */
export type PublishAnswer =
  | { summary: PublishSummary }
  | { failed: { message: string; code: string; hint: string | undefined; exitStatus: ExitStatus } }

export interface PublishProcess {
  input: PublishInput
  env: Environment
  /** Aborting it kills the child. The target keeps the last complete publication. */
  signal: AbortSignal
  /** The program of the child process. */
  program?: URL | undefined
}

const PROGRAM = new URL('./publish-worker.js', import.meta.url)

/**
 * The environment variables that the child process gets for a bucket: those for certificates and credentials, and
 * `PATH` for programs that a profile may name. Other variables may hold secrets.
 */
const PASSED = /^(NODE_EXTRA_CA_CERTS|HOME|PATH|AWS_\w+)$/

/**
 * @throws StopError as the publication; exit status 1 after a fault of the program, 75 when the process gave no answer
 */
export async function runPublishProcess({
  input,
  env,
  signal,
  program = PROGRAM,
}: PublishProcess): Promise<PublishSummary> {
  const passed = Object.entries(env).filter(([name]) => input.target.by === 's3' && PASSED.test(name))
  const answer = await runProgram<PublishAnswer>({
    program,
    input,
    env: { TMPDIR: tmpdir(), ...Object.fromEntries(passed) },
    signal,
    noAnswerError: cutOffError,
  })
  if ('summary' in answer) return answer.summary
  const { message, ...details } = answer.failed
  throw new StopError(message, { ...details, hint: details.hint ?? 'Remove the cause.' })
}

const cutOffError = (how: string): StopError =>
  new StopError(`The process that publishes ended early (${how})`, {
    code: 'publish-cut-off',
    hint: 'If it happens again, check the memory and process limits of this user or service.',
    exitStatus: EXIT_STATUS.unfinished,
  })
