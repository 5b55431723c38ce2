#!/usr/bin/env -S MALLOC_ARENA_MAX=2 node --max-semi-space-size=8
/**
 * From the command line to an exit status. The only file that ends the process.
 * The option in the first line keeps what is young in 8 MB instead of 16, which costs nothing and saves 20 MB. The
 * variable has all threads share two arenas of malloc, which saves 12 MB where transcripts, records and texts are read.
 */

import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import type { CommandContext, CommandDefinition } from './commands/command.ts'
import { EXIT_STATUS, type ExitStatus, exitStatusOf, ParleyError, StopError } from './errors.ts'
import { harmlessLines } from './harmless.ts'

interface CommandEntry {
  summary: string
  /** Only the command that is run, or explained, is loaded. */
  load(): Promise<CommandDefinition>
}

const COMMANDS: Readonly<Record<string, CommandEntry>> = {
  'accept-deletions': {
    summary: 'delete at once what the mass-deletion guard holds back',
    load: async () => (await import('./commands/accept-deletions.ts')).acceptDeletionsCommand,
  },
  backfill: {
    summary: 'read everything into the warehouse, and exit',
    load: async () => (await import('./commands/backfill.ts')).backfillCommand,
  },
  daemon: {
    summary: 'keep the warehouse true to the API, for as long as it runs',
    load: async () => (await import('./commands/daemon.ts')).daemonCommand,
  },
  doctor: {
    summary: 'check the settings, the API and the database, and say what to do',
    load: async () => (await import('./commands/doctor.ts')).doctorCommand,
  },
  demo: {
    summary: 'see all of it at work on a made-up workspace',
    load: async () => (await import('./commands/demo.ts')).demoCommand,
  },
  export: {
    summary: 'write the warehouse as Parquet files for other engines',
    load: async () => (await import('./commands/export.ts')).exportCommand,
  },
  init: {
    summary: 'write a settings file to start from',
    load: async () => (await import('./commands/init.ts')).initCommand,
  },
  restore: {
    summary: 'put a snapshot in the place of the warehouse',
    load: async () => (await import('./commands/restore.ts')).restoreCommand,
  },
  resync: {
    summary: 'have one resource read again from the start',
    load: async () => (await import('./commands/resync.ts')).resyncCommand,
  },
  search: {
    summary: 'find what was said and written',
    load: async () => (await import('./commands/search.ts')).searchCommand,
  },
  schema: {
    summary: 'say what every table and column means, also for Datasette and DuckDB',
    load: async () => (await import('./commands/schema.ts')).schemaCommand,
  },
  simulate: {
    summary: 'serve the whole API from a made-up workspace',
    load: async () => (await import('./commands/simulate.ts')).simulateCommand,
  },
  snapshot: {
    summary: 'copy the warehouse, at any time, to a file that opens anywhere',
    load: async () => (await import('./commands/snapshot.ts')).snapshotCommand,
  },
  status: {
    summary: 'show what is in the warehouse and how fresh it is',
    load: async () => (await import('./commands/status.ts')).statusCommand,
  },
}

/** What the action of the command leaves behind, since commander hands nothing on. */
interface Run {
  status: ExitStatus
  signal: AbortSignal | undefined
}

void main(process.argv.slice(2)).then(leave)

/** Never rejects: whatever goes wrong is said on standard error and becomes a status. */
async function main(argv: readonly string[]): Promise<ExitStatus> {
  outliveReaders()
  const named = argv.find(argument => !argument.startsWith('-') && argument !== 'help')
  const run: Run = { status: EXIT_STATUS.done, signal: undefined }
  try {
    const program = await programFor(named, run)
    // Asked for help on a command that it does not know, commander would explain the whole program instead.
    const known = named === undefined || Object.hasOwn(COMMANDS, named)
    await program.parseAsync(known ? argv : [strayOption(argv) ?? named], { from: 'user' })
    return run.status
  } catch (error) {
    const stopped = run.signal?.aborted && error instanceof Error && error.name === 'AbortError'
    const { status, lines } = explain(stopped ? run.signal?.reason : error, named)
    if (lines.length > 0) process.stderr.write(`${harmlessLines(lines.join('\n'))}\n`)
    return status
  }
}

/** An option where the command should stand: commander would take what follows it for a command that it does not know. */
function strayOption([first]: readonly string[]): string | undefined {
  return first?.startsWith('-') && first !== '-h' && first !== '--help' ? first : undefined
}

/** What is still on its way to a slow reader is written before the end. */
function leave(status: ExitStatus): void {
  process.stdout.write('', () => process.exit(status))
}

