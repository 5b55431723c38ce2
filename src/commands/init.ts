import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { devNull } from 'node:os'
import { basename, dirname, extname, join, resolve } from 'node:path'
import { Option } from 'commander'
import { type Environment, loadSettings, type SettingFlags, settingsFilePath } from '../config.ts'
import { renderSettingsFile } from '../config-documents.ts'
import {
  environmentName,
  fileEnvironmentName,
  SETTING_LIST,
  type SettingKey,
  settingOf,
} from '../config-settings.ts'
import { EXIT_STATUS, StopError } from '../errors.ts'
import { askSecret } from './ask-secret.ts'
import type { CommandContext, CommandDefinition } from './command.ts'

interface InitOptions {
  force?: true
  stdout?: true
}

/** Every setting can be filled in from its flag; of a secret it is the file that holds it. */
const FLAGS = SETTING_LIST.map(([key]) => key)

export const initCommand: CommandDefinition<InitOptions> = {
  description:
    'Writes a settings file in which every setting is explained, readable by you alone. Settings given as flags are filled in; all others are commented out. On a terminal it asks for the API key, does not show it, and writes it to a file next to the settings file that you alone can read; the settings file only names it.',
  settings: FLAGS,
  options: [
    new Option('--force', 'write it even where there is one already'),
    new Option('--stdout', 'print it and write no file'),
  ],
  examples: [
    ['parley init', 'writes config/parley.toml'],
    [
      'parley init --base-url https://api.example.com --workspace-id 42',
      'the same with two settings filled in',
    ],
    ['parley init --config /etc/parley/acme.toml', 'writes another file'],
    ['parley init --stdout', 'only shows it'],
  ],

  async run({ env, cwd, stdout, stderr, stdin, signal }, { flags, options }) {
    const values = tomlOf(flags, cwd)
    if (options.stdout) {
      stdout.write(renderSettingsFile(values))
      return EXIT_STATUS.done
    }
    const { path } = settingsFilePath({ flags, env })
    const absolute = resolve(cwd, path)
    requireAbsent(path, absolute, options.force === true)
    const keyFile = `${basename(absolute, extname(absolute))}.key`
    const isAsked = !isGiven('api.key', flags, env) && stdin.isTTY === true && stderr.isTTY === true
    const key = isAsked ? await keyFrom({ stdin, stderr, signal }) : undefined
    if (key !== undefined) {
      writePrivately(join(dirname(path), keyFile), join(dirname(absolute), keyFile), `${key}\n`)
      values['api.key'] = JSON.stringify(keyFile)
    }
    writePrivately(path, absolute, renderSettingsFile(values))
    const missing = REQUIRED.filter(each => values[each] === undefined && !isGiven(each, flags, env))
    const steps = nextSteps({ path, keyFile, missing, found: settingsFilePath({ flags: {}, env }).path })
    stdout.write(steps.join('\n'))
    return EXIT_STATUS.done
  },
}

const REQUIRED = ['api.base_url', 'api.workspace_id', 'api.key'] as const

function isGiven(key: SettingKey, flags: SettingFlags, env: Environment): boolean {
  const names = [environmentName(key), ...(settingOf(key).secret ? [fileEnvironmentName(key)] : [])]
  return flags[key] !== undefined || names.some(name => Boolean(env[name]))
}

/** The flags as TOML, after the same checks as always; no settings file has a say in them yet. */
function tomlOf(flags: SettingFlags, cwd: string): { [Key in SettingKey]?: string } {
  loadSettings({ flags: { ...flags, config: devNull }, env: {}, cwd, requireApi: false })
  return Object.fromEntries(
    SETTING_LIST.flatMap(([key, { kind, secret }]) => {
      const text = flags[key]
      if (text === undefined) return []
      return [[key, JSON.stringify(secret === undefined ? kind.fromText(text) : resolve(cwd, text))]]
    }),
  )
}

/** The key that is typed; undefined where none is, and after Ctrl-C. @throws StopError (64) for what is no key */
async function keyFrom({
  stdin,
  stderr,
  signal,
}: Pick<CommandContext, 'stdin' | 'stderr' | 'signal'>): Promise<string | undefined> {
  const text = 'API key (not shown; Enter to leave it out): '
  const typed = await askSecret({ text, keyboard: stdin, write: part => stderr.write(part), signal })
  if (typed === undefined) {
    throw new StopError('Stopped before anything was written', {
      code: 'init-stopped',
      exitStatus: EXIT_STATUS.unfinished,
    })
  }
  if (typed === '') return undefined
  const { kind } = settingOf('api.key')
  if (kind.read(typed, { cwd: '' }) !== undefined) return typed
  throw new StopError(`This is not an API key (not shown): expected ${kind.allowed()}`, {
    code: 'bad-key',
    exitStatus: EXIT_STATUS.usage,
    hint: 'Copy the key again, without spaces or line breaks, and run parley init again. No file was written.',
  })
}

function requireAbsent(path: string, absolute: string, force: boolean): void {
  if (force || !existsSync(absolute)) return
  throw new StopError(`${path} is there already and was not touched`, {
    code: 'settings-file-exists',
    exitStatus: EXIT_STATUS.usage,
    hint: 'give --force to write over it, --config FILE to write another, or --stdout to look at the new one',
  })
}

/** Either the whole file is there afterwards, or what was there before. */
function writePrivately(path: string, absolute: string, text: string): void {
  const unfinished = `${absolute}.${randomUUID()}`
  try {
    mkdirSync(dirname(absolute), { recursive: true })
    writeFileSync(unfinished, text, { mode: 0o600, flag: 'wx' })
    renameSync(unfinished, absolute)
  } catch (error) {
    if (existsSync(unfinished)) rmSync(unfinished)
    throw new StopError(`${path} cannot be written: ${error instanceof Error ? error.message : error}`, {
      code: 'settings-file-unwritable',
      exitStatus: EXIT_STATUS.settings,
      hint: 'write another file with --config FILE, or run this as a user who may write there',
      cause: error,
    })
  }
}

interface Written {
  path: string
  keyFile: string
  missing: readonly (typeof REQUIRED)[number][]
  /** The settings file that commands read without --config. */
  found: string
}

function nextSteps({ path, keyFile, missing, found }: Written): string[] {
  const named = path === found ? '' : ` --config ${path}`
  const open = missing.filter(key => key !== 'api.key').map(key => key.replace('api.', ''))
  const steps = [
    ...(open.length === 0 ? [] : [`Fill in ${open.join(' and ')} under [api].`]),
    ...(missing.includes('api.key')
      ? [
          `Put the API key in ${join(dirname(path), keyFile)}, readable by you alone (chmod 600), and name it under [api]: key_file = "${keyFile}"`,
        ]
      : []),
    `See whether all is well: parley doctor${named}`,
    `Read everything: parley backfill${named}`,
  ]
  return [`Wrote ${path}. Next:`, ...steps.map((step, index) => `  ${index + 1}. ${step}`), '']
}
