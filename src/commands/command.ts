import { type Argument, type Command, Option } from 'commander'
import {
  type ApiSettings,
  type Environment,
  type LoadedSettings,
  loadSettings,
  type SettingFlags,
  type SettingsRequest,
} from '../config.ts'
import { SETTING_LIST, type SettingKey, settingOf } from '../config-settings.ts'
import type { ExitStatus } from '../errors.ts'
import type { Keyboard } from './ask-secret.ts'

/** The part of a writable stream that commands use. */
export interface Output {
  write(text: string): unknown
  isTTY?: boolean
  columns?: number
  rows?: number
}

/** Everything a command may take from the process that it runs in. */
export interface CommandContext {
  env: Environment
  cwd: string
  /** Results. */
  stdout: Output
  /** Progress and logs. */
  stderr: Output
  /** Read only where a person is asked something. */
  stdin: Keyboard
  /** Aborted by the first SIGTERM or SIGINT; its reason is a StopError of status 75, which a command may throw. */
  signal: AbortSignal
  /** Has the listener called on every SIGHUP, which ends the process where nobody listens. */
  onHangup(listener: () => void): void
  /** Of this program. */
  version: string
}

export interface CommandInput<Options extends object> {
  /** The arguments in order; those that the definition requires are there. */
  args: readonly string[]
  /** What commander makes of the definition's own options. */
  options: Options
  /** The settings given as flags. */
  flags: SettingFlags
}

/**
 * A command as data and one function. Heavy imports belong inside `run`, so that help stays quick.
 * `run` resolves to the exit status or throws: a StopError ends with its own status, a RetryError or ResourceError
 * with 69, an AbortError after a signal with 75, and anything else is a fault of the program, status 1.
 */
export interface CommandDefinition<Options extends object = object> {
  /** The paragraph under the usage line. */
  description: string
  arguments?: readonly Argument[]
  /** The settings that have a flag here. Any at all bring `--config` with them. */
  settings: readonly SettingKey[]
  options: readonly Option[]
  /** Command lines, each with what it does. */
  examples: readonly (readonly [line: string, does: string])[]
  run(context: CommandContext, input: CommandInput<Options>): Promise<ExitStatus>
}

/** The keys of whole sections, such as `api` and `log`. */
export function settingsIn(...sections: readonly string[]): SettingKey[] {
  return SETTING_LIST.map(([key]) => key).filter(key => sections.includes(key.slice(0, key.indexOf('.'))))
}

/** Gives commander's command all that the definition says but its action. */
export function equip(command: Command, definition: CommandDefinition): Command {
  command.description(definition.description)
  for (const argument of definition.arguments ?? []) command.addArgument(argument)
  for (const option of definition.options) command.addOption(option)
  addSettingFlags(command, definition.settings)
  const examples = definition.examples.map(([line, does]) => `  $ ${line}\n      ${does}`)
  return command.addHelpText('after', `\nExamples:\n${examples.join('\n')}`)
}

const CONFIG_OPTION = new Option('--config <file>', 'the settings file; default config/parley.toml')

export function addSettingFlags(command: Command, keys: readonly SettingKey[]): void {
  if (keys.length > 0) command.addOption(CONFIG_OPTION)
  for (const key of keys) command.addOption(settingOption(key))
}

/** The flags of these settings as commander found them. */
export function settingFlags(command: Command, keys: readonly SettingKey[]): SettingFlags {
  const values = command.opts<Record<string, string | undefined>>()
  const flags = keys.map(key => [key, values[settingOption(key).attributeName()]])
  return { ...Object.fromEntries(flags), config: values[CONFIG_OPTION.attributeName()] }
}

/** Explained by the first sentence of the setting's description. */
function settingOption(key: SettingKey): Option {
  const { flag, placeholder, secret, description, default: usual } = settingOf(key)
  const meaning = secret
    ? `A file that holds ${secret}, which no flag takes itself, since others could see it`
    : description.replace(/\.( .*)?$/s, '').replaceAll('`', '')
  const note = usual === undefined ? key : `${key}, default ${usual}`
  return new Option(`${flag} <${placeholder}>`, `${meaning} (${note})`).helpGroup('Settings:')
}

/** What is enough to read a warehouse: commands that only do that go on whatever else the settings say. */
export const READING = {
  requireApi: false,
  used: ['database.path'],
} as const satisfies Partial<SettingsRequest>

/** Loads the settings and says the warnings on standard error. */
export function settingsFor(
  context: CommandContext,
  input: CommandInput<object>,
  need: { requireApi: true; resourceNames?: readonly string[] },
): LoadedSettings<ApiSettings>
export function settingsFor(
  context: CommandContext,
  input: CommandInput<object>,
  need: Pick<SettingsRequest, 'requireApi' | 'resourceNames' | 'used'>,
): LoadedSettings
export function settingsFor(
  { env, cwd, stderr }: CommandContext,
  { flags }: CommandInput<object>,
  need: Pick<SettingsRequest, 'requireApi' | 'resourceNames' | 'used'>,
): LoadedSettings {
  const loaded = loadSettings({ flags, env, cwd, ...need })
  for (const warning of loaded.warnings) stderr.write(`parley: warning: ${warning}\n`)
  return loaded
}

/** Whether this stream is a terminal on which colours are welcome. */
export function mayColour(stream: Output, env: Environment): boolean {
  return stream.isTTY === true && !env['NO_COLOR'] && env['TERM'] !== 'dumb'
}
