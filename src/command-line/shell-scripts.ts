import type { Argument, Command, Option } from 'commander'
import { SETTINGS } from '../config/settings.ts'
import { RESOURCE_NAMES } from '../declare/resource-names.ts'
import { REPORTS } from '../declare/resyncable.ts'
import { DICTIONARY } from '../dictionary/dictionary.ts'
import { declaredTableNames } from '../export/chosen-tables.ts'
import { SEARCH_KINDS } from '../store/search/query.ts'

/** Scripts by which the Tab key completes a command line, made from the definitions of the commands. */

/** What a shell offers for an option or an argument, `list` for words between commas; undefined for nothing. */
type Suggested = 'file' | 'folder' | readonly string[] | { list: readonly string[] } | undefined

interface Flag {
  /** The names of the flag, such as `-h` and `--help`. */
  names: readonly string[]
  meaning: string
  takesValue: boolean
  /** Whether the flag may stand without its value, so that another option may follow. */
  isValueOptional: boolean
  value: Suggested
}

interface Described {
  /** The command, or the two words of a command within a command. */
  words: readonly string[]
  summary: string
  flags: readonly Flag[]
  /** What to suggest for the first argument. */
  argument: Suggested
  within: readonly Described[]
}

/** The suggested values, by the placeholder in angle brackets in the help. */
const VALUES: Readonly<Record<string, Suggested>> = {
  file: 'file',
  folder: 'folder',
  target: 'folder',
  resource: RESOURCE_NAMES,
  'resource|reports': [...RESOURCE_NAMES, REPORTS],
  resources: { list: RESOURCE_NAMES },
  names: { list: RESOURCE_NAMES },
  table: DICTIONARY.map(({ name }) => name),
  tables: { list: declaredTableNames() },
  kinds: { list: SEARCH_KINDS },
  level: SETTINGS['log.level'].kind.words,
  'true|false': ['true', 'false'],
}

const describeCommands = (parent: Command, before: readonly string[] = []): Described[] =>
  parent.commands.map(command => {
    const words = [...before, command.name()]
    return {
      words,
      summary: command.summary(),
      flags: command.createHelp().visibleOptions(command).map(flagOf),
      argument: command.registeredArguments[0] && valueAfter(command.registeredArguments[0]),
      within: describeCommands(command, words),
    }
  })

const flagOf = (option: Option): Flag => ({
  names: [option.long, option.short].filter(name => name !== undefined && name !== null),
  meaning: withoutDetails(option.description),
  takesValue: option.required || option.optional,
  isValueOptional: option.optional,
  value: valueAfter(option),
})

function valueAfter(asked: Option | Argument): Suggested {
  if (asked.argChoices !== undefined) return asked.argChoices
  const name = 'flags' in asked ? /^[^<[]*[<[]([^>\]]*)/.exec(asked.flags)?.[1] : asked.name()
  return VALUES[name ?? '']
}

const withoutDetails = (text: string) =>
  text
    .replace(/[;(].*$/s, '')
    .replace(/\s+/g, ' ')
    .trim()

/** The script for bash 4 and newer. */
export function bashScript(program: Command): string {
  const commands = describeCommands(program)
  const all = commands.flatMap(command => [command, ...command.within])
  const cases = all.map(
    ({ words, flags, argument, within }) => `    '${words.join(' ')}')
      ${flags.some(({ isValueOptional }) => isValueOptional) ? '[[ $current == -* ]] || ' : ''}case $previous in
${flags
  .filter(({ takesValue }) => takesValue)
  .map(({ names, value }) => `        ${names.join('|')}) ${bashValue(value)}; return ;;`)
  .join('\n')}
      esac
      if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W '${flags.flatMap(({ names }) => names).join(' ')}' -- "$current"))
      else
        ${bashValue(argument)}${within.length === 0 ? '' : `\n        COMPREPLY+=($(compgen -W '${namesOf(within)}' -- "$current"))`}
      fi ;;`,
  )
  return `# Completion of parley for bash.
_parley() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]}
  local command=\${COMP_WORDS[1]}
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '${namesOf(commands)} help --help --version' -- "$current"))
    return
  fi
  if [[ $command == help ]]; then
    ((COMP_CWORD == 2)) && COMPREPLY=($(compgen -W '${namesOf(commands)}' -- "$current"))
    return
  fi
  case "$command \${COMP_WORDS[2]}" in
${commands.flatMap(({ within }) => within.map(({ words }) => `    '${words.join(' ')}') ((COMP_CWORD > 2)) && command='${words.join(' ')}' ;;`)).join('\n')}
  esac
  case $command in
${cases.join('\n')}
  esac
}
complete -F _parley parley parleyd
`
}

const namesOf = (commands: readonly Described[]) => commands.map(({ words }) => words.at(-1)).join(' ')

