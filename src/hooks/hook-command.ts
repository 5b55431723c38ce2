import { type ChildProcess, spawn } from 'node:child_process'
import { type Clock, SECOND_MS } from '../base/clock.ts'
import { errorCode } from '../base/errors.ts'
import { killGroup } from '../base/process-signals.ts'
import { jsonLine } from '../base/safe-text.ts'
import type { Environment } from '../config/loaded-settings.ts'
import { environmentName, fileEnvironmentName, SECRETS } from '../config/settings.ts'
import { type HookPayload, hookVariables } from './call.ts'

export interface CommandDeps {
  clock: Clock
  /** The environment of this process. */
  env: Environment
}

const LIMIT_MS = 30 * SECOND_MS

/**
 * Runs the command in a separate process group, which is killed after 30 s, or when the signal is aborted. Never
 * rejects.
 * @returns why the call failed; undefined when the command ended with status 0
 */
export async function runHookCommand(
  command: string,
  payload: HookPayload,
  { clock, env, signal }: CommandDeps & { signal: AbortSignal },
): Promise<string | undefined> {
  let child: ChildProcess
  try {
    const variables = { ...withoutSecrets(env), ...hookVariables(payload) }
    child = spawn('/bin/sh', ['-c', command], {
      detached: true,
      env: variables,
      stdio: ['pipe', 'ignore', 'ignore'],
    })
  } catch (error) {
    return errorCode(error) ?? 'the command cannot be started'
  }
  const over = new AbortController()
  const ended = endOf(child).finally(() => over.abort())
  // A command that does not read its input closes the pipe. That is no failure.
  child.stdin?.on('error', () => undefined)
  child.stdin?.end(jsonLine(payload))
  await clock.sleep(LIMIT_MS, AbortSignal.any([signal, over.signal]))
  if (over.signal.aborted) return ended
  // The shell leads the group, so that its children are killed too.
  killGroup(child.pid)
  await ended
  return signal.aborted ? 'parley ends' : `it did not end within ${LIMIT_MS / SECOND_MS} s`
}

function endOf(child: ChildProcess): Promise<string | undefined> {
  return new Promise(resolve => {
    child.on('error', error => resolve(errorCode(error) ?? 'the command cannot be started'))
    child.on('exit', (status, signal) => {
      if (status === 0) resolve(undefined)
      else resolve(status === null ? `signal ${signal}` : `exit status ${status}`)
    })
  })
}

/**
 * Variables of the daemon that a command does not get. With NOTIFY_SOCKET, it could tell systemd that the daemon stops.
 */
const OWN_VARIABLES = ['CREDENTIALS_DIRECTORY', 'NOTIFY_SOCKET', 'WATCHDOG_PID', 'WATCHDOG_USEC']

function withoutSecrets(env: Environment): Record<string, string | undefined> {
  const secret = SECRETS.flatMap(([key]) => [environmentName(key), fileEnvironmentName(key)])
  const dropped = [...secret, ...OWN_VARIABLES]
  return Object.fromEntries(Object.entries(env).filter(([name]) => !dropped.includes(name)))
}
