import type { Command, Help } from 'commander'
import { CHECK_STATUSES, EXIT_STATUSES, PAGES } from './commands.ts'

/** The manual, for man(7): the texts of `--help` of all commands on one page. */
export function manual(program: Command): string {
  const help = program.createHelp()
  return [
    '.TH PARLEY 1',
    '.SH NAME',
    'parley \\- keep a local SQLite warehouse in sync with a conversation\\-intelligence workspace',
    '.SH SYNOPSIS',
    '.B parley',
    '.I command',
    '[options]',
    '.SH DESCRIPTION',
    escaped(program.description()),
    '.SH COMMANDS',
    ...program.commands.flatMap(command => [
      ...section(command, help, `parley ${command.name()}`),
      ...command.commands.flatMap(inner => section(inner, help, `parley ${command.name()} ${inner.name()}`)),
    ]),
    '.SH EXIT STATUS',
    ...EXIT_STATUSES.flatMap(([status, meaning]) => entry(String(status), meaning)),
    '.PP',
    escaped(CHECK_STATUSES),
    '.SH FILES',
    'In the folder of the program, which',
    '.B parley \\-\\-help',
    'names:',
    ...PAGES.flatMap(([file, about]) => entry(file, about)),
    '',
  ].join('\n')
}

function section(command: Command, help: Help, title: string): string[] {
  const usage = `${title} ${command.usage()}`
  return [
    `.SS "${escaped(title)}"`,
    `.B ${escaped(usage)}`,
    '.PP',
    escaped(command.description()),
    ...command.registeredArguments.flatMap(argument =>
      entry(help.argumentTerm(argument), help.argumentDescription(argument)),
    ),
    ...help
      .visibleOptions(command)
      .flatMap(option => entry(help.optionTerm(option), help.optionDescription(option))),
  ]
}

const entry = (term: string, meaning: string) => ['.TP', `.B ${escaped(term)}`, escaped(meaning)]

/** A line that begins with a dot or an apostrophe would be a request to the formatter. */
const escaped = (text: string) =>
  text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^(?=[.'])/gm, '\\&')
