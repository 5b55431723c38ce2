#!/usr/bin/env -S MALLOC_ARENA_MAX=2 node --max-semi-space-size=8 --initial-old-space-size=24 --heap-growing-percent=20
/**
 * The process around a command line. Only this file ends the process.
 *
 * The options of the first line save memory and cost no time:
 * - `--max-semi-space-size=8` limits each semi-space of the young generation to 8 MB instead of 16, which saves 20 MB.
 * - `--initial-old-space-size=24` and `--heap-growing-percent=20` start a garbage collection at 24 MB, then after each
 *   growth by a fifth. Without them an idle daemon keeps garbage for minutes, several times the size of its live
 *   objects.
 * - `MALLOC_ARENA_MAX=2` makes all threads share two malloc arenas, which saves 12 MB while transcripts, records and
 *   message texts are read.
 */

import { closeSync, readFileSync, writeSync } from 'node:fs'
import { Socket } from 'node:net'
import { EXIT_STATUS, errorCode, StopError } from './base/errors.ts'
import { keepDebuggerClosed } from './base/process-signals.ts'
import { runCommandLine } from './command-line/command-line.ts'
import type { Output } from './terminal/output.ts'

keepDebuggerClosed()
ignoreLostReaders()
const status = await runCommandLine(process.argv.slice(2), {
  env: process.env,
  get cwd() {
    return currentFolder()
  },
  stdout: standardOutput(),
  stderr: process.stderr,
  // A getter, since the first access opens standard input.
  get stdin() {
    return process.stdin
  },
  signal: stopSignal(),
  onSignal: (name, listener) => void process.on(name, listener),
  version: version(),
})
// The process ends once standard output is flushed, so that a slow reader gets everything.
process.stdout.write('', () => process.exit(status))

/**
 * Keeps the command running when its output has no reader. A reader such as `head` may close the pipe early, and a
 * closed terminal fails. Standard error may fail on a full disk too.
 */
function ignoreLostReaders(): void {
  process.stderr.on('error', () => undefined)
  process.stdout.on('error', error => {
    if (!['EPIPE', 'EIO'].includes(errorCode(error) ?? '')) throw error
  })
}

/**
 * Writes to a file without the stream of Node, which takes a short write on a full disk for a whole one.
 * @throws StopError (73), from `write`, when the file takes no more
 */
function standardOutput(): Output {
  const { fd } = process.stdout
  // Not by `fstat`: after that of a pipe, Node 20 does not follow the links of modules.
  if (process.stdout instanceof Socket) return process.stdout
  return {
    write(text) {
      const bytes = Buffer.from(text)
      try {
        for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at)
      } catch (error) {
        throw new StopError(`Standard output cannot be written (${errorCode(error) ?? 'unknown'})`, {
          code: 'output-lost',
          hint: 'What it has is not complete. Free space or choose another place, and run the command again.',
          exitStatus: EXIT_STATUS.databaseUnavailable,
          cause: error,
        })
      }
    },
  }
}

/**
 * The first SIGTERM or SIGINT aborts the returned AbortSignal. The second one ends the process at once. SIGHUP is the
 * same for a command that does not listen to it, but a second one does nothing: a shell and the system may each send one
 * when a terminal is closed.
 */
function stopSignal(): AbortSignal {
  const controller = new AbortController()
  const stop = (by: string) => {
    if (controller.signal.aborted) process.exit(EXIT_STATUS.unfinished)
    controller.abort(
      new StopError(`Stopped by ${by}`, {
        code: 'stopped',
        exitStatus: EXIT_STATUS.unfinished,
        hint: 'Run the command again.',
      }),
    )
  }
  process.on('SIGTERM', stop).on('SIGINT', stop)
  process.on('SIGHUP', by => {
    if (process.listenerCount('SIGHUP') > 1 || controller.signal.aborted) return
    // Node aborts at its end where it cannot reset a terminal that is gone. It leaves closed descriptors alone.
    process.on('exit', () => [0, 1, 2].forEach(closeSync))
    stop(by)
  })
  // Node emits this event only when the parent process opened an IPC channel, as parley demo does.
  const stopAsOrphan = () => stop('the end of the parent process')
  process.on('disconnect', stopAsOrphan)
  // The parent process may have ended while this program was loading, before the listener was there.
  if (process.send !== undefined && !process.connected) stopAsOrphan()
  return controller.signal
}

/** @throws StopError (exit status 73) when the folder was removed */
function currentFolder(): string {
  try {
    return process.cwd()
  } catch (error) {
    throw new StopError(`The current folder cannot be used (${errorCode(error) ?? 'unknown'})`, {
      code: 'no-folder',
      hint: 'It may have been removed or renamed. Change to another folder, such as: cd ~',
      exitStatus: EXIT_STATUS.databaseUnavailable,
    })
  }
}

function version(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  return typeof manifest === 'object' && manifest !== null && 'version' in manifest
    ? String(manifest.version)
    : 'unknown'
}
