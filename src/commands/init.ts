import { existsSync, mkdirSync, statSync } from 'node:fs'
import { devNull } from 'node:os'
import { basename, dirname, extname, join, resolve } from 'node:path'
import { Option } from 'commander'
import { type CheckStatus, EXIT_STATUS, type ExitStatus, StopError } from '../base/errors.ts'
import { shellWord } from '../base/safe-text.ts'
import { loadSettings } from '../config/load-settings.ts'
import type { Environment, SettingFlags } from '../config/loaded-settings.ts'
import { settingsFilePath } from '../config/setting-layers.ts'
import {
  environmentName,
  fileEnvironmentName,
  SETTING_LIST,
  type SettingKey,
  settingNamed,
} from '../config/settings.ts'
import { renderSettingsFile } from '../config/settings-file.ts'
import { RESOURCE_NAMES } from '../declare/resource-names.ts'
import { replaceFile, writeFaultOf } from '../store/disk/new-files.ts'
import type { GuessedSetting } from '../store/reporting/guessed-settings.ts'
import { ask } from '../terminal/ask.ts'
import { countText } from '../terminal/wording.ts'
import { type CommandContext, type CommandDefinition, DATABASE_ONLY } from './base/command.ts'

interface InitOptions {
  force?: true
  stdout?: true
  /** False with `--no-try`. */
  try: boolean
}

/** All settings that have a flag. */
const FLAGS = SETTING_LIST.flatMap(([key, { flag }]) => (flag === undefined ? [] : [key]))

export const initCommand: CommandDefinition<InitOptions> = {
  description:
    'Writes a settings file that explains every setting. Settings given as flags are filled in; all others are commented out. Where there is a warehouse already, what it guesses about the CRM stands in these comments, with the reasons. On a terminal it asks for the address of the API, the workspace and the key where they are not given, writes the key to a separate file next to the settings file, tries them as parley doctor does, and offers to estimate a backfill. Only you can read both files.',
  settings: FLAGS,
  options: [
    new Option('--force', 'overwrite an existing file'),
    new Option('--stdout', 'print the settings instead of writing a file'),
    new Option('--no-try', 'on a terminal: do not try the settings'),
  ],
  examples: [
    ['parley init', 'writes config/parley.toml'],
    [
      'parley init --base-url https://api.example.com --workspace-id 42',
      'writes it with two settings filled in',
    ],
    ['parley init --config /etc/parley/acme.toml', 'writes another file'],
    ['parley init --stdout', 'prints it'],
  ],

  async run(context, { flags, options }) {
    const { env, cwd, stdout, stderr, stdin } = context
    const values = await tomlValues(flags, cwd)
    const guesses = await guessesFor({ flags, env, cwd })
    if (options.stdout) {
      stdout.write(renderSettingsFile(values, guesses))
      return EXIT_STATUS.done
    }
    const { path } = settingsFilePath({ flags, env })
    const isForced = options.force === true
    refuseExistingFile(path, cwd, isForced)
    const keyFile = `${basename(path, extname(path))}.key`
    const keyPath = join(dirname(path), keyFile)
    const open = REQUIRED.filter(each => !isGiven(each, flags, env))
    const asked = stdin.isTTY === true && stderr.isTTY === true ? open : []
    if (asked.includes('api.key')) refuseExistingFile(keyPath, cwd, isForced)
    const answers = new Map<SettingKey, string>()
    for (const key of asked) {
      const answer = await promptFor(key, context)
      if (answer !== '') answers.set(key, answer)
    }
    for (const [key, answer] of answers) {
      if (key === 'api.key') writePrivateFile(keyPath, cwd, `${answer}\n`)
      values[key] = JSON.stringify(key === 'api.key' ? keyFile : answer)
    }
    writePrivateFile(path, cwd, renderSettingsFile(values, guesses))
    const missing = open.filter(each => values[each] === undefined)
    const found = settingsFilePath({ flags: {}, env }).path
    if (answers.size === 0 || missing.length > 0 || !options.try) {
      const named = flags['api.key']
      const lostKey = named !== undefined && !existsSync(resolve(cwd, named)) ? named : undefined
      const steps = nextSteps({ path, keyFile, missing, lostKey, found, guesses: guesses.size })
      stdout.write(steps.join('\n'))
      return EXIT_STATUS.done
    }
    stdout.write(`Wrote ${path}. Trying the settings:\n\n`)
    return tryThem(context, path === found ? {} : { config: path })
  },
}

