import { isUtf8 } from 'node:buffer'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { parse, TomlDate, TomlError } from 'smol-toml'
import { errorCode, StopError } from '../base/errors.ts'
import { nearestName } from '../base/nearest-name.ts'
import { shellWord } from '../base/safe-text.ts'
import { foreignAccess, isOpenToOthers } from './file-access.ts'
import type { Environment, SettingFlags, SettingSource, SettingsRequest } from './loaded-settings.ts'
import {
  faultText,
  type Problem,
  type SettingFindings,
  settingsError,
  suggestionText,
} from './setting-findings.ts'
import {
  credentialName,
  environmentName,
  fileEnvironmentName,
  fileKey,
  HOOK_VARIABLES,
  nameIn,
  SECRETS,
  SECTIONS,
  SETTING_LIST,
  type SettingKey,
  settingNamed,
} from './settings.ts'

/** Where settings are given: flags, the environment, the settings file, and files of secrets. */

/** A value and its source. With `isInFile`, `value` is the path of the file that contains the value. */
export interface Candidate {
  value: unknown
  source: string
  by: SettingSource['by']
  isInFile?: true
  /** Why somebody else may change the file that has the value or names the secret's file. */
  risk?: string | undefined
}

export type Layer = Map<SettingKey, Candidate>

export const DEFAULT_FILE = 'config/parley.toml'

export function flagLayer(flags: SettingFlags): Layer {
  const layer: Layer = new Map()
  for (const [key, setting] of SETTING_LIST) {
    const text = flags[key]
    if (text === undefined || setting.flag === undefined) continue
    const source = `flag ${setting.flag}`
    layer.set(
      key,
      setting.secret === undefined
        ? { value: setting.kind.fromText(text), source, by: 'flag' }
        : { value: text, source, by: 'file', isInFile: true },
    )
  }
  return layer
}

/** Known environment variables that do not hold the value of a setting. */
const OTHER_NAMES: readonly string[] = [
  'PARLEY_CONFIG',
  ...SECRETS.map(([key]) => fileEnvironmentName(key)),
  ...HOOK_VARIABLES,
]

export function environmentLayer(env: Environment, found: SettingFindings): Layer {
  const layer: Layer = new Map()
  for (const [key, setting] of SETTING_LIST) {
    const name = environmentName(key)
    const text = given(env, name)
    if (text !== undefined)
      layer.set(key, {
        value: setting.kind.fromText(text),
        source: `environment ${name}`,
        by: 'environment',
      })
  }
  for (const [key] of SECRETS) {
    const file = layer.has(key) ? undefined : secretFileCandidate(key, env)
    if (file !== undefined) layer.set(key, file)
  }
  found.problems.push(...unknownNames(env))
  return layer
}

function secretFileCandidate(key: SettingKey, env: Environment): Candidate | undefined {
  const name = fileEnvironmentName(key)
  const named = given(env, name)
  if (named !== undefined) return { value: named, source: `environment ${name}`, by: 'file', isInFile: true }
  const folder = given(env, 'CREDENTIALS_DIRECTORY')
  const credential = folder === undefined ? undefined : join(folder, credentialName(key))
  if (credential === undefined || !existsSync(credential)) return undefined
  return {
    value: credential,
    source: `systemd credential ${credentialName(key)}`,
    by: 'credential',
    isInFile: true,
  }
}

/**
 * Matches variables that an orchestrator sets for each service of its network, such as a service named `parley`. They
 * are not reported: no one takes them for settings.
 */
const SERVICE_LINK = /_SERVICE_(HOST|PORT)(_\w+)?$|_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$/

/** Reports every unknown variable: an operator may rely on it, for example to limit what is read. */
function unknownNames(env: Environment): Problem[] {
  const known = [...OTHER_NAMES, ...SETTING_LIST.map(([key]) => environmentName(key))]
  const isServiceLink = (name: string) =>
    SERVICE_LINK.test(name) || (name.endsWith('_PORT') && /^(tcp|udp|sctp):/.test(env[name] ?? ''))
  return Object.keys(env)
    .filter(name => name.startsWith('PARLEY_') && given(env, name) !== undefined)
    .filter(name => !known.includes(name) && !isServiceLink(name))
    .map(name => {
      const key = keyMeantBy(name)
      const meant = key === undefined ? nearestName(name, known) : environmentName(key)
      const about = SETTING_LIST.find(([each]) => environmentName(each) === meant)?.[0]
      return { text: `environment ${name} is not a setting${suggestionText(meant)}`, about }
    })
}

