/**
 * Tells systemd how the process does, as sd_notify(3) says, but by way of systemd-notify(1): Node opens no datagram
 * sockets of that kind.
 */

import { type ExecFileException, execFile } from 'node:child_process'
import type { Clock } from './clock.ts'
import type { Environment } from './config.ts'
import type { Log } from './log.ts'

/**
 * What a daemon has to tell. Everything returns at once and is sent in its order, by one child process at a time.
 * Without `NOTIFY_SOCKET` in the environment nothing is done. Nothing here ever fails: the first time that
 * something cannot be told is a warning in the log.
 */
export interface ServiceManager {
  /** The work has begun, or goes on after `reloading`. */
  ready(status: string): void
  /** What `systemctl status` shows: one line, cut at 200 characters. The same text again is not sent. */
  status(text: string): void
  /** The settings are read again. The service manager then waits for `ready`. */
  reloading(): void
  stopping(): void
  /**
   * Says from now on that all is well, at a third of the interval that the service manager allows, whenever `alive`
   * does; the last `alive` given counts. Without an interval in the environment nothing is done.
   */
  watchdog(alive: () => boolean): void
  /** Ends the watchdog and resolves when all that was to be told is told. What comes later is left out. */
  close(): Promise<void>
}

export interface ServiceManagerParts {
  env: Environment
  clock: Clock
  log: Log
}

/** Of messages of one kind only the newest waits; those without a kind all count. */
interface Message {
  kind?: 'status' | 'watchdog'
  /** As systemd-notify takes them. */
  words: readonly string[]
}

const SEARCH_PATH = '/usr/local/bin:/usr/bin:/bin'
const STATUS_LENGTH = 200
/** It waits for an answer by itself, for 5 s at most. */
const SEND_LIMIT_MS = 10_000

export function createServiceManager({ env, clock, log }: ServiceManagerParts): ServiceManager {
  const socket = env['NOTIFY_SOCKET']
  if (!socket) return NOBODY
  const queue = createQueue(createSender({ NOTIFY_SOCKET: socket, PATH: env['PATH'] || SEARCH_PATH }, log))
  const closing = new AbortController()
  let alive: (() => boolean) | undefined
  let shown: string | undefined

  const tell = (words: readonly string[], kind?: Message['kind']) => {
    if (!closing.signal.aborted) queue.put(kind === undefined ? { words } : { words, kind })
  }
  const show = (text: string) => {
    shown = oneLine(text)
    return `--status=${shown}`
  }
  async function watch(intervalMs: number) {
    for (;;) {
      await clock.sleep(intervalMs, closing.signal)
      if (closing.signal.aborted) return
      if (alive?.()) tell(['WATCHDOG=1'], 'watchdog')
    }
  }
  return {
    ready: text => tell(['--ready', show(text)]),
    status: text => {
      if (oneLine(text) !== shown) tell([show(text)], 'status')
    },
    reloading: () => tell(['RELOADING=1']),
    stopping: () => tell(['STOPPING=1']),
    watchdog: sign => {
      const interval = watchdogInterval(env)
      if (interval !== undefined && alive === undefined) void watch(interval / 3)
      alive = sign
    },
    close: () => {
      closing.abort()
      return queue.emptied()
    },
  }
}

const NOBODY: ServiceManager = {
  ready: () => undefined,
  status: () => undefined,
  reloading: () => undefined,
  stopping: () => undefined,
  watchdog: () => undefined,
  close: async () => undefined,
}

/** In milliseconds; undefined when nobody waits for signs of life, or for those of another process. */
function watchdogInterval(env: Environment): number | undefined {
  const { WATCHDOG_USEC: microseconds = '', WATCHDOG_PID: pid } = env
  if (pid && pid !== String(process.pid)) return undefined
  return /^[1-9]\d*$/.test(microseconds) ? Number(microseconds) / 1000 : undefined
}

/** Control characters would end the line, or could not be handed to a process at all. */
function oneLine(text: string): string {
  const characters = [
    ...text
      .toWellFormed()
      .replace(/[\p{Cc}\s]+/gu, ' ')
      .trim(),
  ]
  if (characters.length <= STATUS_LENGTH) return characters.join('')
  return `${characters.slice(0, STATUS_LENGTH - 1).join('')}…`
}

function createQueue(send: (words: readonly string[]) => Promise<void>) {
  let waiting: Message[] = []
  let sending: Promise<void> | undefined
  async function sendAll() {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await send(next.words)
    sending = undefined
  }
  return {
    put(message: Message) {
      waiting = waiting.filter(({ kind }) => kind === undefined || kind !== message.kind)
      waiting.push(message)
      sending ??= sendAll()
    },
    emptied: async () => sending,
  }
}

/**
 * The child gets nothing of our environment but what it needs. It waits until the service manager has read the
 * message, or its sender would be gone by then and the message be nobody's.
 */
function createSender(env: { NOTIFY_SOCKET: string; PATH: string }, log: Log) {
  let warned = false
  return async (words: readonly string[]) => {
    const reason = await notify([`--pid=${process.pid}`, ...words], env)
    if (reason === undefined || warned) return
    warned = true
    log.warn('systemd-notify failed; the service manager may not know how this process does', { reason })
  }
}

/** Resolves to why it failed, or to undefined. */
function notify(words: readonly string[], env: { NOTIFY_SOCKET: string; PATH: string }) {
  return new Promise<string | undefined>(resolve => {
    const options = { env, timeout: SEND_LIMIT_MS, killSignal: 'SIGKILL' } as const
    execFile('systemd-notify', words, options, (error, _, stderr) =>
      resolve(error === null ? undefined : reasonOf(error, stderr)),
    )
  }).catch((error: unknown) => (error instanceof Error && 'code' in error ? String(error.code) : 'unknown'))
}

function reasonOf({ code, killed, signal }: ExecFileException, stderr: string): string {
  if (code === 'ENOENT') return 'it is not on the search path'
  if (killed) return `it did not end within ${SEND_LIMIT_MS / 1000} s`
  return stderr.trim().split('\n')[0] || `exit status ${code ?? signal}`
}
