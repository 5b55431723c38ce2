import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import type * as CommandLine from '../../src/command-line/command-line.ts'

export const PROGRAM = new URL('../../dist/cli.js', import.meta.url).pathname

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
  /** Default: this checkout's. */
  program?: string
}

/** A running program. */
export interface Running {
  child: ChildProcess
  ended: Promise<Ended>
  /** Resolves when standard error has shown this text. */
  says(text: string): Promise<void>
}

/**
 * Runs the built command line in this process, with nothing of its environment but the search path, unless a variable
 * concerns Node or the linker. What else only a separate process shows, such as locks and the ends of pipes, needs
 * `parleyProcess`.
 */
export async function parley(
  args: readonly string[],
  around: Omit<Surroundings, 'deaf' | 'program'> = {},
): Promise<Ended> {
  if (Object.keys(around.env ?? {}).some(name => /^(NODE|LD)_/.test(name))) return parleyProcess(args, around)
  const { runCommandLine }: typeof CommandLine = await import(COMMAND_LINE)
  const output = { stdout: '', stderr: '' }
  const into = (name: keyof typeof output) => ({
    write(text: string) {
      output[name] += text
    },
  })
  const status = await runCommandLine(args, {
    env: { PATH: process.env['PATH'], ...around.env },
    cwd: around.cwd ?? emptyFolder(),
    stdout: into('stdout'),
    stderr: into('stderr'),
    log: into('stderr'),
    stdin: NOBODY,
    signal: new AbortController().signal,
    onSignal: () => undefined,
    version: VERSION,
  })
  return { status, ...output }
}

const COMMAND_LINE = new URL('../../dist/command-line/command-line.js', import.meta.url).href
const NOBODY = { on: () => undefined, off: () => undefined, resume: () => undefined, pause: () => undefined }
const { version: VERSION } = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
) as { version: string }

/** Runs the built program to its end. */
export const parleyProcess = (args: readonly string[], around: Surroundings = {}): Promise<Ended> =>
  startParley(args, around).ended

export function startParley(args: readonly string[], around: Surroundings = {}): Running {
  return start(process.execPath, [around.program ?? PROGRAM, ...args], around)
}

/** Runs it under a limit on the size of every file that it writes, in kB. */
export function parleyWithSmallFiles(
  kilobytes: number,
  args: readonly string[],
  around: Surroundings,
): Promise<Ended> {
  // POSIX counts in blocks of 512 bytes.
  return parleyAfter(`ulimit -f ${kilobytes * 2}`, args, around)
}

/** Runs it in the process of a shell that has run a line. */
export function parleyAfter(
  line: string,
  args: readonly string[],
  around: Surroundings = {},
): Promise<Ended> {
  const script = `${line} && exec "$@"`
  return start('sh', ['-c', script, 'sh', process.execPath, PROGRAM, ...args], around).ended
}

function start(command: string, args: readonly string[], around: Surroundings): Running {
  const child = spawn(command, args, {
    cwd: around.cwd ?? emptyFolder(),
    env: { PATH: process.env['PATH'], ...around.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const closed = new Promise<number | null>(resolve => child.on('close', resolve))
  if (around.deaf) child.stdout.destroy()
  const stdout = gather(child.stdout)
  const stderr = gather(child.stderr)
  return {
    child,
    ended: closed.then(status => ({ status, stdout: stdout.text(), stderr: stderr.text() })),
    says: text =>
      new Promise((resolve, reject) => {
        stderr.onChange(all => {
          if (all.includes(text)) resolve()
        })
        void closed.then(() => reject(new Error(`It ended without saying ${text}: ${stderr.text()}`)))
      }),
  }
}

function gather(stream: Readable) {
  let all = ''
  let listeners: ((all: string) => void)[] = []
  stream.setEncoding('utf8').on('data', (part: string) => {
    all += part
    for (const listener of listeners) listener(all)
  })
  return {
    text: () => all,
    onChange(listener: (all: string) => void) {
      listeners = [...listeners, listener]
      listener(all)
    },
  }
}

export function emptyFolder(): string {
  return mkdtempSync(join(tmpdir(), 'parley-cli-'))
}
