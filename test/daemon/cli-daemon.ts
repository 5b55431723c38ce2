import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import type { Sqlite } from '../../src/store/database/sqlite-types.ts'
import type { Ended } from '../cli/parley.ts'
import type { Place, Test } from '../cli/workspace.ts'
import { until } from '../support/until.ts'

/** The built `parley daemon` as a process that a test listens to. */
export interface DaemonProcess {
  pid: number
  /** The log lines so far. */
  lines(): readonly LogLine[]
  /** The first log line that matches, past or future; rejects when the daemon ends without one. */
  says(isIt: (line: LogLine) => boolean): Promise<LogLine>
  signal(signal: NodeJS.Signals): void
  ended: Promise<DaemonEnd>
  /** Sends a request to its status server, once that listens. */
  ask(path: string, options?: RequestInit): Promise<Answer>
}

export interface LogLine {
  level: string
  msg: string
  error?: { code?: string; message?: string; hint?: string }
  [field: string]: unknown
}

export interface DaemonEnd {
  status: number | null
  stderr: string
}

export interface Answer {
  status: number
  body: string
}

export const PROGRAM = process.env['PARLEY_PROGRAM'] ?? new URL('../../dist/cli.js', import.meta.url).pathname

const USUAL = {
  PARLEY_HTTP_LISTEN: '127.0.0.1:0',
  PARLEY_SYNC_POLL_SECONDS: '1',
  PARLEY_LOG_LEVEL: 'debug',
}

/** Kills the daemon when the test ends. @param by a command that starts the daemon */
export function startDaemon(
  test: Test,
  { cwd, env }: Pick<Place, 'cwd' | 'env'>,
  more: Readonly<Record<string, string>> = {},
  by: readonly string[] = [],
): DaemonProcess {
  const [command = process.execPath, ...args] = [...by, process.execPath, PROGRAM, 'daemon']
  const child = spawn(command, args, {
    cwd,
    env: { PATH: process.env['PATH'], TMPDIR: process.env['TMPDIR'], ...USUAL, ...env, ...more },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const log = listenTo(child)
  const ended = new Promise<DaemonEnd>(resolve => {
    child.on('close', status => resolve({ status, stderr: log.text() }))
  })
  test.onTestFinished(async () => {
    child.kill('SIGKILL')
    await ended
  })
  const says = (isIt: (line: LogLine) => boolean) =>
    new Promise<LogLine>((resolve, reject) => {
      log.onLine(line => {
        if (isIt(line)) resolve(line)
      })
      void ended.then(({ status, stderr }) =>
        reject(new Error(`It ended with ${status} and without saying it: ${stderr}`)),
      )
    })
  return {
    pid: child.pid ?? 0,
    lines: log.lines,
    says,
    signal: signal => void child.kill(signal),
    ended,
    async ask(path, options = {}) {
      const { address } = await says(({ msg }) => msg === 'The status server listens')
      const response = await fetch(`http://${address}${path}`, options)
      return { status: response.status, body: await response.text() }
    },
  }
}

/** A line that is not JSON, such as a warning before the log starts, counts as a separate line. */
function listenTo({ stderr }: ChildProcess) {
  const lines: LogLine[] = []
  const listeners: ((line: LogLine) => void)[] = []
  let all = ''
  if (stderr) {
    createInterface({ input: stderr }).on('line', said => {
      all += `${said}\n`
      const line: LogLine = said.startsWith('{') ? JSON.parse(said) : { level: 'none', msg: said }
      lines.push(line)
      for (const listener of listeners) listener(line)
    })
  }
  return {
    text: () => all,
    lines: () => lines,
    onLine(listener: (line: LogLine) => void) {
      for (const line of [...lines]) listener(line)
      listeners.push(listener)
    },
  }
}

/** What a reader meets while the program creates, replaces or recovers a database. */
const PASSES =
  /^SQLITE_(BUSY|LOCKED|CANTOPEN|PROTOCOL|READONLY)|no such (table|column)|vtable constructor failed|directory does not exist/

/** The first column of every row; none while there is no warehouse yet or another process has it to itself. */
export function column(file: string, sql: string, ...values: string[]): unknown[] {
  let db: Sqlite | undefined
  try {
    db = openSqlite(file, { readonly: true, fileMustExist: true })
    return db.prepare(sql).pluck().all(values)
  } catch (error) {
    if (error instanceof Error && PASSES.test(`${(error as { code?: string }).code} ${error.message}`))
      return []
    throw error
  } finally {
    db?.close()
  }
}

/** Waits until the first column of a row of the query equals the value; returns the last result. */
export function seen(file: string, value: unknown, sql: string, ...values: string[]): Promise<unknown> {
  return until(
    () => column(file, sql, ...values)[0],
    found => found === value,
  )
}

/** Waits until a small workspace was read completely. */
export async function loaded(file: string): Promise<void> {
  const unread = `SELECT (SELECT count(*) FROM sync_segments WHERE listed_at IS NULL AND unavailable_since IS NULL)
    + (SELECT count(*) FROM sync_tasks WHERE due_at <= strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
    + (SELECT count(*) FROM meetings WHERE transcript_state = 'pending')
    + (SELECT count(*) FROM live_messages WHERE text_state = 'pending')
    + (SELECT count(*) = 0 FROM messages) + (SELECT count(*) = 0 FROM meetings)`
  if ((await seen(file, 0, unread)) !== 0) throw new Error('the workspace was not read')
}

/** Runs another command on the same warehouse to its end. */
export function runCommand({ cwd, env, file }: Place, args: readonly string[]): Promise<Ended> {
  const child = spawn(process.execPath, [PROGRAM, ...args, '--database', file], {
    cwd,
    env: { PATH: process.env['PATH'], PARLEY_HTTP_LISTEN: 'off', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const status = new Promise<number | null>(resolve => child.on('close', resolve))
  return Promise.all([status, text(child.stdout), text(child.stderr)]).then(([code, stdout, stderr]) => ({
    status: code,
    stdout,
    stderr,
  }))
}
