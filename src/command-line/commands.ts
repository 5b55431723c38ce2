import { Command } from 'commander'
import { INSTALLATION } from '../base/installation.ts'
import type { CommandDefinition } from '../commands/base/command.ts'

interface CommandEntry {
  summary: string
  /**
   * Called only for a command that runs or whose help is printed. Without `load`, only the commands within this command
   * run.
   */
  load?(): Promise<CommandDefinition>
  /** Whether `--json` prints an object for an error too. The command prints those that it meets when it runs. */
  hasJsonErrors?: boolean
  /** Commands within the command, such as `parley publish verify`. */
  within?: Readonly<Record<string, Required<Pick<CommandEntry, 'summary' | 'load'>>>>
}

/** The commands in the order in which a new user needs them. */
const COMMANDS: Readonly<Record<string, CommandEntry>> = {
  init: {
    summary: 'write a settings file',
    load: async () => (await import('../commands/init.ts')).initCommand,
  },
  doctor: {
    summary: 'check the settings, the API and the database, and suggest fixes',
    load: async () => (await import('../commands/doctor.ts')).doctorCommand,
  },
  backfill: {
    summary: 'read everything into the warehouse and exit',
    hasJsonErrors: true,
    load: async () => (await import('../commands/backfill/backfill.ts')).backfillCommand,
  },
  daemon: {
    summary: 'keep the warehouse in sync with the API until stopped',
    load: async () => (await import('../commands/daemon.ts')).daemonCommand,
  },
  status: {
    summary: 'show what is in the warehouse and how fresh it is',
    load: async () => (await import('../commands/status/status.ts')).statusCommand,
  },
  service: {
    summary: 'install the daemon as a service of systemd',
    within: {
      install: {
        summary: 'install the service of one workspace and start it',
        load: async () => (await import('../commands/service/service.ts')).serviceInstallCommand,
      },
      uninstall: {
        summary: 'stop and remove the service; the data stay',
        load: async () => (await import('../commands/service/service.ts')).serviceUninstallCommand,
      },
    },
  },
  search: {
    summary: 'search transcripts, e-mails and other texts',
    load: async () => (await import('../commands/search/search.ts')).searchCommand,
  },
  report: {
    summary: 'write a report for people: pipeline, activity, reply times and more, as one HTML file',
    load: async () => (await import('../commands/report.ts')).reportCommand,
  },
  schema: {
    summary: 'describe every table and column, also for Datasette and DuckDB',
    load: async () => (await import('../commands/schema/schema.ts')).schemaCommand,
  },
  export: {
    summary: 'write the warehouse as Parquet files',
    load: async () => (await import('../commands/export.ts')).exportCommand,
  },
  publish: {
    summary: 'publish the warehouse as Iceberg tables for Spark, Trino and other engines',
    load: async () => (await import('../commands/publish.ts')).publishCommand,
    within: {
      verify: {
        summary: 'check that the files of a target are whole and have nothing that was erased',
        load: async () => (await import('../commands/publish-verify.ts')).publishVerifyCommand,
      },
    },
  },
  snapshot: {
    summary: 'copy the warehouse to a self-contained file',
    load: async () => (await import('../commands/snapshot.ts')).snapshotCommand,
  },
  restore: {
    summary: 'replace the warehouse with a snapshot',
    load: async () => (await import('../commands/restore.ts')).restoreCommand,
  },
  resync: {
    summary: 'read one resource again from the start',
    load: async () => (await import('../commands/resync.ts')).resyncCommand,
  },
  'accept-deletions': {
    summary: 'apply the deletions that the mass-deletion guard holds back',
    load: async () => (await import('../commands/accept-deletions.ts')).acceptDeletionsCommand,
  },
  completion: {
    summary: 'print a script by which a shell completes commands and options',
    load: async () => (await import('../commands/completion.ts')).completionCommand,
  },
  demo: {
    summary: 'try parley on a simulated workspace',
    load: async () => (await import('../commands/demo/demo.ts')).demoCommand,
  },
  simulate: {
    summary: 'serve the whole API from a simulated workspace',
    load: async () => (await import('../commands/simulate.ts')).simulateCommand,
  },
}

