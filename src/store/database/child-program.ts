import { type ChildProcess, fork } from 'node:child_process'
import { killGroup, leaveSignalsToParent } from '../../base/process-signals.ts'

/** One run of a program in a child process. */
export interface ChildProgram {
  /** URL of the compiled program. It receives `input` as its only message, answers with one message, and exits. */
  program: URL
  input: object
  /** The child's complete environment. The child inherits nothing, because the parent's environment holds secrets. */
  env?: Record<string, string>
  /** Aborting it kills the child and what it has started. The promise then rejects with the signal's reason. */
  signal: AbortSignal
  /** The error for a child that ended without an answer. @param how the error, the signal or the exit status */
  noAnswerError(how: string): Error
}

/** The child's heap holds a few rows only; SQLite allocates outside of it. */
const EXEC_ARGV = ['--max-semi-space-size=2']

/**
 * Runs the program in a child process, and resolves with its answer when the process has ended. No thread is used: a
 * thread inside SQLite cannot be terminated, so stopping parley would have to wait for it. The child leads a process
 * group, which is killed with it: a program that the child has started, such as one for credentials, may never end.
 */
export function runProgram<Answer>({
  program,
  input,
  env,
  signal,
  noAnswerError,
}: ChildProgram): Promise<Answer> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const child: ChildProcess = fork(program, [], {
      detached: true,
      execArgv: EXEC_ARGV,
      env: env ?? {},
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      // JSON would lose the types of an answer, such as a Map.
      serialization: 'advanced',
    })
    let answer: { value: Answer } | undefined
    const kill = () => killGroup(child.pid)
    signal.addEventListener('abort', kill, { once: true })
    child.on('message', message => {
      answer = { value: message as Answer }
      // Timers and connections that the work left behind would keep the process running.
      kill()
    })
    child.on('error', error => reject(noAnswerError(error.message)))
    child.on('exit', () => {
      signal.removeEventListener('abort', kill)
      // What the child has started outlives a child that ended by itself.
      kill()
    })
    child.on('close', (status, killedBy) => {
      if (signal.aborted) reject(signal.reason)
      else if (answer) resolve(answer.value)
      else reject(noAnswerError(killedBy ?? `status ${status}`))
    })
    child.send(input, error => {
      if (error) kill()
    })
  })
}

/**
 * Answers the parent's message, and lets the child process end. The parent kills its process group once it has the
 * answer. The child does so itself if the parent has ended. The last statement of a child's program calls it.
 * @param onLost called when the parent has ended and gets no answer
 */
export function answerParent<Input>(work: (input: Input) => unknown, onLost?: (input: Input) => void): void {
  leaveSignalsToParent()
  process.once('message', async (input: Input) => {
    process.send?.(await work(input), undefined, undefined, lost => {
      if (lost) {
        onLost?.(input)
        killGroup(process.pid)
      }
      if (process.connected) process.disconnect()
    })
  })
}
