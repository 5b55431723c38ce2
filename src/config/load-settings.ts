/** Reads settings from the file, the environment and flags into one checked object. */

import { isUtf8 } from 'node:buffer'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { parse, TomlDate, TomlError } from 'smol-toml'
import { EXIT_STATUS, errorCode, StopError } from '../base/errors.ts'
import { isReadableOnTheWay } from '../base/loopback.ts'
import { nearestName } from '../base/nearest-name.ts'
import { type HttpProxy, NO_PROXIES, type ProxyRules, readProxyUrl, shownProxy } from '../base/proxies.ts'
import { shellWord } from '../base/safe-text.ts'
import { foreignAccess, isForeign, isOpenToOthers, type User } from './file-access.ts'
import { type KindContext, type SettingKind, timeOfDayText } from './kinds.ts'
import {
  credentialName,
  environmentName,
  fileEnvironmentName,
  fileKey,
  HOOK_VARIABLES,
  nameIn,
  propertiesOf,
  SECRETS,
  SECTIONS,
  SETTING_LIST,
  type SETTINGS,
  type SettingKey,
  settingNamed,
} from './settings.ts'

type Camel<Text extends string> = Text extends `${infer Head}.${infer Tail}`
  ? `${Camel<Head>}${Capitalize<Camel<Tail>>}`
  : Text extends `${infer Head}_${infer Tail}`
    ? `${Head}${Capitalize<Camel<Tail>>}`
    : Text
type Section = keyof typeof SECTIONS
type SettingValue<Key extends SettingKey> =
  (typeof SETTINGS)[Key]['kind'] extends SettingKind<infer T>
    ? (typeof SETTINGS)[Key] extends { default: unknown }
      ? T
      : T | undefined
    : never

/** The name of a setting in this section, but not in a section below this one. */
type NameIn<S extends string, Key extends string> = Key extends `${S}.${infer Name}`
  ? Name extends `${string}.${string}`
    ? never
    : Camel<Name>
  : never

/** Every setting under its section, both in camelCase: `api.max_concurrency` is `settings.api.maxConcurrency`. */
type SectionSettings = {
  readonly [S in Section as Camel<S>]: {
    readonly [Key in SettingKey as NameIn<S, Key>]: SettingValue<Key>
  }
}

export type Settings = SectionSettings & {
  /** The proxies of `api.proxy` and of the environment variables that other programs read too. */
  readonly proxies: ProxyRules
}

/** Settings that are complete for requests to the API. */
export type ApiSettings = Settings & {
  readonly api: {
    readonly baseUrl: string
    readonly key: string
    readonly workspaceId: string
    readonly keySource: SettingSource
  }
}

/** Where a value came from, so that a message can say what to change. */
export interface SettingSource {
  /** `file`: the settings file, or the separate file of a secret. */
  by: 'credential' | 'environment' | 'file' | 'flag' | 'default'
  /** The source as in `LoadedSettings.sources`. */
  text: string
}

export type Environment = Readonly<Record<string, string | undefined>>

/** Flags as given. The flag of a secret is the path of a file that contains the secret. */
export type SettingFlags = { readonly [Key in SettingKey | 'config']?: string | undefined }

export interface SettingsRequest {
  flags: SettingFlags
  env: Environment
  cwd: string
  /** Default: the user of this process. */
  user?: User
  /** Whether the command sends requests to the API. If not, API settings may be missing and no secret file is read. */
  requireApi: boolean
  /** Secrets whose files are read although the command sends no requests to the API. */
  secrets?: readonly SettingKey[]
  /** The names that `sync.resources` may contain; when undefined, the names are not checked. */
  resourceNames?: readonly string[]
  /**
   * The names that `publish.tables` may contain, next to those of CRM objects; when undefined, the names are not
   * checked.
   */
  tableNames?: readonly string[]
  /**
   * The settings that the caller uses (default: all). An invalid value of any other setting is only a warning, and its
   * default applies.
   */
  used?: readonly SettingKey[]
}

export interface LoadedSettings<S extends Settings = Settings> {
  settings: S
  /**
   * Sentences about settings that work but should be changed, and about wrong settings that the caller does not use.
   */
  warnings: string[]
  /**
   * Where each value came from: a file's path, `environment NAME`, `flag --name`, or `default`. For a secret in a
   * separate file, the source is the path of that file and the place that names it. A systemd credential has no path,
   * since no one can edit the copy that the service reads.
   */
  sources: Readonly<Record<SettingKey, string>>
  /** The settings file that was read, if there was one. */
  file: string | undefined
}

const DEFAULT_FILE = 'config/parley.toml'
/** Known environment variables that do not hold the value of a setting. */
const OTHER_NAMES: readonly string[] = [
  'PARLEY_CONFIG',
  ...SECRETS.map(([key]) => fileEnvironmentName(key)),
  ...HOOK_VARIABLES,
]

/** A value and its source. With `isInFile`, `value` is the path of the file that contains the value. */
interface Candidate {
  value: unknown
  source: string
  by: SettingSource['by']
  isInFile?: true
  /** Why somebody else may change the file that has the value or names the secret's file. */
  risk?: string | undefined
}
type Layer = Map<SettingKey, Candidate>