/** The setting whose regular variable has this name, or this name without the section, as in `PARLEY_RESOURCES`. */
function keyMeantBy(name: string): SettingKey | undefined {
  const keys = SETTING_LIST.map(([key]) => key)
  const ends = keys.filter(key => name === `PARLEY_${key.slice(key.indexOf('.') + 1).toUpperCase()}`)
  const regular = keys.find(key => name === `PARLEY_${key.replaceAll('.', '_').toUpperCase()}`)
  return regular ?? (ends.length === 1 ? ends[0] : undefined)
}

/** An empty environment variable counts as not set. */
const given = (env: Environment, name: string): string | undefined => env[name] || undefined

/** The path of the settings file as the operator gave it. `chosen`: whether the operator gave one. */
export function settingsFilePath({ flags, env }: Pick<SettingsRequest, 'flags' | 'env'>): {
  path: string
  chosen: boolean
} {
  const path = flags.config ?? given(env, 'PARLEY_CONFIG')
  return { path: path ?? DEFAULT_FILE, chosen: path !== undefined }
}

/** An unreadable file is only a warning when flags and the environment give all settings that the caller uses. */
export function readFileLayer(
  above: readonly Layer[],
  request: SettingsRequest,
  found: SettingFindings,
): { path: string | undefined; layer: Layer } {
  try {
    const file = readSettingsFile(request)
    return { path: file?.path, layer: file === undefined ? new Map() : fileLayer(file, found) }
  } catch (error) {
    const isEnough = request.used?.every(key => above.some(layer => layer.has(key)))
    if (!(error instanceof StopError) || !isEnough) throw error
    found.warnings.push(error.message)
    return { path: undefined, layer: new Map() }
  }
}

interface SettingsFile {
  path: string
  text: string
  isOpenToOthers: boolean
  /** Why somebody else may change the file. */
  risk: string | undefined
}

/** @throws StopError for a file that cannot be read, and for a default file that another user may change */
function readSettingsFile(request: SettingsRequest): SettingsFile | undefined {
  const { path, chosen } = settingsFilePath(request)
  const absolute = resolve(request.cwd, path)
  let file: SettingsFile
  let bytes: Buffer
  try {
    const risk = foreignAccess(absolute, chosen ? undefined : request.cwd)
    bytes = readFileSync(absolute)
    file = { path, text: bytes.toString(), isOpenToOthers: isOpenToOthers(absolute), risk }
  } catch (error) {
    if (!chosen && errorCode(error) === 'ENOENT') return undefined
    const problem = {
      text: `the settings file ${chosen ? path : absolute} cannot be read: ${faultText(error)}`,
      hint:
        errorCode(error) === 'ENOENT'
          ? `Check the path in --config or PARLEY_CONFIG, or create the file with: parley init --config ${shellWord(path)}`
          : `Check that ${path} is a file that this user may read, or choose another file with --config.`,
    }
    throw settingsError([problem], error)
  }
  if (!chosen && file.risk !== undefined)
    throw settingsError([
      {
        text: `the settings file ${absolute} is not used, because someone else may change it: ${file.risk}`,
        hint: `Correct the owner and the mode (chown, chmod go-w). If you have read the file and trust it, name it: --config ${shellWord(path)}`,
      },
    ])
  if (isUtf8(bytes)) return file
  throw settingsError([
    {
      text: `the settings file ${path} is not UTF-8`,
      hint: `Save ${path} as UTF-8. For a file in ISO-8859-1, iconv -f ISO-8859-1 -t UTF-8 ${shellWord(path)} prints it so.`,
    },
  ])
}

/** Only the first line of the parser's message is used: the others quote the file, which may contain a secret. */
function parseToml({ path, text }: SettingsFile): Record<string, unknown> {
  try {
    return parse(text)
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    const fault = error.message.split('\n')[0]?.replace(/^Invalid TOML document: /, '')
    throw settingsError([
      {
        text: `${path} is not TOML at line ${error.line}, column ${error.column}: ${fault}`,
      },
    ])
  }
}