export const isCommand = (name: string): boolean => Object.hasOwn(COMMANDS, name)

export const hasJsonErrors = (name: string): boolean =>
  isCommand(name) && COMMANDS[name]?.hasJsonErrors === true

/** The exit statuses of all commands except `parley status --check`. */
export const EXIT_STATUSES: readonly (readonly [status: number, meaning: string])[] = [
  [0, 'done'],
  [1, 'a fault of parley; please report it'],
  [64, 'the command line is wrong'],
  [69, 'the API cannot be reached, or a resource cannot be read'],
  [73, 'the database, a file or a target cannot be used'],
  [75, 'stopped, or another process is at work; run the command again'],
  [77, 'the API refuses the key or the workspace'],
  [78, 'the settings or the installation are invalid'],
]

export const CHECK_STATUSES = 'parley status --check has its own: 0 fine, 1 a warning, 2 a person has to act.'

/** The pages that come with the program. */
export const PAGES: readonly (readonly [file: string, about: string])[] = [
  ['README.md', 'what parley does, and the first steps'],
  ['config/README.md', 'every setting'],
  ['drizzle/README.md', 'every table and column, and questions in SQL'],
  ['systemd/README.md', 'parley as a service, backups and monitoring'],
]

export interface ProgramOptions {
  version: string
  /** Whether a command needs more than its summary. The modules of all other commands are not loaded. */
  isNeeded(name: string): boolean
  /** Prints help and versions that were asked for. */
  write(text: string): void
  /** Prints the help after an incomplete command line. */
  writeError(text: string): void
  /** Does what the command line asks for. */
  act(command: Command, definition: CommandDefinition): Promise<void>
}

export async function createProgram({
  version,
  isNeeded,
  write,
  writeError,
  act,
}: ProgramOptions): Promise<Command> {
  const program = new Command('parley')
    .description('Keeps a local SQLite warehouse in sync with a conversation-intelligence workspace.')
    .version(version)
    // An option belongs to the command before it. Otherwise an outer command would take the options of the inner
    // command.
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({ writeOut: write, writeErr: writeError, outputError: () => undefined })
    .addHelpText('after', helpEnd())
  const complete = async (command: Command, definition: CommandDefinition) => {
    const { configureCommand } = await import('../commands/base/command.ts')
    configureCommand(command, definition).action(() => act(command, definition))
  }
  for (const [name, { summary, load, within = {} }] of Object.entries(COMMANDS)) {
    const command = program.command(name).summary(summary)
    if (!isNeeded(name)) continue
    if (load !== undefined) await complete(command, await load())
    const examples: (readonly [line: string, does: string])[] = []
    for (const [word, entry] of Object.entries(within)) {
      const definition = await entry.load()
      await complete(command.command(word).summary(entry.summary), definition)
      examples.push(...definition.examples)
    }
    if (load !== undefined) continue
    const { examplesText } = await import('../commands/base/command.ts')
    command
      .description(`${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`)
      .addHelpText('after', examplesText(examples))
  }
  return program
}

function helpEnd(): string {
  const statuses = EXIT_STATUSES.map(([status, meaning]) => `  ${String(status).padEnd(2)}  ${meaning}`)
  const width = Math.max(...PAGES.map(([file]) => file.length))
  const pages = PAGES.map(([file, about]) => `  ${file.padEnd(width)}  ${about}`)
  return [
    '\nExamples:\n  $ parley init\n  $ parley backfill --help',
    `\nExit status:\n${statuses.join('\n')}\n${CHECK_STATUSES}`,
    `\nPages in ${INSTALLATION}:\n${pages.join('\n')}`,
  ].join('\n')
}
