import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import type { Cell } from '../support/published-cells.ts'

/** An engine in a process of its own, which answers one question at a time. */
export interface Engine {
  /**
   * The rows of a statement, or of a scan in the form that the engine's program explains.
   * @throws Error with the engine's message
   */
  ask(question: string | object): Promise<TableRows>
  close(): Promise<void>
}

/** Cells are in the form of `expectedTables`. */
export interface TableRows {
  columns: string[]
  rows: Cell[][]
}

export interface EngineProgram {
  name: string
  command: string
  args: readonly string[]
  env?: Readonly<Record<string, string>>
  cwd?: string
}

/**
 * A line of the program's standard input is a question as JSON. The line of standard output that answers it is
 * `{ "columns": […], "rows": [[…]] }` or `{ "error": "…" }`; other lines are its log.
 */
export function startEngine({ name, command, args, env = {}, cwd }: EngineProgram): Engine {
  const child = spawn(command, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const closed = once(child, 'close')
  const complaints = text(child.stderr)
  // A program that has ended says why in its complaints.
  child.stdin.on('error', () => undefined)
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const answer = async (question: string | object): Promise<TableRows> => {
    child.stdin.write(`${JSON.stringify(question)}\n`)
    for (;;) {
      const { value, done } = await lines.next()
      if (done) throw new Error(`${name} ended: ${(await complaints).slice(-5000)}`)
      if (!value.startsWith('{')) continue
      const { error, ...rows } = JSON.parse(value)
      if (error !== undefined) throw new Error(`${error} (${JSON.stringify(question).slice(0, 1000)})`)
      return rows
    }
  }
  let last: Promise<unknown> = Promise.resolve()
  return {
    ask(question) {
      const answered = last.then(() => answer(question))
      last = answered.catch(() => undefined)
      return answered
    },
    async close() {
      child.stdin.end()
      await closed
    },
  }
}

const INSTALLED = new URL('../../node_modules/.cache/engines/', import.meta.url).pathname

/** What `install.sh` has installed. @throws Error that says how to install it */
export function installed(engine: string, path: string): string {
  const found = join(INSTALLED, engine, path)
  if (existsSync(found)) return found
  throw new Error(`${engine} is not installed: run test/engines/install.sh ${engine}`)
}

/** The jars that `install.sh` has fetched. */
export const jarsOf = (engine: string): string[] =>
  readFileSync(installed(engine, 'jars/classpath'), 'utf8').trim().split(':')

const JAVA = '/usr/lib/jvm'

/** The folder of a Java. @throws Error when there is none between these versions */
export function javaHome(from: number, to: number): string {
  const homes = existsSync(JAVA) ? readdirSync(JAVA).map(name => join(JAVA, name)) : []
  const found = homes.find(home => {
    const release = join(home, 'release')
    if (!existsSync(join(home, 'bin/java')) || !existsSync(release)) return false
    const version = Number(/^JAVA_VERSION="(\d+)/m.exec(readFileSync(release, 'utf8'))?.[1])
    return version >= from && version <= to
  })
  if (found !== undefined) return found
  throw new Error(`There is no Java between ${from} and ${to} in ${JAVA}`)
}