function fileLayer(file: SettingsFile, found: SettingFindings): Layer {
  const layer: Layer = new Map()
  const { risk } = file
  if (risk !== undefined) found.warnings.push(`someone else may change the settings file: ${risk}`)
  const named: [secret: SettingKey, path: unknown][] = []
  for (const [section, content] of Object.entries(parseToml(file))) {
    if (!Object.hasOwn(SECTIONS, section)) {
      const meant = nearestName(section, Object.keys(SECTIONS))
      const text = `[${section}] in ${file.path} is not a section${suggestionText(meant && `[${meant}]`)}`
      found.problems.push({ text, about: meant })
    } else if (!isTable(content)) {
      found.problems.push({
        text: `${section} in ${file.path} is not a section: expected [${section}] and keys below it`,
        about: section,
      })
    } else {
      for (const [name, value] of entriesOf(section, content)) {
        const key = SETTING_LIST.find(([known]) => known === name)?.[0]
        const secret = SECRETS.find(([known]) => fileKey(known) === name)?.[0]
        if (key !== undefined)
          layer.set(key, { value: tomlValue(value), source: file.path, by: 'file', risk })
        else if (secret === undefined) found.problems.push(unknownKey(name, file.path))
        else named.push([secret, value])
      }
    }
  }
  for (const [key, secret] of SECRETS) {
    if (layer.has(key) && file.isOpenToOthers) found.warnings.push(openFileWarning(file.path, secret))
  }
  for (const [key, path] of named) {
    if (layer.has(key)) {
      const text = `${key} and ${fileKey(key)} are both in ${file.path}: keep one`
      found.problems.push({ text, about: key })
    } else {
      const isRelative = typeof path === 'string' && path !== '' && !isAbsolute(path)
      layer.set(key, {
        value: isRelative ? join(dirname(file.path), path) : path,
        source: file.path,
        by: 'file',
        risk,
        isInFile: true,
      })
    }
  }
  return layer
}

/** The keys of a section and of the sections below it, such as `[crm.deal]`, with their values. */
function entriesOf(section: string, content: Record<string, unknown>): [key: string, value: unknown][] {
  return Object.entries(content).flatMap(([name, value]) => {
    const key = `${section}.${name}`
    return Object.hasOwn(SECTIONS, key) && isTable(value) ? entriesOf(key, value) : [[key, value]]
  })
}

function unknownKey(key: string, path: string): Problem {
  const keys = SETTING_LIST.map(([known]) => known)
  const name = nameIn(key)
  const elsewhere = keys.find(known => known.endsWith(`.${name}`))
  const meant = elsewhere ?? nearestName(key, keys)
  return { text: `${key} in ${path} is not a setting${suggestionText(meant)}`, about: meant }
}

const isTable = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof TomlDate)

/** TOML dates become text. */
function tomlValue(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(tomlValue)
  return value instanceof TomlDate ? value.toISOString() : value
}

export const isRead = (key: SettingKey, { requireApi, secrets = [] }: SettingsRequest): boolean =>
  requireApi || secrets.includes(key)

/** @param key the setting whose value is in the file */
export function readSecretFile(
  key: SettingKey,
  { path, source, by }: Pick<Candidate, 'source' | 'by'> & { path: string },
  { cwd }: Pick<SettingsRequest, 'cwd'>,
  found: SettingFindings,
): string | undefined {
  const absolute = resolve(cwd, path)
  const { secret = key } = settingNamed(key)
  try {
    const value = readFileSync(absolute, 'utf8').trim()
    // systemd lets only the unit read a credential, so that file needs no check.
    if (by !== 'credential') found.warnings.push(...secretFileWarnings(absolute, path, secret))
    if (value !== '') return value
    found.problems.push({
      text: `${secret}'s file ${path} (${source}) is empty`,
      about: key,
      hint: `Write ${secret} into ${path}, as its only line.`,
    })
    return undefined
  } catch (error) {
    found.problems.push({
      text: `${secret}'s file ${path} (${source}) cannot be read: ${faultText(error)}`,
      about: key,
      hint: secretFileHint(errorCode(error), path, secret),
    })
    return undefined
  }
}

function secretFileHint(reason: string | undefined, path: string, secret: string): string {
  if (reason === 'EACCES') return `Give this user the right to read ${path}: chown it and chmod 600.`
  if (reason === 'EISDIR') return `Name a file that holds ${secret}, not a folder.`
  return `Write ${secret} into ${path}, readable by you alone: (umask 077 && cat > ${shellWord(path)}).`
}

/**
 * Container engines mount secrets here, for one container alone. Such files are not checked: most are readable to all
 * and owned by a user of the host.
 */
const CONTAINER_SECRETS = '/run/secrets/'

function secretFileWarnings(absolute: string, path: string, secret: string): string[] {
  if (absolute.startsWith(CONTAINER_SECRETS)) return []
  if (isOpenToOthers(absolute)) return [openFileWarning(path, secret)]
  const risk = foreignAccess(absolute)
  return risk === undefined ? [] : [`someone else may change ${path}, which holds ${secret}: ${risk}`]
}

const openFileWarning = (path: string, secret: string) =>
  `${path} holds ${secret} and others can read or change it: run chmod 600 on it`
