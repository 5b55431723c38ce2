import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

const PROGRAM = process.env['PARLEY_PROGRAM'] ?? new URL('../../dist/cli.js', import.meta.url).pathname

export interface Ended {
  /** Null when a signal ended the process. */
  status: number | null
  stdout: string
  stderr: string
}

export interface ParleyProcess {
  pid: number | undefined
  ended: Promise<Ended>
  kill(signal: 'SIGKILL' | 'SIGTERM' | 'SIGINT'): void
}

export interface Service {
  url: string
  apiKey: string
  workspaceId: string
}

/**
 * Starts the built program against a service, with only the search path of this process's environment. The file itself
 * is executed, so that its first line applies: without that line the memory use would differ.
 */
export function startParley(
  args: readonly string[],
  service: Service,
  env: Readonly<Record<string, string>> = {},
): ParleyProcess {
  const child: ChildProcess = spawn(PROGRAM, args, {
    cwd: newFolder(),
    env: {
      PATH: process.env['PATH'],
      PARLEY_BASE_URL: service.url,
      PARLEY_API_KEY: service.apiKey,
      PARLEY_WORKSPACE_ID: service.workspaceId,
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const status = new Promise<number | null>(resolve => child.on('close', resolve))
  const output = (stream: NodeJS.ReadableStream | null) => (stream ? text(stream) : '')
  return {
    pid: child.pid,
    ended: Promise.all([status, output(child.stdout), output(child.stderr)]).then(
      ([code, stdout, stderr]) => ({ status: code, stdout, stderr }),
    ),
    kill: signal => {
      child.kill(signal)
    },
  }
}

export function newFolder(): string {
  return mkdtempSync(join(tmpdir(), 'parley-trial-'))
}
