import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { devNull } from 'node:os'
import { extname } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { EXIT_STATUS, StopError } from '../../base/errors.ts'
import type { Environment } from '../../config/load-settings.ts'

/** The processes of a demo: a simulator, and the real parley. */

export interface DemoSizes {
  messages: number
  meetings: number
  deals: number
}

/** @throws StopError (exit status 64) unless the text is a number from 100 to 9999999 */
export function parseSizes(text: string): DemoSizes {
  const messages = Number(text)
  if (!/^\d{3,7}$/.test(text)) {
    throw new StopError(`--messages is ${text}: expected a whole number from 100 to 9999999`, {
      code: 'demo-size',
      exitStatus: EXIT_STATUS.usage,
    })
  }
  return { messages, meetings: Math.ceil(messages / 10), deals: Math.ceil(messages / 30) }
}

/** The simulator's rate limit, a token bucket. */
export const LIMIT = { perSecond: 400, burst: 100 } as const

export interface SimulatorAddress {
  url: string
  key: string
  workspace_id: string
}

/** The file of this program, to start child processes from. */
export const CLI = fileURLToPath(
  new URL(`../../cli${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url),
)

/**
 * Children run in a separate process group, so that Ctrl-C reaches only this process, which then ends the children in
 * order. The IPC channel ends a child when this process dies, even by SIGKILL.
 */
const OWN_GROUP = { detached: true } as const

/** @param more additional flags of `parley simulate` */
export function startSimulatorProcess(
  env: Environment,
  { messages, meetings, deals }: DemoSizes,
  more: readonly string[],
): ChildProcess {
  const sizes = ['--messages', messages, '--meetings', meetings, '--deals', deals].map(String)
  const behaviour = ['--latency', '15', '--limit', `token-bucket:${LIMIT.perSecond},${LIMIT.burst}`]
  return fork(CLI, ['simulate', '--port', '0', '--json', ...sizes, ...behaviour, ...more], {
    ...OWN_GROUP,
    env: demoEnvironment(env),
    stdio: ['ignore', 'pipe', 'ignore', 'ipc'],
  })
}

/** Waits until the simulator listens; undefined when the demo was stopped before that. */
export async function waitForService(
  { stdout }: ChildProcess,
  signal: AbortSignal,
): Promise<SimulatorAddress | undefined> {
  if (stdout)
    for await (const line of createInterface({ input: stdout })) return JSON.parse(line) as SimulatorAddress
  if (signal.aborted) return undefined
  throw new Error('parley simulate ended before it listened')
}

const STDERR = 2

interface ParleyStart {
  cwd: string
  env: Environment
  service: SimulatorAddress
  /** The database file. */
  file: string
  /** Where standard output goes. Default: to standard error. */
  stdout?: 'pipe'
  /** By how many ms the process's clock is behind. Default 0. */
  behindMs?: number
}

/** The workspace has deals in three currencies, which reports convert to one currency. */
const CURRENCIES = {
  PARLEY_REPORTING_CURRENCY: 'EUR',
  PARLEY_REPORTING_RATES: 'USD=0.9,JPY=0.006',
}

/** The module that sets the clock of a process back. */
const PAST_CLOCK = new URL(`../../simulator/past-clock${extname(CLI)}`, import.meta.url)

export function startParley(
  args: readonly string[],
  { cwd, env, service, file, stdout, behindMs = 0 }: ParleyStart,
): ChildProcess {
  const clock = behindMs > 0 ? ['--import', `${PAST_CLOCK}?ms=${behindMs}`] : []
  return fork(CLI, args, {
    ...OWN_GROUP,
    execArgv: [...process.execArgv, ...clock],
    cwd,
    env: {
      ...demoEnvironment(env),
      PARLEY_BASE_URL: service.url,
      PARLEY_API_KEY: service.key,
      PARLEY_WORKSPACE_ID: service.workspace_id,
      PARLEY_DATABASE: file,
      ...CURRENCIES,
    },
    // The result of a backfill is shown with its log: standard output is for what the demo itself prints.
    stdio: ['ignore', stdout ?? STDERR, 'inherit', 'ipc'],
  })
}

export async function endProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill()
  await once(child, 'exit')
}

/** The environment without the user's own parley settings. */
function demoEnvironment(env: Environment): Environment {
  const others = Object.entries(env).filter(([name]) => !name.startsWith('PARLEY_'))
  return { ...Object.fromEntries(others), PARLEY_CONFIG: devNull }
}