/**
 * A reader such as `head` may close the pipe early: the command still ends as it would have. A disk that is full, or a
 * terminal that is gone, takes no more of standard error, and no work may stop for that.
 */
function outliveReaders(): void {
  process.stderr.on('error', () => undefined)
  process.stdout.on('error', error => {
    if (!('code' in error) || error.code !== 'EPIPE') throw error
  })
}

/** The whole program with the command that is named in full, and of the others the summary only. */
async function programFor(named: string | undefined, run: Run): Promise<Command> {
  const program = new Command('parley')
    .description('Keeps a local SQLite warehouse true to a conversation-intelligence workspace.')
    .version(version())
    .exitOverride()
    .configureOutput({ outputError: () => undefined })
    .addHelpText('after', '\nExamples:\n  $ parley init\n  $ parley backfill --help')
  for (const [name, { summary, load }] of Object.entries(COMMANDS)) {
    const command = program.command(name).summary(summary)
    if (name === named) await prepare(command, await load(), run)
  }
  return program
}

async function prepare(command: Command, definition: CommandDefinition, run: Run): Promise<void> {
  const [{ equip, settingFlags }, { processEnvironment }] = await Promise.all([
    import('./commands/command.ts'),
    import('./config.ts'),
  ])
  equip(command, definition).action(async () => {
    const signal = stopSignal()
    run.signal = signal
    const context: CommandContext = {
      env: processEnvironment(),
      cwd: process.cwd(),
      stdout: process.stdout,
      stderr: process.stderr,
      // Opened only where it is read.
      get stdin() {
        return process.stdin
      },
      signal,
      onHangup: listener => void process.on('SIGHUP', listener),
      version: version(),
    }
    const flags = settingFlags(command, definition.settings)
    run.status = await definition.run(context, { args: command.args, options: command.opts(), flags })
  })
}

/** The first signal asks the command to end, a second one ends it. */
function stopSignal(): AbortSignal {
  const controller = new AbortController()
  const stop = (by: string) => {
    if (controller.signal.aborted) process.exit(EXIT_STATUS.unfinished)
    controller.abort(
      new StopError(`stopped by ${by}`, {
        code: 'stopped',
        exitStatus: EXIT_STATUS.unfinished,
        hint: 'run it again and it goes on where it stopped',
      }),
    )
  }
  process.on('SIGTERM', stop).on('SIGINT', stop)
  // Only where another process started this one with a channel to it, as parley demo does.
  process.on('disconnect', () => stop('the end of the process that started it'))
  return controller.signal
}

interface Explanation {
  status: ExitStatus
  /** What is said on standard error. */
  lines: readonly string[]
}

function explain(error: unknown, command: string | undefined): Explanation {
  if (error instanceof CommanderError) return explainUsage(error, command)
  if (error instanceof ParleyError) {
    const hint = error.hint === undefined ? [] : [`hint: ${error.hint}`]
    return { status: exitStatusOf(error), lines: [`parley: ${error.message}`, ...hint] }
  }
  return {
    status: EXIT_STATUS.fault,
    lines: [
      `parley: a fault of the program: ${faultOf(error)}`,
      'hint: nothing that was committed is lost; please report this with the lines above',
    ],
  }
}

/** The stack. The message of a SyntaxError is left out: it quotes what was parsed, which may be anybody's words. */
function faultOf(error: unknown): string {
  if (!(error instanceof Error)) return `a thrown ${typeof error}`
  const stack = error.stack ?? error.name
  const frames = stack.split('\n').filter(line => /^\s+at /.test(line))
  return error instanceof SyntaxError ? [error.name, ...frames].join('\n') : stack
}

/** Help and version have been written by commander and are no errors; without a command, help went to standard error. */
function explainUsage(error: CommanderError, command: string | undefined): Explanation {
  if (error.exitCode === 0) return { status: EXIT_STATUS.done, lines: [] }
  if (error.code === 'commander.help') return { status: EXIT_STATUS.usage, lines: [] }
  const [message = '', suggestion] = error.message.replace(/^error: /, '').split('\n')
  const program = command !== undefined && Object.hasOwn(COMMANDS, command) ? `parley ${command}` : 'parley'
  const isStray = error.code === 'commander.unknownOption' && command !== undefined && program === 'parley'
  const advice = isStray ? 'Options stand after the command.' : suggestion?.replace(/^\(|\)$/g, '')
  const guess = advice === undefined ? '' : `${advice} `
  return {
    status: EXIT_STATUS.usage,
    lines: [`parley: ${message}`, `hint: ${guess}${program} --help says what there is`],
  }
}

function version(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  return typeof manifest === 'object' && manifest !== null && 'version' in manifest
    ? String(manifest.version)
    : 'unknown'
}
