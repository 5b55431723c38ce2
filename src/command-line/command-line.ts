import { CommanderError } from 'commander'
import {
  type CheckStatus,
  EXIT_STATUS,
  type ExitStatus,
  exitStatusOf,
  ParleyError,
  reportedError,
} from '../base/errors.ts'
import { jsonLine, safeMultilineText } from '../base/safe-text.ts'
import type { CommandContext } from '../commands/base/command.ts'
import { createProgram, hasJsonErrors, isCommand } from './commands.ts'

/** Never rejects: an error is printed on standard error and becomes an exit status. */
export async function runCommandLine(
  argv: readonly string[],
  context: CommandContext,
): Promise<ExitStatus | CheckStatus> {
  const commandName = argv.find(argument => !argument.startsWith('-') && argument !== 'help')
  const { signal, stderr, stdout, version } = context
  // The action sets this variable, since commander returns no result.
  let status: ExitStatus | CheckStatus = EXIT_STATUS.done
  try {
    const program = await createProgram({
      version,
      isNeeded: name => name === commandName,
      write: text => stdout.write(text),
      writeError: text => stderr.write(text),
      async act(command, definition) {
        const { flagValues } = await import('../commands/base/command.ts')
        const flags = flagValues(command, definition.settings)
        status = await definition.run(context, { args: command.args, options: command.opts(), flags })
      },
    })
    // For `help NAME` with an unknown NAME, commander would print the help of the whole program. When it parses NAME
    // alone, it reports an unknown command.
    const isKnown = commandName === undefined || isCommand(commandName)
    await program.parseAsync(isKnown ? argv : [strayOption(argv) ?? commandName], { from: 'user' })
    return status
  } catch (error) {
    const line = { command: commandName, argv }
    const { status, message, hint } = explanationOf(reportedError(error, signal), line)
    if (message === undefined) return status
    const lines = [`parley: ${message}`, ...(hint === undefined ? [] : [`hint: ${hint}`])]
    stderr.write(`${safeMultilineText(lines.join('\n'))}\n`)
    const isJson = argv.includes('--json') && commandName !== undefined && hasJsonErrors(commandName)
    if (isJson && error instanceof CommanderError)
      stdout.write(jsonLine({ exit_status: status, error: { code: 'bad-arguments', message, hint } }))
    return status
  }
}

/**
 * The first argument when that is an option, as in `--database FILE status`. Without this check, FILE would be reported
 * as an unknown command.
 */
function strayOption([first]: readonly string[]): string | undefined {
  return first?.startsWith('-') && first !== '-h' && first !== '--help' ? first : undefined
}

interface Explanation {
  status: ExitStatus | CheckStatus
  /** Printed on standard error; undefined for nothing. */
  message?: string
  hint?: string | undefined
}

interface CommandLine {
  command: string | undefined
  argv: readonly string[]
}

function explanationOf(error: unknown, line: CommandLine): Explanation {
  if (error instanceof CommanderError) return usageExplanation(error, line)
  if (error instanceof ParleyError)
    return { status: exitStatusOf(error), message: error.message, hint: error.hint }
  return {
    status: EXIT_STATUS.fault,
    message: `Internal error: ${faultText(error)}`,
    hint: 'No committed data is lost. Please report this error with the lines above.',
  }
}

/** The stack of an error. The message of a SyntaxError is left out: it quotes the parsed text, which may be private. */
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
  if (error.exitCode === 0) return { status: EXIT_STATUS.done }
  if (error.code === 'commander.help') return { status: EXIT_STATUS.usage }
  const [message = '', suggestion] = error.message.replace(/^error: /, '').split('\n')
  const program = command !== undefined && isCommand(command) ? `parley ${command}` : 'parley'
  const isStray =
    error.code === 'commander.unknownOption' && command !== undefined && strayOption(argv) !== undefined
  const advice = isStray ? 'Write options after the command.' : suggestion?.replace(/^\(|\)$/g, '')
  const guess = advice === undefined ? '' : `${advice} `
  return {
    status: EXIT_STATUS.usage,
    message,
    hint: `${guess}Run ${program} --help for the usage.`,
  }
}
