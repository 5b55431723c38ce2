/** Reads settings from the file, the environment and flags into one checked object. */

import { resolve } from 'node:path'
import { foreignAccess } from './file-access.ts'
import type {
  ApiSettings,
  LoadedSettings,
  SectionSettings,
  SettingSource,
  Settings,
  SettingsRequest,
} from './loaded-settings.ts'
import { checkSettings, proxyRules } from './setting-checks.ts'
import { displayText, type Problem, type SettingFindings, settingsError } from './setting-findings.ts'
import {
  type Candidate,
  environmentLayer,
  flagLayer,
  isRead,
  type Layer,
  readFileLayer,
  readSecretFile,
} from './setting-layers.ts'
import { fileKey, propertiesOf, SETTING_LIST, type SettingKey, settingNamed } from './settings.ts'

/**
 * Reads all settings. A flag wins over the environment, the environment over the file, the file over the default.
 * @throws StopError `bad-settings` (exit status 78) with all problems of the used settings; other problems become
 *   warnings
 */
export function loadSettings<Request extends SettingsRequest>(
  request: Request,
): LoadedSettings<Request['requireApi'] extends true ? ApiSettings : Settings>
export function loadSettings(request: SettingsRequest): LoadedSettings {
  const found: SettingFindings = { problems: [], warnings: [] }
  const above = [flagLayer(request.flags), environmentLayer(request.env, found)]
  const file = readFileLayer(above, request, found)
  const layers = [...above, file.layer]
  const { settings, sources } = resolveSettings(layers, request, found)
  const proxies = proxyRules(settings.api.proxy, request, found)
  checkSettings({ ...settings, proxies }, { sources, file: file.path }, request, found)
  const isFatal = ({ about }: Problem) => isUsed(about, request.used)
  const fatal = found.problems.filter(isFatal)
  if (fatal.length > 0) throw settingsError(fatal)
  const others = found.problems.filter(problem => !isFatal(problem)).map(({ text }) => text)
  const api = { ...settings.api, keySource: keySourceIn(layers) }
  return {
    settings: { ...settings, api, proxies },
    warnings: [...found.warnings, ...others],
    sources,
    file: file.path,
  }
}

/** Whether a problem concerns a setting that the caller uses. */
function isUsed(about: string | undefined, used: readonly SettingKey[] | undefined): boolean {
  if (used === undefined) return true
  return used.some(key => key === about || key.startsWith(`${about}.`))
}

function resolveSettings(
  layers: readonly Layer[],
  within: SettingsRequest,
  found: SettingFindings,
): { settings: SectionSettings; sources: LoadedSettings['sources'] } {
  const settings: Record<string, Record<string, unknown>> = {}
  const sources: Partial<Record<SettingKey, string>> = {}
  for (const [key, setting] of SETTING_LIST) {
    const candidates = layers.flatMap(layer => layer.get(key) ?? [])
    // Overruled values are checked too. Otherwise their errors would appear only when the overruling value is removed.
    const values = candidates.map((candidate, rank) =>
      readCandidate(key, candidate, rank === 0, within, found),
    )
    sources[key] = sourceText(candidates[0])
    const [section, name] = propertiesOf(key)
    settings[section] = {
      ...settings[section],
      [name]: values[0] === undefined ? setting.kind.read(setting.default, within) : values[0],
    }
  }
  return { settings: settings as SectionSettings, sources: sources as Record<SettingKey, string> }
}

function sourceText(candidate: Candidate | undefined): string {
  if (candidate === undefined) return 'default'
  const { value, source, by, isInFile } = candidate
  return isInFile && by !== 'credential' && typeof value === 'string' ? `${value} (${source})` : source
}

function keySourceIn(layers: readonly Layer[]): SettingSource {
  const [candidate] = layers.flatMap(layer => layer.get('api.key') ?? [])
  return { by: candidate?.by ?? 'default', text: sourceText(candidate) }
}

/**
 * The checked value; undefined for a wrong value, which is recorded as a problem. Also undefined for a secret file that
 * is not read, because another source overrules it or because the command does not need it.
 */
function readCandidate(
  key: SettingKey,
  { value, source, by, isInFile, risk }: Candidate,
  isWinner: boolean,
  within: SettingsRequest,
  found: SettingFindings,
): unknown {
  const { kind, secret } = settingNamed(key)
  let content = value
  let place = source
  if (isInFile) {
    if (typeof value !== 'string' || value === '') {
      const text = `${fileKey(key)} is ${displayText(value)} in ${source}: expected the path of a file`
      found.problems.push({ text, about: key })
      return undefined
    }
    if (!isWinner || !isRead(key, within)) return undefined
    content = readSecretFile(key, { path: value, source, by }, within, found)
    place = `${value} (${source})`
    if (content === undefined) return undefined
  }
  const result = kind.read(content, within)
  if (result === undefined)
    found.problems.push({
      text: `${key} is ${secret ? 'invalid (not shown)' : displayText(content)} in ${place}: ${kind.fault?.(content, within) ?? `expected ${kind.allowed(within)}`}`,
      about: key,
    })
  else if (kind.isCommand?.(result) && isRead(key, within)) {
    const ownFile = isInFile && by !== 'credential' ? resolve(within.cwd, String(value)) : undefined
    const danger = risk ?? (ownFile === undefined ? undefined : foreignAccess(ownFile))
    if (danger !== undefined)
      found.problems.push({
        text: `${key} in ${place} is a command, and someone else may change it: ${danger}`,
        about: key,
        hint: 'Correct the owner and the mode (chown, chmod go-w), so that only you and root may change the command.',
      })
  }
  return result
}