/** Runs `parley doctor`. If nothing is wrong, offers to estimate what a backfill would cost. */
async function tryThem(context: CommandContext, flags: SettingFlags): Promise<ExitStatus | CheckStatus> {
  const input = { args: [], flags, options: {} }
  const { doctorCommand } = await import('./doctor.ts')
  const status = await doctorCommand.run(context, input)
  if (status !== EXIT_STATUS.done) return status
  const text = 'Estimate now what reading everything would cost, with a few requests? [Y/n] '
  const answer = await askPerson(context, { text, isSecret: false })
  if (answer === undefined || /^n/i.test(answer)) return EXIT_STATUS.done
  const { backfillCommand } = await import('./backfill/backfill.ts')
  return backfillCommand.run(context, { ...input, options: { plan: true } })
}

/** The guesses of an existing warehouse. They are only a help, so a warehouse that cannot be read is no error. */
async function guessesFor({
  flags,
  env,
  cwd,
}: Pick<CommandContext, 'env' | 'cwd'> & { flags: SettingFlags }): Promise<
  ReadonlyMap<string, GuessedSetting>
> {
  const { path } = loadSettings({ flags: { ...flags, config: devNull }, env, cwd, ...DATABASE_ONLY }).settings
    .database
  if (!existsSync(path)) return new Map()
  const [{ readDatabase }, { guessedSettings }] = await Promise.all([
    import('../store/file/open.ts'),
    import('../store/reporting/guessed-settings.ts'),
  ])
  try {
    const guesses = readDatabase({ path }, guessedSettings)
    return new Map(guesses.map(guess => [guess.key, guess]))
  } catch (error) {
    if (error instanceof StopError) return new Map()
    throw error
  }
}

const REQUIRED = ['api.base_url', 'api.workspace_id', 'api.key'] as const

function isGiven(key: SettingKey, flags: SettingFlags, env: Environment): boolean {
  const names = [environmentName(key), ...(settingNamed(key).secret ? [fileEnvironmentName(key)] : [])]
  return flags[key] !== undefined || names.some(name => Boolean(env[name]))
}

/** The flags as TOML, after the usual checks. An existing settings file is not read. */
async function tomlValues(flags: SettingFlags, cwd: string): Promise<{ [Key in SettingKey]?: string }> {
  const { declaredTableNames } = await import('../export/chosen-tables.ts')
  const names = { resourceNames: RESOURCE_NAMES, tableNames: declaredTableNames() }
  loadSettings({ flags: { ...flags, config: devNull }, env: {}, cwd, requireApi: false, ...names })
  return Object.fromEntries(
    SETTING_LIST.flatMap(([key, { kind, secret }]) => {
      const text = flags[key]
      if (text === undefined) return []
      return [[key, JSON.stringify(secret === undefined ? kind.fromText(text) : resolve(cwd, text))]]
    }),
  )
}

const QUESTIONS: Readonly<Record<(typeof REQUIRED)[number], string>> = {
  'api.base_url': 'Address of the API, such as https://api.example.com (press Enter to skip): ',
  'api.workspace_id': 'Id of the workspace (press Enter to skip): ',
  'api.key': 'API key (not shown; press Enter to skip): ',
}

/**
 * Asks for a setting; empty when the user skips it.
 * @throws StopError (exit status 64) for an invalid value, with 75 after Ctrl-C
 */
