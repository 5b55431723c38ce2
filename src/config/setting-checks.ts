import { isReadableOnTheWay } from '../base/loopback.ts'
import { type HttpProxy, NO_PROXIES, type ProxyRules, readProxyUrl, shownProxy } from '../base/proxies.ts'
import { shellWord } from '../base/safe-text.ts'
import { isForeign } from './file-access.ts'
import { timeOfDayText } from './kinds.ts'
import type { Environment, LoadedSettings, Settings, SettingsRequest } from './loaded-settings.ts'
import type { SettingFindings } from './setting-findings.ts'
import { DEFAULT_FILE, isRead } from './setting-layers.ts'
import { type SettingKey, settingNamed } from './settings.ts'

/** Checks what one setting alone does not show: combinations, the user, and what a command needs. */
export function checkSettings(
  settings: Settings,
  { sources, file }: Pick<LoadedSettings, 'sources' | 'file'>,
  request: SettingsRequest,
  found: SettingFindings,
): void {
  if (request.requireApi) {
    requireApi(sources, file, found)
    refuseForeignDatabase(settings.database.path, sources, request, found)
  }
  warnOfPlainHttp(settings, found)
  warnOfVersionInUrl(settings.api.baseUrl, found)
  refuseWorkWithoutHours(settings, sources, found)
  refuseDomainsOfBothSides(settings, sources, found)
  refuseRatesWithoutCurrency(settings, sources, found)
  refuseReportWithoutToken(settings, sources, found)
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
export function proxyRules(
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

/** Refuses rates to no currency. A wrong value of either setting is reported elsewhere. */
function refuseRatesWithoutCurrency(
  { reporting: { rates } }: Pick<Settings, 'reporting'>,
  sources: LoadedSettings['sources'],
  found: SettingFindings,
): void {
  if (rates === undefined || sources['reporting.currency'] !== 'default') return
  found.problems.push({
    text: `reporting.rates is set ${placeText(sources['reporting.rates'])}: expected reporting.currency to be set too, since the rates convert amounts into it`,
    about: 'reporting.rates',
    hint: 'Set reporting.currency, such as currency = "EUR" under [reporting], or remove reporting.rates.',
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
