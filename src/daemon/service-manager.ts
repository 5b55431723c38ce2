/**
 * Notifies systemd of the daemon's state, with the messages of sd_notify(3). It runs systemd-notify(1), since Node
 * cannot open Unix datagram sockets.
 */

import { type ExecFileException, execFile } from 'node:child_process'
import type { Clock } from '../base/clock.ts'
import { errorCode } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import type { Environment } from '../config/loaded-settings.ts'

/**
 * Every method returns at once. Messages are sent in order, by one child process at a time. Without `NOTIFY_SOCKET` in
 * the environment nothing is sent. Nothing throws: the first failure to send is logged as a warning.
 */
export interface ServiceManager {
  /**
   * The daemon is ready, or ready again after `reloading`. `systemctl status` shows the text's first 200 characters.
   */
  ready(status: string): void
  /** The settings are being reloaded. systemd then waits for `ready`. */
  reloading(): void
  /** `systemctl status` shows the reason, as it shows the text of `ready`. */
  stopping(reason?: string): void
  /**
   * Feeds systemd's watchdog at a third of its interval while `isAlive` returns true. A later call replaces `isAlive`.
   * Without an interval in the environment nothing is sent.
   */
  watchdog(isAlive: () => boolean): void
  /** Ends the watchdog and resolves when all messages are sent. Later messages are dropped. */
  close(): Promise<void>
}

export interface ServiceManagerParts {
  env: Environment
  clock: Clock
  log: Log
}

const SEARCH_PATH = '/usr/local/bin:/usr/bin:/bin'
const STATUS_LENGTH = 200
/** systemd-notify waits up to 5 s for systemd. */
const SEND_LIMIT_MS = 10_000

export function createServiceManager({ env, clock, log }: ServiceManagerParts): ServiceManager {
  const socket = env['NOTIFY_SOCKET']
  if (!socket) return NO_SERVICE_MANAGER
  const send = createSender({ NOTIFY_SOCKET: socket, PATH: env['PATH'] || SEARCH_PATH }, log)
  const closing = new AbortController()
  let last = Promise.resolve()
  let isAlive: (() => boolean) | undefined

  /** Resolves when the message and all before it are sent. */
  const enqueue = (...words: readonly string[]) => {
    if (!closing.signal.aborted) last = last.then(() => send(words))
    return last
  }
  async function watch(intervalMs: number) {
    for (;;) {
      await clock.sleep(intervalMs, closing.signal)
      if (closing.signal.aborted) return
      if (isAlive?.()) await enqueue('WATCHDOG=1')
    }
  }
  return {
    ready: status => void enqueue('--ready', statusOption(status)),
    reloading: () => void enqueue('RELOADING=1'),
    stopping: reason => void enqueue('STOPPING=1', ...(reason === undefined ? [] : [statusOption(reason)])),
    watchdog: sign => {
      const interval = watchdogInterval(env)
      if (interval !== undefined && isAlive === undefined) void watch(interval / 3)
      isAlive = sign
    },
    close: () => {
      closing.abort()
      return last
    },
  }
}

const NO_SERVICE_MANAGER: ServiceManager = {
  ready: () => undefined,
  reloading: () => undefined,
  stopping: () => undefined,
  watchdog: () => undefined,
  close: async () => undefined,
}

/** @returns the interval in ms; undefined when the watchdog is off or watches another process */
function watchdogInterval(env: Environment): number | undefined {
  const { WATCHDOG_USEC: microseconds = '', WATCHDOG_PID: pid } = env
  if (pid && pid !== String(process.pid)) return undefined
  return /^[1-9]\d*$/.test(microseconds) ? Number(microseconds) / 1000 : undefined
}

/** Shortens the text and removes control characters: some would end the line, and an argument cannot contain NUL. */
function statusOption(text: string): string {
  const line = text
    .toWellFormed()
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .trim()
  const characters = [...line]
  if (characters.length <= STATUS_LENGTH) return `--status=${line}`
  return `--status=${characters.slice(0, STATUS_LENGTH - 1).join('')}…`
}

/**
 * Sends each message by systemd-notify, with only the environment that it needs. systemd-notify ends after systemd has
 * read the message: systemd finds the service by the sender's process id, so the sender must still exist.
 */
function createSender(env: { NOTIFY_SOCKET: string; PATH: string }, log: Log) {
  let hasWarned = false
  return async (words: readonly string[]) => {
    const reason = await notify([`--pid=${process.pid}`, ...words], env)
    if (reason === undefined || hasWarned) return
    hasWarned = true
    log.warn('systemd-notify failed; systemd may not know the state of this process', { reason })
  }
}

/** @returns the reason for a failure; undefined after success */
function notify(words: readonly string[], env: { NOTIFY_SOCKET: string; PATH: string }) {
  return new Promise<string | undefined>(resolve => {
    const options = { env, timeout: SEND_LIMIT_MS, killSignal: 'SIGKILL' } as const
    execFile('systemd-notify', words, options, (error, _, stderr) =>
      resolve(error === null ? undefined : reasonOf(error, stderr)),
    )
  }).catch((error: unknown) => errorCode(error) ?? 'unknown')
}

function reasonOf({ code, killed, signal }: ExecFileException, stderr: string): string {
  if (code === 'ENOENT') return 'it is not in PATH'
  if (killed) return `it did not end within ${SEND_LIMIT_MS / 1000} s`
  return stderr.trim().split('\n')[0] || `exit status ${code ?? signal}`
}
