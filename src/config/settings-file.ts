import {
  environmentName,
  fileKey,
  nameIn,
  SECTIONS,
  SETTING_LIST,
  type Setting,
  type SettingKey,
  sectionOf,
} from './settings.ts'

const WIDTH = 90

/**
 * A settings file that explains every setting. Settings without a given value are commented out.
 * @param values TOML by key, such as `{ 'api.base_url': '"https://api.example.com"' }`
 * @param guesses shown in place of the examples, by key
 */
export function renderSettingsFile(
  values: { readonly [Key in SettingKey]?: string },
  guesses: ReadonlyMap<string, SettingGuess> = new Map(),
): string {
  const head = commentLines(
    'Settings of parley. This file lists every setting. A setting that is commented out shows an example and has its default. An environment variable wins over this file, and a flag over both.',
  )
  const sections = Object.entries(SECTIONS).map(([section, about]) => {
    const settings = settingsOf(section).map(([key, setting]) =>
      renderSetting(key, setting, values[key] ?? guesses.get(key)),
    )
    return [`${commentLines(about)}\n[${section}]`, ...settings].join('\n\n')
  })
  return `${[head, ...sections].join('\n\n')}\n`
}

/** A guessed value for a setting, as TOML, and the reason. */
export interface SettingGuess {
  value: string
  why: string
}

function renderSetting(key: SettingKey, setting: Setting, given: string | SettingGuess | undefined): string {
  const facts = [
    setting.without === 'required' ? 'Required.' : `Default: ${defaultText(setting)}.`,
    setting.unit === undefined ? '' : `Unit: ${setting.unit}.`,
    `Environment: ${environmentName(key)}.`,
  ]
  const name = keyInFile(key, setting)
  return [
    commentLines(setting.description),
    commentLines(facts.filter(fact => fact !== '').join(' ')),
    ...(typeof given === 'object' ? [commentLines(`Guessed now: ${given.why}`)] : []),
    typeof given === 'string' ? `${name} = ${given}` : `# ${name} = ${given?.value ?? setting.example}`,
  ].join('\n')
}

/** The key in the settings file. A secret is in a separate file that the settings file names. */
export const keyInFile = (key: SettingKey, { secret }: Setting): string =>
  nameIn(secret === undefined ? key : fileKey(key))

export const settingsOf = (section: string) => SETTING_LIST.filter(([key]) => sectionOf(key) === section)

export const defaultText = (setting: Setting): string => String(setting.default ?? setting.without ?? 'none')

/** Text as TOML comment lines, broken between words. */
function commentLines(text: string): string {
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
