import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'

/** The orders of the process, with their arguments. */
export type Order = readonly [
  name: 'ready' | 'reloading' | 'stopping' | 'watchdog' | 'alive' | 'wake' | 'block',
  argument?: string,
]

/** A process with a service manager that follows the orders of a test. */
export interface NotifierProcess {
  pid: number | undefined
  tell(...orders: readonly Order[]): void
  /** Resolves to the next line of its standard output: a log line, or the length of a sleep. */
  nextLine(): Promise<Record<string, unknown>>
  /** Sends no more orders; resolves to its status and the unread lines when it has ended. */
  end(): Promise<{ status: number | null; lines: Record<string, unknown>[]; stderr: string }>
}

const MAIN = new URL('notifier-main.ts', import.meta.url).pathname
const TSX = import.meta.resolve('tsx')

/** Only the search path of this process's environment is passed on, unless `env` has one. */
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
