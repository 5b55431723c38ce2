import { type Argument, type Command, InvalidArgumentError, Option } from 'commander'
import type { CheckStatus, ExitStatus } from '../../base/errors.ts'
import { loadSettings } from '../../config/load-settings.ts'
import type { Environment, SettingFlags, SettingsRequest } from '../../config/loaded-settings.ts'
import { SETTING_LIST, type SettingKey, sectionOf, settingNamed } from '../../config/settings.ts'
import { RESOURCE_NAMES } from '../../declare/resource-names.ts'
import type { Keyboard } from '../../terminal/ask.ts'
import type { Output } from '../../terminal/output.ts'

/** What a command may use of its process. */
export interface CommandContext {
  env: Environment
  cwd: string
  /** Where results go. */
  stdout: Output
  /** Where progress and logs go. */
  stderr: Output
  /** Where log lines go. Default: standard error, written synchronously. */
  log?: { write(text: string): unknown }
  /** Where a person types answers to questions. */
  stdin: Keyboard
  /**
   * Aborted by the first SIGTERM or SIGINT, or by SIGHUP without a listener. The reason is a StopError (exit status 75),
   * which a command may throw.
   */
  signal: AbortSignal
  /**
   * Calls the listener on every signal of that name. Without a listener SIGHUP stops the command, and SIGUSR1 does
   * nothing.
   */
  onSignal(name: 'SIGHUP' | 'SIGUSR1', listener: () => void): void
  version: string
}

export interface CommandInput<Options extends object> {
  /** The arguments in order; required ones are present. */
  args: readonly string[]
  /** The definition's options as parsed by commander. */
  options: Options
  flags: SettingFlags
}

/**
 * A command: data and one function. Heavy modules are imported inside `run`, so that help is quick. `run` resolves to
 * the exit status or throws. A thrown StopError has its own exit status, a RetryError or ResourceError gives 69, an
 * AbortError after a signal 75, and any other error 1.
 */
export interface CommandDefinition<Options extends object = object> {
  /** The paragraph under the usage line. */
  description: string
  arguments?: readonly Argument[]
  /** The settings that the command takes as flags. When there are any, `--config` is added. */
  settings: readonly SettingKey[]
  options: readonly Option[]
  examples: readonly (readonly [line: string, does: string])[]
  run(context: CommandContext, input: CommandInput<Options>): Promise<ExitStatus | CheckStatus>
}

/** The keys of all settings in these sections for which a flag exists. */
export function settingsOfSections(...sections: readonly string[]): SettingKey[] {
  return SETTING_LIST.filter(
    ([key, { flag }]) => flag !== undefined && sections.includes(sectionOf(key)),
  ).map(([key]) => key)
}

/** Applies the definition to commander's command, except its action. */
export function configureCommand(command: Command, definition: CommandDefinition): Command {
  command.description(definition.description)
  for (const argument of definition.arguments ?? [])
    command.addArgument(argument.variadic || argument.parseArg ? argument : argument.argParser(notEmpty))
  for (const option of definition.options) command.addOption(option)
  addSettingFlags(command, definition.settings)
  refuseRepeatedLists(command)
  return command.addHelpText('after', examplesText(definition.examples))
}

export const examplesText = (examples: CommandDefinition['examples']): string =>
  `\nExamples:\n${examples.map(([line, does]) => `  $ ${line}\n      ${does}`).join('\n')}`

/** The values of these options are lists, separated by commas. */
const LIST_OPTION = /<(kinds|names|resources|tables)>$/

/** A list that is given twice could mean both lists. Of other options the last value counts, as after an alias. */
function refuseRepeatedLists(command: Command): void {
  const given = new Set<Option>()
  for (const option of command.options.filter(({ flags }) => LIST_OPTION.test(flags)))
    command.on(`option:${option.name()}`, () => {
      if (given.has(option))
        command.error(
          `error: option '${option.flags}' is given more than once\n(Give it once, with commas between its values.)`,
        )
      given.add(option)
    })
}

/** An empty path would be taken for the working directory. */
export function notEmpty(text: string): string {
  if (text === '') throw new InvalidArgumentError('Expected a value, and it is empty.')
  return text
}

const CONFIG_OPTION = new Option(
  '--config <file>',
  'the settings file; default config/parley.toml',
).argParser(notEmpty)

function addSettingFlags(command: Command, keys: readonly SettingKey[]): void {
  if (keys.length > 0) command.addOption(CONFIG_OPTION)
  for (const key of keys) command.addOption(settingOption(key))
}

export function flagValues(command: Command, keys: readonly SettingKey[]): SettingFlags {
  const values = command.opts<Record<string, string | undefined>>()
  const flags = keys.map(key => [key, values[settingOption(key).attributeName()]])
  return { ...Object.fromEntries(flags), config: values[CONFIG_OPTION.attributeName()] }
}

/** The flag of a setting, with the first sentence of the description as its help. The flag of a secret takes a file. */
function settingOption(key: SettingKey): Option {
  const { flag, secret, description, default: usual, ...setting } = settingNamed(key)
  const placeholder = setting.placeholder ?? (secret ? 'file' : 'true|false')
  const meaning = secret
    ? `File that contains ${secret} (no flag takes the value itself, since other users could see it)`
    : description.replace(/\.( .*)?$/s, '').replaceAll('`', '')
  const note = usual === undefined ? key : `${key}, default ${usual}`
  return new Option(`${flag} <${placeholder}>`, `${meaning} (${note})`).helpGroup('Settings:')
}

/** For commands that only read the warehouse: an invalid setting other than `database.path` is only a warning. */
export const DATABASE_ONLY = {
  requireApi: false,
  used: ['database.path'],
} as const satisfies Partial<SettingsRequest>

/** What a command needs of the settings. */
export type SettingsNeed = Omit<SettingsRequest, 'flags' | 'env' | 'cwd' | 'user' | 'resourceNames'>

/** Loads the settings and prints the warnings on standard error. */
export function loadCommandSettings<Need extends SettingsNeed>(
  { env, cwd, stderr }: CommandContext,
  { flags }: CommandInput<object>,
  need: Need,
) {
  const loaded = loadSettings({ flags, env, cwd, resourceNames: RESOURCE_NAMES, ...need })
  for (const warning of loaded.warnings) stderr.write(`parley: Warning: ${warning}\n`)
  return loaded
}