function bashValue(value: Suggested): string {
  if (value === undefined) return ':'
  if (value === 'file' || value === 'folder')
    return `compopt -o filenames; mapfile -t COMPREPLY < <(compgen -${value === 'file' ? 'f' : 'd'} -- "$current")`
  if ('list' in value)
    return `COMPREPLY=($(compgen -P "\${current%"\${current##*,}"}" -W '${value.list.join(' ')}' -- "\${current##*,}"))`
  return `COMPREPLY=($(compgen -W '${value.join(' ')}' -- "$current"))`
}

export function zshScript(program: Command): string {
  const commands = describeCommands(program)
  const inner = commands.flatMap(({ within }) => within)
  const cases = [...inner, ...commands].map(({ words, flags, argument, within }) => {
    const values = [
      ...(within.length === 0 ? [] : [`command:(${namesOf(within)})`]),
      ...(argument === undefined ? [] : [zshValue(argument)]),
    ]
    const alternatives = values.map(value => `"values:${value}"`).join(' ')
    // Without a rule for arguments, zsh completes no option after an argument. The space before `_alternative` keeps zsh
    // from passing it options that it does not know.
    const rest = values.length === 0 ? "'*: :()'" : `'*: : _alternative ${alternatives}'`
    const specs = [...flags.flatMap(zshFlags), rest]
    return `    '${words.join(' ')}')\n      _arguments -s -S ${specs.join(' \\\n        ')} ;;`
  })
  return `#compdef parley parleyd
# Completion of parley for zsh.
_parley() {
  local -a commands
  commands=(
${commands.map(({ words, summary }) => `    '${words.join(' ')}:${zshQuoted(summary)}'`).join('\n')}
    'help:show the help of a command'
  )
  if ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  local command=$words[2]
  if [[ $command == help ]]; then
    ((CURRENT == 3)) && _describe command commands
    return
  fi
  shift words
  ((CURRENT--))
  case "$command $words[2]" in
${inner.map(({ words }) => `    '${words.join(' ')}')\n      ((CURRENT > 2)) && { command='${words.join(' ')}'; shift words; ((CURRENT--)) } ;;`).join('\n')}
  esac
  case $command in
${cases.join('\n')}
  esac
}
# In a folder of fpath this file is the function itself; sourced, it names it.
if [[ $funcstack[1] == _parley ]]; then _parley "$@"; else compdef _parley parley parleyd; fi
`
}

const zshFlags = ({ names, meaning, takesValue, isValueOptional, value }: Flag): string[] =>
  names.map(name => {
    const colon = isValueOptional ? '::' : ':'
    return `'${name}[${zshQuoted(meaning)}]${takesValue ? `${colon}${zshValue(value)}` : ''}'`
  })

const zshQuoted = (text: string) => text.replace(/[[\]:\\]/g, '\\$&').replaceAll("'", "'\\''")

function zshValue(value: Suggested): string {
  if (value === undefined) return 'value: '
  if (value === 'file') return 'file:_files'
  if (value === 'folder') return 'folder:_files -/'
  if ('list' in value) return `value: _values -s , value ${value.list.join(' ')}`
  return `value:(${value.join(' ')})`
}

export function fishScript(program: Command): string {
  const commands = describeCommands(program)
  const first = ['complete -c parley -f', 'complete -c parleyd -w parley']
  const names = commands.map(
    ({ words, summary }) =>
      `complete -c parley -n __fish_use_subcommand -a ${words.join(' ')} -d ${fishQuoted(summary)}`,
  )
  const help = `complete -c parley -n '__fish_seen_subcommand_from help' -a ${fishQuoted(namesOf(commands))}`
  const rest = commands
    .flatMap(command => [command, ...command.within])
    .flatMap(command => {
      const { words, flags, argument, within } = command
      const condition = words.map(word => `__fish_seen_subcommand_from ${word}`).join('; and ')
      const line = (what: string) => `complete -c parley -n ${fishQuoted(condition)} ${what}`
      return [
        ...flags.map(({ names, meaning, takesValue, isValueOptional, value }) =>
          line(
            [
              ...names.map(name => (name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`)),
              // For fish, a value that may be left out belongs to the same word: --name=VALUE.
              ...(takesValue && !isValueOptional ? [fishValue(value)] : []),
              `-d ${fishQuoted(meaning)}`,
            ].join(' '),
          ),
        ),
        ...(argument === undefined ? [] : [line(fishValue(argument).replace(/^-x /, ''))]),
        ...within.map(({ words: inner, summary }) => line(`-a ${inner.at(-1)} -d ${fishQuoted(summary)}`)),
      ]
    })
  return `# Completion of parley for fish.\n${[...first, ...names, help, ...rest].join('\n')}\n`
}

const fishQuoted = (text: string) => `'${text.replace(/[\\']/g, '\\$&')}'`

function fishValue(value: Suggested): string {
  if (value === undefined) return '-x'
  if (value === 'file') return '-r -F'
  if (value === 'folder') return "-x -a '(__fish_complete_directories)'"
  if ('list' in value) return `-x -a '(__fish_append , ${value.list.join(' ')})'`
  return `-x -a ${fishQuoted(value.join(' '))}`
}
