import type { Settings } from '../config/load-settings.ts'
import { propertiesOf, SETTING_LIST, type SettingKey } from '../config/settings.ts'

/** The keys of all settings whose value differs, including secrets. Pure. */
export function changedSettings(before: Settings, after: Settings): SettingKey[] {
  return SETTING_LIST.map(([key]) => key).filter(key => settingIn(before, key) !== settingIn(after, key))
}

function settingIn(settings: Settings, key: SettingKey): string {
  const [section, name] = propertiesOf(key)
  const values = Object.entries(settings).find(([known]) => known === section)?.[1] ?? {}
  return JSON.stringify(Object.entries(values).find(([known]) => known === name)?.[1] ?? null)
}
