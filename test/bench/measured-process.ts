import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'

/** Time and memory that a process used from start to end. */
export interface Usage {
  wallMs: number
  userMs: number
  systemMs: number
  /** Peak resident memory. */
  peakKiB: number
}

export interface MeasuredProcess {
  child: ChildProcess
  /** Rejects with its standard error when the exit status is not 0. */
  ended: Promise<Usage>
}

const EXIT_REPORT = new URL('exit-report.mjs', import.meta.url).href

/** The Node options and the environment from a program's `#!` line, which is not used when it is started here. */
interface OwnStart {
  options: readonly string[]
  env: Readonly<Record<string, string>>
}

function ownStart(program: string): OwnStart {
  if (program.startsWith('-')) return { options: [], env: {} }
  const [first = ''] = readFileSync(program, 'utf8').split('\n', 1)
  const [, variables = '', options = ''] = /^#!\S+ -S (.*?)\bnode (-.*)$/.exec(first) ?? []
  const words = (text: string) => text.split(' ').filter(word => word !== '')
  return {
    options: words(options),
    env: Object.fromEntries(words(variables).map(word => word.split('=', 2))),
  }
}

/**
 * Starts a Node program that measures its own memory and time.
 * @param log descriptor of a file for its standard error
 */
export function startMeasured(
  args: readonly [string, ...string[]],
  env: NodeJS.ProcessEnv,
  log?: number,
): MeasuredProcess {
  const own = ownStart(args[0])
  return runMeasured([process.execPath, ...own.options, '--import', EXIT_REPORT, ...args], {
    env: { ...env, ...own.env },
    stdio: ['pipe', 'pipe', log ?? 'pipe', 'pipe'],
  })
}

/** Starts a program that reports its own memory and time on descriptor 3. */
export function runMeasured(
  [command, ...args]: readonly [string, ...string[]],
  options: Pick<SpawnOptions, 'env' | 'stdio'>,
): MeasuredProcess {
  const began = performance.now()
  const child = spawn(command, args, options)
  const complaints = child.stderr ? text(child.stderr) : ''
  const fromInside = child.stdio[3]
  const report = fromInside instanceof Readable ? text(fromInside) : Promise.resolve('')
  const ended = once(child, 'close').then(async ([status]) => {
    const wallMs = performance.now() - began
    if (status !== 0)
      throw new Error(`${command} ends with status ${status}: ${(await complaints).slice(-2000)}`)
    return { wallMs, ...(JSON.parse(await report) as Omit<Usage, 'wallMs'>) }
  })
  return { child, ended }
}
