import { markdownTable } from '../../drizzle/markdown-table.ts'
import {
  credentialName,
  environmentName,
  fileEnvironmentName,
  fileKey,
  SECRETS,
  SECTIONS,
  type Setting,
  type SettingKey,
  settingNamed,
} from '../../src/config/settings.ts'
import { defaultText, keyInFile, settingsOf } from '../../src/config/settings-file.ts'

export const SMALLEST_FILE = `[api]
base_url = "https://api.example.com"
workspace_id = "YOUR-WORKSPACE"
key_file = "parley.key"
`

/** `config/README.md`: the reference of the settings for operators, in Markdown. */
export function renderSettingsReference(): string {
  return `${[
    '# Settings',
    'A settings file needs three settings. `config/parley.toml`:',
    `\`\`\`toml\n${SMALLEST_FILE}\`\`\``,
    'The file `parley.key` next to it contains the API key alone. `parley init` asks for the three, writes both files so that only you can read them, and tries them; its settings file also explains every other setting.',
    '## Which file is read',
    'parley reads one settings file in TOML: the file that `--config FILE` names, else the file that `PARLEY_CONFIG` names, else `config/parley.toml` if it exists. `parley init` writes that file; `parley.example.toml` next to this page is an example. An environment variable wins over the file, and a flag wins over both. An empty environment variable counts as not set. An unknown variable that starts with `PARLEY_` is an error, like an unknown key of the file; only those that an orchestrator sets for a service named `parley`, such as `PARLEY_SERVICE_HOST`, are ignored.',
    'A `config/parley.toml` that no one named is used only if no one but this user and root may change it: the file, its folder and the working directory belong to one of them, and no one else may write them (in a folder with the sticky bit, others may). Otherwise the program ends with status 78; if you trust the file, name it with `--config`. A named file that others may change is a warning, and its commands of `[hooks]` are refused. A group with the number of the user counts as the user. The database `parley.db` of the working directory, if no setting names another, is written only if it belongs to this user or root.',
    'Only `api.base_url`, `api.key` and `api.workspace_id` are required, and only for commands that send requests to the API. All invalid settings are reported at once, each with its name and source, and the program ends with status 78. `status`, `search`, `schema` and `report` only warn about invalid settings that they do not use. `doctor` reports each invalid setting and still checks the database.',
    '## Secrets',
    'A secret is taken from the first of these sources that is set:',
    secretsTable(),
    'A relative path in the settings file that names the file of a secret starts at the folder of the settings file. All other relative paths start at the working directory, such as `database.path` and `publish.target`. White space around a secret in a file is ignored. Only commands that send requests to the API read these files, and `parley publish` reads the secrets that its target needs. A secret file that other users can read or change is a warning, except in `/run/secrets`, where container engines mount secrets for one container, and a command of `[hooks]` in a file that others can change is refused. No flag takes a secret itself, because other users could see it in the process list.',
    '## All settings',
    ...Object.entries(SECTIONS).flatMap(([section, about]) => [
      `### [${section}]`,
      about,
      markdownTable(
        ['key', 'default', 'environment', 'flag'],
        settingsOf(section).map(([key, setting]) => [
          `\`${key}\``,
          defaultCell(setting),
          `\`${environmentName(key)}\``,
          setting.flag === undefined ? '' : `\`${setting.flag}\``,
        ]),
      ),
      settingsOf(section).map(settingLine).join('\n'),
    ]),
    'This page and `parley.example.toml` are generated from the table in `src/config/settings.ts`. After a change there, `npx vitest run --config test/vitest.config.ts test/config/documents.test.ts -u` generates both again.',
  ].join('\n\n')}\n`
}

/** The sources of each secret, the winning one first. */
function secretsTable(): string {
  const sources: [source: string, name: (key: SettingKey) => string][] = [
    ['a file that a flag names', key => code(settingNamed(key).flag ?? '')],
    ['an environment variable', key => code(environmentName(key))],
    ['a file that an environment variable names', key => code(fileEnvironmentName(key))],
    ['a systemd credential', key => code(credentialName(key))],
    ['a file that the settings file names', key => inSection(fileKey(key))],
    ['the settings file, instead of a file name', inSection],
  ]
  return markdownTable(
    ['source', ...SECRETS.map(([key, secret]) => `${secret}, ${code(key)}`)],
    sources.map(([source, name]) => [source, ...SECRETS.map(([key]) => name(key))]),
  )
}

function inSection(key: string): string {
  const [section = '', name = ''] = key.split('.')
  return `${code(name)} under ${code(`[${section}]`)}`
}

const code = (text: string): string => `\`${text}\``

function settingLine([key, setting]: readonly [SettingKey, Setting]): string {
  const { kind, unit, description, example } = setting
  const unitText = unit === undefined ? '' : ` Unit: ${unit}.`
  const name = keyInFile(key, setting)
  return `- \`${key}\`: ${description} Expected: ${kind.allowed()}.${unitText} Example: \`${name} = ${example}\``
}

const defaultCell = (setting: Setting): string =>
  setting.default === undefined ? defaultText(setting) : `\`${setting.default}\``