async function promptFor(key: (typeof REQUIRED)[number], context: CommandContext): Promise<string> {
  const isSecret = key === 'api.key'
  const typed = await askPerson(context, { text: QUESTIONS[key], isSecret })
  if (typed === undefined) {
    throw new StopError('Stopped. No file was written.', {
      code: 'init-stopped',
      exitStatus: EXIT_STATUS.unfinished,
    })
  }
  if (typed === '') return typed
  const { kind } = settingNamed(key)
  if (kind.read(kind.fromText(typed), { cwd: '' }) !== undefined) return typed
  const what = isSecret ? 'API key (not shown)' : `${key} ${JSON.stringify(typed)}`
  throw new StopError(`Invalid ${what}: expected ${kind.allowed()}`, {
    code: isSecret ? 'bad-key' : 'bad-setting',
    exitStatus: EXIT_STATUS.usage,
    hint: isSecret
      ? 'No file was written. Copy the key again, without spaces or line breaks, and run parley init again.'
      : 'No file was written. Run parley init again.',
  })
}

const askPerson = (
  { stdin, stderr, signal }: CommandContext,
  question: { text: string; isSecret: boolean },
): Promise<string | undefined> =>
  ask({ ...question, keyboard: stdin, write: part => stderr.write(part), signal })

function refuseExistingFile(path: string, cwd: string, force: boolean): void {
  const absolute = resolve(cwd, path)
  if (!existsSync(absolute)) return
  if (statSync(absolute).isDirectory())
    throw new StopError(`${path} is a folder, not a file`, {
      code: 'settings-file-is-folder',
      exitStatus: EXIT_STATUS.usage,
      hint: 'Name a file with --config, such as a new one in that folder.',
    })
  if (force) return
  throw new StopError(`${path} already exists and was not changed`, {
    code: 'settings-file-exists',
    exitStatus: EXIT_STATUS.usage,
    hint: 'Use --force to overwrite it, --config FILE to write another file, or --stdout to print the settings.',
  })
}

function writePrivateFile(path: string, cwd: string, text: string): void {
  const absolute = resolve(cwd, path)
  try {
    mkdirSync(dirname(absolute), { recursive: true, mode: 0o755 })
    replaceFile(absolute, text, 0o600)
  } catch (error) {
    const { why, mend } = writeFaultOf(error)
    throw new StopError(`${path} cannot be written: ${why}`, {
      code: 'settings-file-unwritable',
      exitStatus: EXIT_STATUS.settings,
      hint: `${mend}, or choose another file with --config.`,
      cause: error,
    })
  }
}

interface NextStepsInput {
  path: string
  keyFile: string
  missing: readonly (typeof REQUIRED)[number][]
  /** The file of the key that a flag names, where it does not exist. */
  lostKey: string | undefined
  /** The settings file that other commands read when --config is not given. */
  found: string
  guesses: number
}

function nextSteps({ path, keyFile, missing, lostKey, found, guesses }: NextStepsInput): string[] {
  const named = path === found ? '' : ` --config ${shellWord(path)}`
  const open = missing.filter(key => key !== 'api.key').map(key => key.replace('api.', ''))
  const steps = [
    ...(open.length === 0 ? [] : [`Fill in ${open.join(' and ')} under [api].`]),
    ...(missing.includes('api.key')
      ? [
          `Put the API key in ${join(dirname(path), keyFile)}, readable by you alone (chmod 600), and name that file under [api]: key_file = "${keyFile}"`,
        ]
      : []),
    ...(lostKey === undefined
      ? []
      : [`Put the API key in ${lostKey}, which does not exist yet, readable by you alone (chmod 600).`]),
    ...(guesses === 0
      ? []
      : [
          `Decide what is guessed: ${countText(guesses, 'setting')} of the CRM and of reports ${guesses === 1 ? 'has its guess' : 'have their guesses'} in a comment, with the reason. Remove the # to keep one.`,
        ]),
    `Check the settings: parley doctor${named}`,
    `Read everything: parley backfill${named}`,
  ]
  return [`Wrote ${path}. Next:`, ...steps.map((step, index) => `  ${index + 1}. ${step}`), '']
}
