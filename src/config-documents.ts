/** The texts that explain the settings, made from the table of settings so that they cannot differ from it. */

import {
  credentialName,
  environmentName,
  fileEnvironmentName,
  fileKey,
  SECRETS,
  SECTIONS,
  SETTING_LIST,
  type Setting,
  type SettingKey,
  settingOf,
} from './config-settings.ts'

const WIDTH = 90

/**
 * A settings file in which every setting is explained and commented out, but for the values given.
 * @param values TOML by key, such as `{ 'api.base_url': '"https://api.example.com"' }`
 */
export function renderSettingsFile(values: { readonly [Key in SettingKey]?: string }): string {
  const head = comment(
    'Settings of parley. Every setting stands here; one that is commented out shows an example and keeps its default. An environment variable wins over this file, and a flag over both.',
  )
  const sections = Object.entries(SECTIONS).map(([section, about]) => {
    const settings = settingsOf(section).map(([key, setting]) => renderSetting(key, setting, values[key]))
    return [`${comment(about)}\n[${section}]`, ...settings].join('\n\n')
  })
  return `${[head, ...sections].join('\n\n')}\n`
}

function renderSetting(key: SettingKey, setting: Setting, value: string | undefined): string {
  const facts = [
    setting.without === 'required' ? 'Required.' : `Default: ${defaultText(setting)}.`,
    setting.unit === undefined ? '' : `Unit: ${setting.unit}.`,
    `Environment: ${environmentName(key)}.`,
  ]
  const name = nameInFile(key, setting)
  return [
    comment(setting.description),
    comment(facts.filter(fact => fact !== '').join(' ')),
    value === undefined ? `# ${name} = ${setting.example}` : `${name} = ${value}`,
  ].join('\n')
}

/** The reference for operators, in Markdown. */
export function renderSettingsReference(): string {
  return `${[
    '# Settings',
    'parley reads a settings file in TOML: the one that `--config FILE` names, else `PARLEY_CONFIG`, else `config/parley.toml` where it exists. `parley init` writes it, and `parley.example.toml` beside this page shows it. An environment variable wins over the file, and a flag over both. An empty environment variable counts as not set.',
    'Only `api.base_url`, `api.key` and `api.workspace_id` must be given, and only to commands that ask the API. Wrong settings are reported all at once, each with its name and where it comes from, and end the program with status 78. `status`, `search`, `schema` and `doctor` go on with a warning where they do not use the wrong setting.',
    '## Secrets',
    SECRETS.map(sourcesOfSecret).join('\n'),
    'They win in the order in which they stand here. White space around a secret in a file is left out, and such files are read only by commands that ask the API. A file with a secret that others can read is warned of. No flag takes a secret itself, since other users could see it in the list of processes.',
    '## All settings',
    ...Object.entries(SECTIONS).flatMap(([section, about]) => [
      `### [${section}]`,
      about,
      table(
        ['key', 'default', 'environment', 'flag'],
        settingsOf(section).map(([key, setting]) => [
          `\`${key}\``,
          defaultCell(setting),
          `\`${environmentName(key)}\``,
          `\`${setting.flag}\``,
        ]),
      ),
      settingsOf(section).map(explained).join('\n'),
    ]),
    'This page and `parley.example.toml` are made from the table in `src/config-settings.ts`. After a change there, `npx vitest run --config test/vitest.config.ts test/config/documents.test.ts -u` writes both anew.',
  ].join('\n\n')}\n`
}

function sourcesOfSecret([key, secret]: readonly [SettingKey, string]): string {
  const [section, name] = key.split('.')
  const sources = [
    `the file that \`${settingOf(key).flag}\` names`,
    `\`${environmentName(key)}\``,
    `the file that \`${fileEnvironmentName(key)}\` names`,
    `the systemd credential \`${credentialName(key)}\``,
  ]
  return `- ${secret}, \`${key}\`: ${sources.join(', ')}, and under \`[${section}]\` in the settings file either \`${name}_file\`, the path of a file (a relative one starts at the folder of the settings file), or \`${name}\`, the secret itself`
}

function explained([key, setting]: readonly [SettingKey, Setting]): string {
  const { kind, unit, description, example } = setting
  const inUnit = unit === undefined ? '' : ` Unit: ${unit}.`
  const name = nameInFile(key, setting)
  return `- \`${key}\`: ${description} Expected: ${kind.allowed()}.${inUnit} Example: \`${name} = ${example}\``
}

/** A secret stands in a file of its own, and the settings file names it. */
const nameInFile = (key: SettingKey, { secret }: Setting): string =>
  (secret === undefined ? key : fileKey(key)).slice(key.indexOf('.') + 1)

const settingsOf = (section: string) => SETTING_LIST.filter(([key]) => key.startsWith(`${section}.`))

const defaultText = (setting: Setting): string => String(setting.default ?? setting.without)

const defaultCell = (setting: Setting): string =>
  setting.default === undefined ? defaultText(setting) : `\`${setting.default}\``

/** A table whose columns line up. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map(row => row[column]?.length ?? 0)))
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`
  return [head, widths.map(width => '-'.repeat(width)), ...rows].map(line).join('\n')
}

/** Text as lines of a comment, broken between words. */
function comment(text: string): string {
  const lines: string[] = []
  let line = '#'
  for (const word of text.split(' ')) {
    if (line.length + 1 + word.length > WIDTH && line !== '#') {
      lines.push(line)
      line = '#'
    }
    line += ` ${word}`
  }
  return [...lines, line].join('\n')
}
