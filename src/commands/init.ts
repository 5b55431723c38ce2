import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { devNull } from 'node:os'
import { basename, dirname, extname, join, resolve } from 'node:path'
import { Option } from 'commander'
import {
  type Environment,
  loadSettings,
  type SettingFlags,
  settingsFilePath,
} from '../config/load-settings.ts'
import {
  environmentName,
  fileEnvironmentName,
  SETTING_LIST,
  type SettingKey,
  settingNamed,
} from '../config/settings.ts'
import { renderSettingsFile } from '../config/settings-file.ts'
import { EXIT_STATUS, StopError } from '../errors.ts'
import { writeNewFile } from '../store/file/new-files.ts'
import { askSecret } from '../terminal/ask-secret.ts'
import type { CommandContext, CommandDefinition } from './command.ts'

interface InitOptions {
  force?: true
  stdout?: true
}

/** Every setting has a flag. The flag of a secret names a file that contains the secret. */
const FLAGS = SETTING_LIST.map(([key]) => key)

export const initCommand: CommandDefinition<InitOptions> = {
  description:
    'Writes a settings file that explains every setting. Settings given as flags are filled in; all others are commented out. On a terminal it asks for the API key and writes the key to a separate file next to the settings file. Only you can read both files.',
  settings: FLAGS,
  options: [
    new Option('--force', 'overwrite an existing file'),
    new Option('--stdout', 'print the settings instead of writing a file'),
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

  async run({ env, cwd, stdout, stderr, stdin, signal }, { flags, options }) {
    const values = tomlValues(flags, cwd)
    if (options.stdout) {
      stdout.write(renderSettingsFile(values))
      return EXIT_STATUS.done
    }
    const { path } = settingsFilePath({ flags, env })
    const absolute = resolve(cwd, path)
    refuseExistingFile(path, absolute, options.force === true)
    const keyFile = `${basename(absolute, extname(absolute))}.key`
    const isAsked = !isGiven('api.key', flags, env) && stdin.isTTY === true && stderr.isTTY === true
    if (isAsked)
      refuseExistingFile(
        join(dirname(path), keyFile),
        join(dirname(absolute), keyFile),
        options.force === true,
      )
    const key = isAsked ? await promptForKey({ stdin, stderr, signal }) : undefined
    if (key !== undefined) {
      writePrivateFile(join(dirname(path), keyFile), join(dirname(absolute), keyFile), `${key}\n`)
      values['api.key'] = JSON.stringify(keyFile)
    }
    writePrivateFile(path, absolute, renderSettingsFile(values))
    const missing = REQUIRED.filter(each => values[each] === undefined && !isGiven(each, flags, env))
    const steps = nextSteps({ path, keyFile, missing, found: settingsFilePath({ flags: {}, env }).path })
    stdout.write(steps.join('\n'))
    return EXIT_STATUS.done
  },
}

const REQUIRED = ['api.base_url', 'api.workspace_id', 'api.key'] as const

function isGiven(key: SettingKey, flags: SettingFlags, env: Environment): boolean {
  const names = [environmentName(key), ...(settingNamed(key).secret ? [fileEnvironmentName(key)] : [])]
  return flags[key] !== undefined || names.some(name => Boolean(env[name]))
}

/** The flags as TOML, after the usual checks. An existing settings file is not read. */
function tomlValues(flags: SettingFlags, cwd: string): { [Key in SettingKey]?: string } {
  loadSettings({ flags: { ...flags, config: devNull }, env: {}, cwd, requireApi: false })
  return Object.fromEntries(
    SETTING_LIST.flatMap(([key, { kind, secret }]) => {
      const text = flags[key]
      if (text === undefined) return []
      return [[key, JSON.stringify(secret === undefined ? kind.fromText(text) : resolve(cwd, text))]]
    }),
  )
}

/** Asks for the API key; undefined when the user skips it. @throws StopError 64 for an invalid key, 75 after Ctrl-C */
async function promptForKey({
  stdin,
  stderr,
  signal,
}: Pick<CommandContext, 'stdin' | 'stderr' | 'signal'>): Promise<string | undefined> {
  const text = 'API key (not shown; press Enter to skip): '
  const typed = await askSecret({ text, keyboard: stdin, write: part => stderr.write(part), signal })
  if (typed === undefined) {
    throw new StopError('Stopped. No file was written.', {
      code: 'init-stopped',
      exitStatus: EXIT_STATUS.unfinished,
    })
  }
  if (typed === '') return undefined
  const { kind } = settingNamed('api.key')
  if (kind.read(typed, { cwd: '' }) !== undefined) return typed
  throw new StopError(`Invalid API key (not shown): expected ${kind.allowed()}`, {
    code: 'bad-key',
    exitStatus: EXIT_STATUS.usage,
    hint: 'No file was written. Copy the key again, without spaces or line breaks, and run parley init again.',
  })
}

function refuseExistingFile(path: string, absolute: string, force: boolean): void {
  if (force || !existsSync(absolute)) return
  throw new StopError(`${path} already exists and was not changed`, {
    code: 'settings-file-exists',
    exitStatus: EXIT_STATUS.usage,
    hint: 'Use --force to overwrite it, --config FILE to write another file, or --stdout to print the settings.',
  })
}

/** Replaces the file atomically: after a failure the earlier file is unchanged. */
function writePrivateFile(path: string, absolute: string, text: string): void {
  const unfinished = `${absolute}.${randomUUID()}`
  try {
    mkdirSync(dirname(absolute), { recursive: true, mode: 0o755 })
    writeNewFile(unfinished, text, 0o600)
    renameSync(unfinished, absolute)
  } catch (error) {
    if (existsSync(unfinished)) rmSync(unfinished)
    throw new StopError(`${path} cannot be written: ${error instanceof Error ? error.message : error}`, {
      code: 'settings-file-unwritable',
      exitStatus: EXIT_STATUS.settings,
      hint: 'Choose another file with --config, or run parley as a user who can write there.',
      cause: error,
    })
  }
}

interface NextStepsInput {
  path: string
  keyFile: string
  missing: readonly (typeof REQUIRED)[number][]
  /** The settings file that other commands read when --config is not given. */
  found: string
}

function nextSteps({ path, keyFile, missing, found }: NextStepsInput): string[] {
  const named = path === found ? '' : ` --config ${path}`
  const open = missing.filter(key => key !== 'api.key').map(key => key.replace('api.', ''))
  const steps = [
    ...(open.length === 0 ? [] : [`Fill in ${open.join(' and ')} under [api].`]),
    ...(missing.includes('api.key')
      ? [
          `Put the API key in ${join(dirname(path), keyFile)}, readable by you alone (chmod 600), and name that file under [api]: key_file = "${keyFile}"`,
        ]
      : []),
    `Check the settings: parley doctor${named}`,
    `Read everything: parley backfill${named}`,
  ]
  return [`Wrote ${path}. Next:`, ...steps.map((step, index) => `  ${index + 1}. ${step}`), '']
}
