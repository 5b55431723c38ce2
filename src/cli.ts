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
import { Command, CommanderError } from 'commander'
import type { CommandContext, CommandDefinition } from './commands/command.ts'
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

interface CommandEntry {
  summary: string
  /** Called only for the command that runs or whose help is printed. */
  load(): Promise<CommandDefinition>
  /** Commands within the command, such as `parley publish verify`. */
  within?: Readonly<Record<string, CommandEntry>>
}

/** In the order in which a person meets them. */
const COMMANDS: Readonly<Record<string, CommandEntry>> = {
  init: {
    summary: 'write a settings file',
    load: async () => (await import('./commands/init.ts')).initCommand,
  },
  doctor: {
    summary: 'check the settings, the API and the database, and suggest fixes',
    load: async () => (await import('./commands/doctor.ts')).doctorCommand,
  },
  backfill: {
    summary: 'read everything into the warehouse and exit',
    load: async () => (await import('./commands/backfill/backfill.ts')).backfillCommand,
  },
  daemon: {
    summary: 'keep the warehouse in sync with the API until stopped',
    load: async () => (await import('./commands/daemon.ts')).daemonCommand,
  },
  status: {
    summary: 'show what is in the warehouse and how fresh it is',
    load: async () => (await import('./commands/status/status.ts')).statusCommand,
  },
  search: {
    summary: 'search transcripts, e-mails and other texts',
    load: async () => (await import('./commands/search/search.ts')).searchCommand,
  },
  schema: {
    summary: 'describe every table and column, also for Datasette and DuckDB',
    load: async () => (await import('./commands/schema/schema.ts')).schemaCommand,
  },
  export: {
    summary: 'write the warehouse as Parquet files',
    load: async () => (await import('./commands/export.ts')).exportCommand,
  },
  publish: {
    summary: 'publish the warehouse as Iceberg tables for Spark, Trino and other engines',
    load: async () => (await import('./commands/publish.ts')).publishCommand,
    within: {
      verify: {
        summary: 'check that the files of a target are whole and have nothing that was erased',
        load: async () => (await import('./commands/publish-verify.ts')).publishVerifyCommand,
      },
    },
  },
  snapshot: {
    summary: 'copy the warehouse to a self-contained file',
    load: async () => (await import('./commands/snapshot.ts')).snapshotCommand,
  },
  restore: {
    summary: 'replace the warehouse with a snapshot',
    load: async () => (await import('./commands/restore.ts')).restoreCommand,
  },
  resync: {
    summary: 'read one resource again from the start',
    load: async () => (await import('./commands/resync.ts')).resyncCommand,
  },
  'accept-deletions': {
    summary: 'apply the deletions that the mass-deletion guard holds back',
    load: async () => (await import('./commands/accept-deletions.ts')).acceptDeletionsCommand,
  },
  demo: {
    summary: 'try parley on a simulated workspace',
    load: async () => (await import('./commands/demo/demo.ts')).demoCommand,
  },
  simulate: {
    summary: 'serve the whole API from a simulated workspace',
    load: async () => (await import('./commands/simulate.ts')).simulateCommand,
  },
}

const AFTER_HELP = `
Examples:
  $ parley init
  $ parley backfill --help

Exit status:
  0   done
  1   a fault of parley; please report it
  64  the command line is wrong
  69  the API cannot be reached, or a resource cannot be read
  73  the database, a file or a target cannot be used
  75  stopped, or another process is at work; run the command again
  77  the API refuses the key or the workspace
  78  the settings are invalid
parley status --check has its own: 0 fine, 1 a warning, 2 a person has to act.

Pages in the folder of parley:
  README.md          what parley does, and the first steps
  config/README.md   every setting
  drizzle/README.md  every table and column, and questions in SQL
  systemd/README.md  parley as a service, backups and monitoring`

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
    const program = await createProgram(commandName, run)
    // For `help NAME` with an unknown NAME, commander would print the help of the whole program. When it parses NAME
    // alone, it reports an unknown command.
    const isKnown = commandName === undefined || Object.hasOwn(COMMANDS, commandName)
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

/** The program with the named command complete and only the summaries of all others. */
async function createProgram(named: string | undefined, run: Run): Promise<Command> {
  const program = new Command('parley')
    .description('Keeps a local SQLite warehouse in sync with a conversation-intelligence workspace.')
    .version(version())
    // An option belongs to the command that it follows: otherwise the outer one would take those of the inner one.
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({ outputError: () => undefined })
    .addHelpText('after', AFTER_HELP)
  for (const [name, { summary, load, within = {} }] of Object.entries(COMMANDS)) {
    const command = program.command(name).summary(summary)
    if (name !== named) continue
    await loadCommand(command, await load(), run)
    for (const [inner, entry] of Object.entries(within))
      await loadCommand(command.command(inner).summary(entry.summary), await entry.load(), run)
  }
  return program
}

async function loadCommand(command: Command, definition: CommandDefinition, run: Run): Promise<void> {
  const [{ configureCommand, flagValues }, { processEnvironment }] = await Promise.all([
    import('./commands/command.ts'),
    import('./config/load-settings.ts'),
  ])
  configureCommand(command, definition).action(async () => {
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
  })
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
  const program = command !== undefined && Object.hasOwn(COMMANDS, command) ? `parley ${command}` : 'parley'
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