interface Problem {
  text: string
  /** The setting or section that is wrong, or that was probably meant. */
  about?: string | undefined
  /** A specific hint; by default the hint names the settings page. */
  hint?: string
}

/** All problems are collected, so that one run reports everything. */
interface SettingFindings {
  problems: Problem[]
  warnings: string[]
}

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
  if (request.requireApi) {
    requireApi(sources, file.path, found)
    refuseForeignDatabase(settings.database.path, sources, request, found)
  }
  warnOfPlainHttp({ ...settings, proxies }, found)
  warnOfVersionInUrl(settings.api.baseUrl, found)
  refuseWorkWithoutHours(settings, sources, found)
  refuseDomainsOfBothSides(settings, sources, found)
  refuseReportWithoutToken(settings, sources, found)
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

/** An unreadable file is only a warning when flags and the environment give all settings that the caller uses. */
function readFileLayer(
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

/** The path of the settings file as the operator gave it. `chosen`: whether the operator gave one. */
export function settingsFilePath({ flags, env }: Pick<SettingsRequest, 'flags' | 'env'>): {
  path: string
  chosen: boolean
} {
  const path = flags.config ?? given(env, 'PARLEY_CONFIG')
  return { path: path ?? DEFAULT_FILE, chosen: path !== undefined }
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

function flagLayer(flags: SettingFlags): Layer {
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

function environmentLayer(env: Environment, found: SettingFindings): Layer {
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

const isRead = (key: SettingKey, { requireApi, secrets = [] }: SettingsRequest): boolean =>
  requireApi || secrets.includes(key)

/** @param key the setting whose value is in the file */
function readSecretFile(
  key: SettingKey,
  { path, source, by }: Pick<Candidate, 'source' | 'by'> & { path: string },
  { cwd }: KindContext,
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

function requireApi(
  sources: LoadedSettings['sources'],
  file: string | undefined,
  found: SettingFindings,
): void {
  const place = file ?? DEFAULT_FILE
  const ways = {
    'api.base_url': `use --base-url, PARLEY_BASE_URL, or base_url under [api] in ${place}`,
    'api.key': `use PARLEY_API_KEY, or name a file with the key by --api-key-file, PARLEY_API_KEY_FILE, the systemd credential api_key, or key_file under [api] in ${place}`,
    'api.workspace_id': `use --workspace-id, PARLEY_WORKSPACE_ID, or workspace_id under [api] in ${place}`,
  } as const satisfies { [Key in SettingKey]?: string }
  for (const [key, way] of Object.entries(ways)) {
    if (sources[key as keyof typeof ways] === 'default')
      found.problems.push({
        text: `${key} is not set: ${way}`,
        about: key,
        ...(file === undefined && { hint: 'Run parley init to write a settings file with the API key.' }),
      })
  }
}

/** Refuses a default database of another user, who could read all that is written to it. */
function refuseForeignDatabase(
  path: string,
  sources: LoadedSettings['sources'],
  { user }: SettingsRequest,
  found: SettingFindings,
): void {
  if (sources['database.path'] !== 'default' || !isForeign(path, user)) return
  found.problems.push({
    text: `the database ${path} is not used, because it belongs to another user, who could read what parley writes`,
    about: 'database.path',
    hint: `Run parley in another folder, or name the database if you trust that user: --database ${shellWord(path)}`,
  })
}

/** The environment is read only for commands that send requests, so that a wrong variable ends no other command. */
function proxyRules(
  chosen: Settings['api']['proxy'],
  request: SettingsRequest,
  found: SettingFindings,
): ProxyRules {
  if (chosen === 'none' || !isRead('api.proxy', request)) return NO_PROXIES
  const except = eitherCase(request.env, 'NO_PROXY')?.text
  if (chosen !== undefined) {
    const proxy = { url: chosen, source: 'api.proxy' }
    return { http: proxy, https: proxy, except }
  }
  const named = (variable: string): HttpProxy | undefined => {
    const { text, name } = eitherCase(request.env, variable) ?? {}
    if (text === undefined || name === undefined) return undefined
    const url = readProxyUrl(text)
    if (url !== undefined) return { url, source: name }
    found.problems.push({
      text: `environment ${name} is invalid (not shown): expected ${settingNamed('api.proxy').kind.allowed()}`,
      about: 'api.proxy',
      hint: `Correct ${name}, or set api.proxy, which wins over it.`,
    })
    return undefined
  }
  return { http: named('HTTP_PROXY'), https: named('HTTPS_PROXY'), except }
}

/** Reads a variable in lower or upper case. The lower case wins, as in other programs, unless it is empty. */
function eitherCase(env: Environment, variable: string): { name: string; text: string } | undefined {
  return [variable.toLowerCase(), variable]
    .map(name => ({ name, text: env[name]?.trim() ?? '' }))
    .find(({ text }) => text !== '')
}

/** Warns of addresses without encryption. Settings of other kinds refuse such an address. */
function warnOfPlainHttp({ api, proxies }: Settings, found: SettingFindings): void {
  if (api.baseUrl !== undefined && isReadableOnTheWay(api.baseUrl))
    found.warnings.push(
      `api.base_url is ${api.baseUrl}: the key is sent over the network unencrypted; use https`,
    )
  const withPassword = [proxies.http, proxies.https].flatMap(proxy =>
    proxy && new URL(proxy.url).username !== '' && isReadableOnTheWay(proxy.url)
      ? [`${proxy.source} is ${shownProxy(proxy)}: its password is sent over the network unencrypted`]
      : [],
  )
  found.warnings.push(...new Set(withPassword))
}

function warnOfVersionInUrl(baseUrl: string | undefined, found: SettingFindings): void {
  const [, rest, version] = /^(.*[^/])\/(v[12])$/.exec(baseUrl ?? '') ?? []
  if (version === undefined) return
  found.warnings.push(`api.base_url ends in /${version}, but parley adds /v1 and /v2 itself: try ${rest}`)
}

/** Compares only values that are valid by themselves. */
function refuseWorkWithoutHours(
  { reporting: { workFrom, workTo } }: Pick<Settings, 'reporting'>,
  sources: LoadedSettings['sources'],
  found: SettingFindings,
): void {
  const [from, to] = ['reporting.work_from', 'reporting.work_to'] as const
  if (workFrom < workTo || found.problems.some(({ about }) => about === from || about === to)) return
  const shown = (minutes: number, key: SettingKey) => `"${timeOfDayText(minutes)}" ${placeText(sources[key])}`
  found.problems.push({
    text: `${to} is ${shown(workTo, to)}: expected a time later than ${from}, which is ${shown(workFrom, from)}`,
    about: to,
  })
}

function refuseDomainsOfBothSides(
  { reporting: { internalDomains = [], partnerDomains = [] } }: Pick<Settings, 'reporting'>,
  sources: LoadedSettings['sources'],
  found: SettingFindings,
): void {
  const [ours, partners] = ['reporting.internal_domains', 'reporting.partner_domains'] as const
  const both = partnerDomains.filter(domain => internalDomains.includes(domain))
  if (both.length === 0) return
  found.problems.push({
    text: `${partners} names ${both.join(', ')} ${placeText(sources[partners])}: expected domains that ${ours} ${placeText(sources[ours])} does not name`,
    about: partners,
  })
}

/** Refuses the report without a token, since the report shows content. An unreadable token is reported elsewhere. */
function refuseReportWithoutToken(
  { http }: Pick<Settings, 'http'>,
  sources: LoadedSettings['sources'],
  found: SettingFindings,
): void {
  if (!http.report || sources['http.token'] !== 'default') return
  found.problems.push({
    text: `http.report is true ${placeText(sources['http.report'])}: expected http.token to be set too, since the report shows names of deals and people`,
    about: 'http.report',
    hint: 'Write a token of at least 16 characters into a file that only you can read and name it in http.token_file, or remove http.report.',
  })
}

const placeText = (source: string): string => (source === 'default' ? 'by default' : `in ${source}`)

function settingsError(problems: readonly Problem[], cause?: unknown): StopError {
  const texts = problems.map(({ text }) => text)
  const message =
    texts.length === 1
      ? `Invalid settings: ${texts[0]}`
      : `Invalid settings, ${texts.length} problems:\n${texts.map(text => `  ${text}`).join('\n')}`
  return new StopError(message, {
    code: 'bad-settings',
    exitStatus: EXIT_STATUS.settings,
    hint: hintFor(problems),
    cause,
  })
}

const SETTINGS_PAGE = 'config/README.md explains every setting.'

/** The common hint of all problems, or the settings page. */
function hintFor(problems: readonly Problem[]): string {
  const [hint, ...others] = new Set(problems.map(problem => problem.hint))
  return others.length === 0 ? (hint ?? SETTINGS_PAGE) : SETTINGS_PAGE
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

/** An empty environment variable counts as not set. */
const given = (env: Environment, name: string): string | undefined => env[name] || undefined

const suggestionText = (meant: string | undefined): string => (meant ? `; did you mean ${meant}?` : '')

const isTable = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof TomlDate)

/** TOML dates become text. */
function tomlValue(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(tomlValue)
  return value instanceof TomlDate ? value.toISOString() : value
}

/** A wrong value in a message, without a URL that may contain a password, and cut to 100 characters. */
function displayText(value: unknown): string {
  if (typeof value === 'string' && /\/\/[^/]*@/.test(value)) return 'a URL with a user name (not shown)'
  const text = typeof value === 'number' ? String(value) : JSON.stringify(value)
  return text.length > 100 ? `${text.slice(0, 100)}…` : text
}

const FILE_FAULTS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'a part of its path is not a folder',
  EISDIR: 'it is a folder',
  EACCES: 'this user may not read it',
}

function faultText(error: unknown): string {
  const code = errorCode(error) ?? String(error)
  const says = FILE_FAULTS[code]
  return says === undefined ? code : `${code} (${says})`
}
