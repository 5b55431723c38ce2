import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { sqlitePackage } from '../../src/store/database/sqlite.ts'

/** A user who may read a warehouse and its folder but not write them. */

const NOBODY = 65534
const isRoot = process.getuid?.() === 0

/** Runs without root's permissions. Not for concurrent tests of the same process. */
export async function asNobody<T>(work: () => Promise<T>): Promise<T> {
  if (isRoot) process.seteuid?.(NOBODY)
  try {
    return await work()
  } finally {
    if (isRoot) process.seteuid?.(0)
  }
}

/** A process that is not root keeps its user. */
export function giveToNobody(path: string): void {
  if (isRoot) chownSync(path, NOBODY, NOBODY)
}

/** Lets every user enter and read the folder of a warehouse. Only its owner may write. */
export function openToReaders(database: string): void {
  chmodSync(dirname(database), 0o755)
}

const SQLITE = createRequire(import.meta.url).resolve(sqlitePackage(process.versions.node))

/** Both load their library before they drop their permissions, since other users may not be able to read its folder. */
const NODE = `
  const Database = require(${JSON.stringify(SQLITE)})
  new Database(':memory:').close()
  if (process.argv[1] === 'drop') { process.setgroups([]); process.setgid(${NOBODY}); process.setuid(${NOBODY}) }
  const [path, sql] = process.argv.slice(2)
  console.log(new Database(path, { readonly: true }).prepare(sql).pluck().all().join('\\n'))`
const PYTHON = `
import os, sqlite3, sys
if sys.argv[1] == 'drop':
    os.setgroups([]); os.setgid(${NOBODY}); os.setuid(${NOBODY})
path, sql = sys.argv[2:]
for row in sqlite3.connect('file:' + path + '?mode=ro', uri=True).execute(sql): print(*row)`
const AS_NOBODY = ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups']

const drop = isRoot ? 'drop' : 'keep'

/** The programs of analysts, as command lines without the path and the query. */
export const READERS: Readonly<Record<string, readonly string[]>> = {
  'sqlite3 -readonly': [...(isRoot ? AS_NOBODY : []), 'sqlite3', '-readonly'],
  sqlite3: [...(isRoot ? AS_NOBODY : []), 'sqlite3'],
  'Python’s sqlite3': ['python3', '-c', PYTHON, drop],
  'better-sqlite3': [process.execPath, '-e', NODE, drop],
}

/** The output of each program by name, with standard error. */
export async function askAll(database: string, sql: string): Promise<Record<string, string>> {
  const asked = Object.entries(READERS).map(async ([name, [command = '', ...args]]) => {
    const child = spawn(command, [...args, database, sql], { stdio: ['ignore', 'pipe', 'pipe'] })
    const said = await Promise.all([text(child.stdout), text(child.stderr)])
    return [name, said.join('').trim()]
  })
  return Object.fromEntries(await Promise.all(asked))
}

/** The result of `askAll` when each program returns this. */
export const allFind = (value: unknown): Record<string, string> =>
  Object.fromEntries(Object.keys(READERS).map(name => [name, String(value)]))

/** Queries repeatedly until it is killed, each time with a new connection; prints a line for each answer or error. */
const AGAIN = `
  const Database = require(${JSON.stringify(SQLITE)})
  new Database(':memory:').close()
  if (process.argv[1] === 'drop') { process.setgroups([]); process.setgid(${NOBODY}); process.setuid(${NOBODY}) }
  const [path, sql, patience] = process.argv.slice(2)
  const ask = () => {
    let said
    try {
      const db = new Database(path, { readonly: true, timeout: Number(patience) })
      said = db.prepare(sql).pluck().get()
      db.close()
    } catch (error) { said = error.code ?? error.message }
    process.stdout.write(said + '\\n')
    setImmediate(ask)
  }
  ask()`

/** A process that reads repeatedly. */
export interface Reading {
  /** The number of answers so far. */
  count(): number
  /** Ends the process. Returns the distinct answers. */
  end(): Promise<string[]>
}

/** @param patienceMs how long it waits for a busy database */
export async function keepReading(database: string, sql: string, patienceMs: number): Promise<Reading> {
  const child = spawn(process.execPath, ['-e', AGAIN, drop, database, sql, String(patienceMs)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines: string[] = []
  createInterface({ input: child.stdout }).on('line', line => lines.push(line))
  const closed = once(child, 'close')
  await once(child.stdout, 'data')
  return {
    count: () => lines.length,
    async end() {
      child.kill('SIGKILL')
      await closed
      // The last line may be incomplete.
      return [...new Set(lines.slice(0, -1))]
    },
  }
}
