#!/usr/bin/env -S MALLOC_ARENA_MAX=2 node --max-semi-space-size=8 --initial-old-space-size=24 --heap-growing-percent=20
/**
 * Turns the command line into an exit status. Only this file ends the process.
 *
 * The options of the first line save memory and cost no time:
 * - `--max-semi-space-size=8` limits each semi-space of the young generation to 8 MB instead of 16, which saves 20 MB.
 * - `--initial-old-space-size=24` and `--heap-growing-percent=20` start a garbage collection at 24 MB, then after each
 *   growth by a fifth. Without them an idle daemon keeps garbage for minutes, several times the size of its live
 *   objects.
 * - `MALLOC_ARENA_MAX=2` makes all threads share two malloc arenas, which saves 12 MB while transcripts, records and
 *   message texts are read.
 */

import { readFileSync } from 'node:fs'
import { CommanderError } from 'commander'
import type { CommandContext } from './commands/command.ts'
import { type Act, createProgram, isCommand } from './commands/commands.ts'
import {
  type CheckStatus,
  EXIT_STATUS,
  type ExitStatus,
  exitStatusOf,
  ParleyError,
  StopError,
} from './errors.ts'
import { keepDebuggerClosed } from './process-signals.ts'
import { safeLines } from './safe-text.ts'

/** Set by the command's action: commander does not return the action's result. */
interface Run {
  status: ExitStatus | CheckStatus
  signal: AbortSignal | undefined
}

void main(process.argv.slice(2)).then(flushAndExit)

/** Never rejects: an error is printed on standard error and becomes an exit status. */
async function main(argv: readonly string[]): Promise<ExitStatus | CheckStatus> {
  keepDebuggerClosed()
  ignoreLostReaders()
  const commandName = argv.find(argument => !argument.startsWith('-') && argument !== 'help')
  const run: Run = { status: EXIT_STATUS.done, signal: undefined }
  try {
    const program = await createProgram(version(), name => name === commandName, act(run))
    // For `help NAME` with an unknown NAME, commander would print the help of the whole program. When it parses NAME
    // alone, it reports an unknown command.
    const isKnown = commandName === undefined || isCommand(commandName)
    await program.parseAsync(isKnown ? argv : [strayOption(argv) ?? commandName], { from: 'user' })
    return run.status
  } catch (error) {
    const stopped = run.signal?.aborted && error instanceof Error && error.name === 'AbortError'
    const { status, lines } = explanationOf(stopped ? run.signal?.reason : error, {
      command: commandName,
      argv,
    })
    if (lines.length > 0) process.stderr.write(`${safeLines(lines.join('\n'))}\n`)
    return status
  }
}

/**
 * The first argument when it is an option, as in `--database FILE status`. Without this check, FILE would be reported
 * as an unknown command.
 */
function strayOption([first]: readonly string[]): string | undefined {
  return first?.startsWith('-') && first !== '-h' && first !== '--help' ? first : undefined
}

/** Exits after standard output is flushed, so that a slow reader gets everything. */
function flushAndExit(status: ExitStatus | CheckStatus): void {
  process.stdout.write('', () => process.exit(status))
}

/**
 * Keeps the command running when its output has no reader. A reader such as `head` may close the pipe early. Standard
 * error may fail on a full disk or a closed terminal.
 */
function ignoreLostReaders(): void {
  process.stderr.on('error', () => undefined)
  process.stdout.on('error', error => {
    if (!('code' in error) || error.code !== 'EPIPE') throw error
  })
}

/** The action of each command. */
function act(run: Run): Act {
  return async (command, definition) => {
    const [{ flagValues }, { processEnvironment }] = await Promise.all([
      import('./commands/command.ts'),
      import('./config/load-settings.ts'),
    ])
    const signal = stopSignal()
    run.signal = signal
    const context: CommandContext = {
      env: processEnvironment(),
      cwd: process.cwd(),
      stdout: process.stdout,
      stderr: process.stderr,
      // A getter, since the first access opens standard input.
      get stdin() {
        return process.stdin
      },
      signal,
      onSignal: (name, listener) => void process.on(name, listener),
      version: version(),
    }
    const flags = flagValues(command, definition.settings)
    run.status = await definition.run(context, { args: command.args, options: command.opts(), flags })
  }
}

/** The first SIGTERM or SIGINT aborts the returned AbortSignal. The second one ends the process at once. */
function stopSignal(): AbortSignal {
  const controller = new AbortController()
  const stop = (by: string) => {
    if (controller.signal.aborted) process.exit(EXIT_STATUS.unfinished)
    controller.abort(
      new StopError(`Stopped by ${by}`, {
        code: 'stopped',
        exitStatus: EXIT_STATUS.unfinished,
        hint: 'Run the command again. A backfill continues where it stopped.',
      }),
    )
  }
  process.on('SIGTERM', stop).on('SIGINT', stop)
  // Node emits this event only when the parent process opened an IPC channel, as parley demo does.
  process.on('disconnect', () => stop('the end of the parent process'))
  return controller.signal
}

interface Explanation {
  status: ExitStatus | CheckStatus
  /** Printed on standard error. */
  lines: readonly string[]
}

interface CommandLine {
  command: string | undefined
  argv: readonly string[]
}

function explanationOf(error: unknown, line: CommandLine): Explanation {
  if (error instanceof CommanderError) return usageExplanation(error, line)
  if (error instanceof ParleyError) {
    const hint = error.hint === undefined ? [] : [`hint: ${error.hint}`]
    return { status: exitStatusOf(error), lines: [`parley: ${error.message}`, ...hint] }
  }
  return {
    status: EXIT_STATUS.fault,
    lines: [
      `parley: Internal error: ${faultText(error)}`,
      'hint: No committed data is lost. Please report this error with the lines above.',
    ],
  }
}

/** The stack. The message of a SyntaxError is left out: it quotes the parsed text, which may be private. */
function faultText(error: unknown): string {
  if (!(error instanceof Error)) return `the program threw a ${typeof error}`
  const stack = error.stack ?? error.name
  const frames = stack.split('\n').filter(line => /^\s+at /.test(line))
  return error instanceof SyntaxError ? [error.name, ...frames].join('\n') : stack
}

/**
 * Commander reports a printed help or version as an error with exit code 0. When the command is missing, it prints the
 * help, and the error has the code `commander.help`.
 */
function usageExplanation(error: CommanderError, { command, argv }: CommandLine): Explanation {
  if (error.exitCode === 0) return { status: EXIT_STATUS.done, lines: [] }
  if (error.code === 'commander.help') return { status: EXIT_STATUS.usage, lines: [] }
  const [message = '', suggestion] = error.message.replace(/^error: /, '').split('\n')
  const program = command !== undefined && isCommand(command) ? `parley ${command}` : 'parley'
  const isStray =
    error.code === 'commander.unknownOption' && command !== undefined && strayOption(argv) !== undefined
  const advice = isStray ? 'Write options after the command.' : suggestion?.replace(/^\(|\)$/g, '')
  const guess = advice === undefined ? '' : `${advice} `
  return {
    status: EXIT_STATUS.usage,
    lines: [`parley: ${message}`, `hint: ${guess}Run ${program} --help for the usage.`],
  }
}

function version(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  return typeof manifest === 'object' && manifest !== null && 'version' in manifest
    ? String(manifest.version)
    : 'unknown'
}
