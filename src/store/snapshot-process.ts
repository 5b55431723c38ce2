import { type ChildProcess, fork } from 'node:child_process'
import { EXIT_STATUS, StopError } from '../errors.ts'

/**
 * The process that makes a snapshot, as the one that asks for it sees it. It is a process and not a thread: nothing
 * can end a thread that is inside SQLite, so that whoever is to stop would have to wait for it.
 */

/** What it is told. */
export interface SnapshotOrder {
  database: string
  /** Where it writes: a new file. */
  part: string
  /** One that should be of the same warehouse. */
  earlier: string | undefined
  statusSql: string
}

/**
 * What it answers; the code is SQLite's or the system's, or `unsound` for a copy that is not as it should be, or
 * `other` where the earlier one is of another warehouse.
 */
export type SnapshotAnswer = WholeCopy | { failed: { about: 'database' | 'snapshot'; code: string } }

export interface WholeCopy {
  bytes: number
  /** What the order's statement finds in it. */
  status: readonly unknown[]
}

/** Its heap holds a few rows; what the database needs is outside of it. It gets no environment: there are secrets in it. */
const PROCESS = {
  execArgv: ['--max-semi-space-size=2'],
  env: {},
  stdio: ['ignore', 'ignore', 'ignore', 'ipc'] as const,
}

/**
 * Resolves when it has ended; the signal ends it, and its reason is what is then rejected with.
 * @throws StopError 75 when it ended without an answer
 */
export function askProcess(program: URL, order: SnapshotOrder, signal: AbortSignal): Promise<SnapshotAnswer> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const child: ChildProcess = fork(program, [], { ...PROCESS, stdio: [...PROCESS.stdio] })
    let answer: SnapshotAnswer | undefined
    const end = () => child.kill('SIGKILL')
    signal.addEventListener('abort', end, { once: true })
    child.on('message', said => {
      answer = said as SnapshotAnswer
    })
    child.on('error', error => reject(cutOff(order.database, error.message)))
    child.on('close', (status, killedBy) => {
      signal.removeEventListener('abort', end)
      if (signal.aborted) reject(signal.reason)
      else if (answer) resolve(answer)
      else reject(cutOff(order.database, killedBy ?? `status ${status}`))
    })
    child.send(order, error => {
      if (error) end()
    })
  })
}

export const cutOff = (database: string, how: string): StopError =>
  new StopError(`The snapshot of ${database} failed: the process that makes it was cut off (${how})`, {
    code: 'snapshot-cut-off',
    hint: 'Try it again; if it stays so, look for a limit on memory or on processes.',
    exitStatus: EXIT_STATUS.unfinished,
  })
