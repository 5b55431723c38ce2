import { textOf } from '../config/kinds.ts'
import type { Settings } from '../config/loaded-settings.ts'
import { propertiesOf, SETTING_LIST, type SettingKey, settingNamed } from '../config/settings.ts'

export interface SettingChange {
  setting: SettingKey
  /** The values as texts. Absent for a secret, and for a URL that may contain a password. */
  before?: string
  after?: string
}

/** All settings whose value differs, including secrets. Pure. */
export function changedSettings(before: Settings, after: Settings): SettingChange[] {
  return SETTING_LIST.flatMap(([setting]) => {
    const values = { before: settingIn(before, setting), after: settingIn(after, setting) }
    if (values.before === values.after) return []
    const isShown = settingNamed(setting).secret === undefined && !/\/\/[^/]*@/.test(JSON.stringify(values))
    return [{ setting, ...(isShown && values) }]
  })
}

/** The value as in a settings file; `null` where there is none. */
function settingIn(settings: Settings, key: SettingKey): string {
  const [section, name] = propertiesOf(key)
  const values = Object.entries(settings).find(([known]) => known === section)?.[1] ?? {}
  const value = Object.entries(values).find(([known]) => known === name)?.[1]
  return value === undefined ? 'null' : textOf(settingNamed(key).kind, value)
}
