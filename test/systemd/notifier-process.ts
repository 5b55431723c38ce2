import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'

/** What the process can be told to do, with an argument where it takes one. */
export type Order = readonly [
  name: 'ready' | 'status' | 'reloading' | 'stopping' | 'watchdog' | 'alive' | 'wake' | 'block',
  argument?: string,
]

/** A process that has a service manager and does with it what it is told. */
export interface NotifierProcess {
  pid: number | undefined
  tell(...orders: readonly Order[]): void
  /** Resolves to the next line of its standard output: a log line, or how long a sleep is to be. */
  nextLine(): Promise<Record<string, unknown>>
  /** Tells it nothing more; resolves when it has ended by itself, to its status and the lines not yet read. */
  end(): Promise<{ status: number | null; lines: Record<string, unknown>[]; stderr: string }>
}

const MAIN = new URL('notifier-main.ts', import.meta.url).pathname
const TSX = import.meta.resolve('tsx')

/** Nothing of this process's environment is handed on but the search path, where `env` has none of its own. */
export function startNotifier(
  env: Readonly<Record<string, string>>,
  { manual = false }: { manual?: boolean } = {},
): NotifierProcess {
  const child = spawn(process.execPath, ['--import', TSX, MAIN, ...(manual ? ['--manual'] : [])], {
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const status = new Promise<number | null>(resolve => child.on('close', resolve))
  const stderr = text(child.stderr)
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  async function nextLine() {
    const { value, done } = await lines.next()
    if (done) throw new Error(`the process has ended: ${await stderr}`)
    return JSON.parse(value)
  }
  return {
    pid: child.pid,
    tell: (...orders) => {
      for (const order of orders) child.stdin.write(`${JSON.stringify(order)}\n`)
    },
    nextLine,
    async end() {
      child.stdin.end()
      const rest: Record<string, unknown>[] = []
      for (let line = await lines.next(); !line.done; line = await lines.next())
        rest.push(JSON.parse(line.value))
      return { status: await status, lines: rest, stderr: await stderr }
    },
  }
}
