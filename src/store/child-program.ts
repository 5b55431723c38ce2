import { type ChildProcess, fork } from 'node:child_process'

/** One order for a program of parley's that runs in a process of its own. */
export interface ChildOrder {
  /** The compiled program: it takes one message, answers with one and ends. */
  program: URL
  order: object
  /** All of its environment: there are secrets in ours. */
  env?: Record<string, string>
  /** Ends it; its reason is what is then rejected with. */
  signal: AbortSignal
  /** The error for a process that ended without an answer. */
  cutOff(how: string): Error
}

/** Its heap holds a few rows; what the database needs is outside of it. */
const EXEC_ARGV = ['--max-semi-space-size=2']

/**
 * Resolves with the program's answer when its process has ended. It is a process and not a thread: nothing can end a
 * thread that is inside SQLite, so that a stop would have to wait for it.
 */
export function askProgram<Answer>({ program, order, env, signal, cutOff }: ChildOrder): Promise<Answer> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const child: ChildProcess = fork(program, [], {
      execArgv: EXEC_ARGV,
      env: env ?? {},
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
    let answer: { said: Answer } | undefined
    const end = () => child.kill('SIGKILL')
    signal.addEventListener('abort', end, { once: true })
    child.on('message', said => {
      answer = { said: said as Answer }
    })
    child.on('error', error => reject(cutOff(error.message)))
    child.on('close', (status, killedBy) => {
      signal.removeEventListener('abort', end)
      if (signal.aborted) reject(signal.reason)
      else if (answer) resolve(answer.said)
      else reject(cutOff(killedBy ?? `status ${status}`))
    })
    child.send(order, error => {
      if (error) end()
    })
  })
}
