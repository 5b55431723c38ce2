import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { devNull } from 'node:os'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Environment } from '../config.ts'
import { EXIT_STATUS, StopError } from '../errors.ts'

/** The processes of a demo: a simulator, and the real parley that reads it. */

/** What a made-up workspace holds. */
export interface Sizes {
  messages: number
  meetings: number
  deals: number
}

/** @throws StopError (64) on anything but a number of messages that makes a workspace worth looking at */
export function sizesFor(text: string): Sizes {
  const messages = Number(text)
  if (!/^\d{3,7}$/.test(text)) {
    throw new StopError(`--messages: expected a whole number from 100 to 9999999, not ${text}`, {
      code: 'demo-size',
      exitStatus: EXIT_STATUS.usage,
    })
  }
  return { messages, meetings: Math.ceil(messages / 10), deals: Math.ceil(messages / 30) }
}

/** Requests a second that the simulator allows, and at once. */
export interface Limit {
  rate: number
  burst: number
}

export interface Service {
  url: string
  key: string
  workspace_id: string
}

/** The program that runs now, as the file that a child is started from. */
export const CLI = fileURLToPath(
  new URL(`../cli${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url),
)

/**
 * In a group of its own, so that Ctrl-C reaches this process alone, which then ends its children in order; and with a
 * channel to it, so that a child ends when this process does, even on SIGKILL.
 */
const APART = { detached: true } as const

/** @param more further flags of `parley simulate` */
export function startSimulator(
  env: Environment,
  { messages, meetings, deals }: Sizes,
  { rate, burst }: Limit,
  more: readonly string[] = [],
): ChildProcess {
  const sizes = ['--messages', messages, '--meetings', meetings, '--deals', deals].map(String)
  const behaviour = ['--latency', '15', '--limit', `token-bucket:${rate},${burst}`]
  return fork(CLI, ['simulate', '--port', '0', '--json', ...sizes, ...behaviour, ...more], {
    ...APART,
    env: foreign(env),
    stdio: ['ignore', 'pipe', 'ignore', 'ipc'],
  })
}

/** Undefined when it was ended before it listened. */
export async function listening({ stdout }: ChildProcess, signal: AbortSignal): Promise<Service | undefined> {
  if (stdout) for await (const line of createInterface({ input: stdout })) return JSON.parse(line) as Service
  if (signal.aborted) return undefined
  throw new Error('parley simulate ended before it listened')
}

export interface ParleyStart {
  cwd: string
  env: Environment
  service: Service
  /** The database. */
  file: string
  stderr: 'inherit' | 'pipe'
}

/** The real command in a process of its own. */
export function startParley(
  args: readonly string[],
  { cwd, env, service, file, stderr }: ParleyStart,
): ChildProcess {
  return fork(CLI, args, {
    ...APART,
    cwd,
    env: {
      ...foreign(env),
      PARLEY_BASE_URL: service.url,
      PARLEY_API_KEY: service.key,
      PARLEY_WORKSPACE_ID: service.workspace_id,
      PARLEY_DATABASE: file,
    },
    stdio: ['ignore', 'ignore', stderr, 'ipc'],
  })
}

export async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill()
  await once(child, 'exit')
}

/** Settings of the person who runs the demo are not for it. */
function foreign(env: Environment): Environment {
  const others = Object.entries(env).filter(([name]) => !name.startsWith('PARLEY_'))
  return { ...Object.fromEntries(others), PARLEY_CONFIG: devNull }
}
