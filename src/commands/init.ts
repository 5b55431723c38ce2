import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { devNull } from 'node:os'
import { dirname, resolve } from 'node:path'
import { Option } from 'commander'
import { loadSettings, type SettingFlags, settingsFilePath } from '../config.ts'
import { renderSettingsFile } from '../config-documents.ts'
import { SETTING_LIST, type SettingKey } from '../config-settings.ts'
import { EXIT_STATUS, StopError } from '../errors.ts'
import type { CommandDefinition } from './command.ts'

interface InitOptions {
  force?: true
  stdout?: true
}

/** Every setting can be filled in from its flag but the key: the file is to hold none. */
const FLAGS = SETTING_LIST.flatMap(([key, { secret }]) => (secret ? [] : [key]))

export const initCommand: CommandDefinition<InitOptions> = {
  description:
    'Writes a settings file in which every setting is explained, readable by you alone. Settings given as flags are filled in; all others are commented out. The API key is never written.',
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

  async run({ env, cwd, stdout }, { flags, options }) {
    const text = renderSettingsFile(tomlOf(flags, cwd))
    if (options.stdout) {
      stdout.write(text)
      return EXIT_STATUS.done
    }
    const { path } = settingsFilePath({ flags, env })
    writePrivately(path, resolve(cwd, path), text, options.force === true)
    stdout.write(nextSteps(path, settingsFilePath({ flags: {}, env }).path))
    return EXIT_STATUS.done
  },
}

/** The flags as TOML, after the same checks as always; no settings file has a say in them yet. */
function tomlOf(flags: SettingFlags, cwd: string): { [Key in SettingKey]?: string } {
  loadSettings({ flags: { ...flags, config: devNull }, env: {}, cwd, requireApi: false })
  return Object.fromEntries(
    SETTING_LIST.flatMap(([key, { kind }]) => {
      const text = flags[key]
      return text === undefined ? [] : [[key, JSON.stringify(kind.fromText(text))]]
    }),
  )
}

/** Either the whole file is there afterwards, or what was there before. */
function writePrivately(path: string, absolute: string, text: string, force: boolean): void {
  if (existsSync(absolute) && !force) {
    throw new StopError(`${path} is there already and was not touched`, {
      code: 'settings-file-exists',
      exitStatus: EXIT_STATUS.usage,
      hint: 'give --force to write over it, --config FILE to write another, or --stdout to look at the new one',
    })
  }
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

function nextSteps(path: string, found: string): string {
  const named = path === found ? '' : ` --config ${path}`
  return [
    `Wrote ${path}. Next:`,
    `  1. Fill in base_url and workspace_id under [api] where they are still commented out.`,
    `  2. Put the API key in a file that only you can read, and name it: export PARLEY_API_KEY_FILE=FILE`,
    `  3. See whether all is well: parley doctor${named}`,
    `  4. Read everything: parley backfill${named}`,
    '',
  ].join('\n')
}
