import { spawn } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

const PROGRAM = new URL('../../dist/cli.js', import.meta.url).pathname

export interface Ended {
  status: number | null
  stdout: string
  stderr: string
}

export interface Surroundings {
  cwd?: string
  env?: Record<string, string>
  /** Closes the reading end of standard output before the program can write. */
  deaf?: boolean
}

/** Runs the built program to its end, with nothing of this process's environment but the search path. */
export async function parley(args: readonly string[], around: Surroundings = {}): Promise<Ended> {
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    cwd: around.cwd ?? emptyFolder(),
    env: { PATH: process.env['PATH'], ...around.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = new Promise<number | null>(resolve => child.on('close', resolve))
  if (around.deaf) child.stdout.destroy()
  const [stdout, stderr] = await Promise.all([around.deaf ? '' : text(child.stdout), text(child.stderr)])
  return { status: await ended, stdout, stderr }
}

export function emptyFolder(): string {
  return mkdtempSync(join(tmpdir(), 'parley-cli-'))
}
