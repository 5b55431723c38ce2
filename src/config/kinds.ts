import { resolve } from 'node:path'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../base/clock.ts'
import { isDay, readInstant } from '../base/instant.ts'
import { isReadableOnTheWay } from '../base/loopback.ts'
import { nearestName } from '../base/nearest-name.ts'
import { readProxyUrl } from '../base/proxies.ts'
import { zoneNamed } from '../base/time-zone.ts'
import { nextOccurrence } from './calendar.ts'

/** What the check of a value depends on. */
export interface KindContext {
  /** The folder in which relative paths start. */
  cwd: string
  /** The allowed names in a list of resources; when undefined, the names are not checked. */
  resourceNames?: readonly string[] | undefined
  /** The same for a list of tables. Names of tables of CRM objects depend on the workspace and are always allowed. */
  tableNames?: readonly string[] | undefined
}

/** A kind of value: its description and its check are in one place, so that they agree. */
export interface SettingKind<T> {
  /** The allowed values, as a phrase that follows "expected". */
  allowed(within?: KindContext): string
  /** Converts text from the environment or a flag to the TOML value; returns the text when it does not fit. */
  fromText(text: string): unknown
  /** The value as the program uses it, or undefined when it is not allowed. */
  read(value: unknown, within: KindContext): T | undefined
  /**
   * The inverse of `read`: the text of the value in a settings file. Absent where a text is read as it is, and any other
   * value as JSON shows it.
   */
  text?(value: T): string
  /** What is wrong with a value that is not allowed, for a kind that can say it more exactly than `allowed`. */
  fault?(value: unknown, within: KindContext): string | undefined
  /** Whether the value is a command that parley runs. */
  isCommand?(value: T): boolean
}

const asText = (text: string): unknown => text
const asNumber = (text: string): unknown =>
  /^-?\d+(\.\d+)?(e-?\d+)?$/i.test(text.trim()) ? Number(text) : text

/** `min` and `max` are inclusive, `above` is exclusive. */
export function number(range: {
  whole?: boolean
  above?: number
  min?: number
  max: number
}): SettingKind<number> {
  const from = range.above === undefined ? `from ${range.min ?? 0}` : `greater than ${range.above}, up`
  return {
    allowed: () => `a ${range.whole ? 'whole ' : ''}number ${from} to ${range.max}`,
    fromText: asNumber,
    read: value => {
      if (typeof value !== 'number' || !Number.isFinite(value)) return undefined
      if (range.whole && !Number.isSafeInteger(value)) return undefined
      if (range.above === undefined ? value < (range.min ?? 0) : value <= range.above) return undefined
      return value <= range.max ? value : undefined
    },
  }
}

export const boolean: SettingKind<boolean> = {
  allowed: () => 'true or false',
  fromText: text => (text === 'true' ? true : text === 'false' ? false : text),
  read: value => (typeof value === 'boolean' ? value : undefined),
}

export function oneOf<const T extends string>(
  ...words: readonly T[]
): SettingKind<T> & { words: readonly T[] } {
  return {
    words,
    allowed: () => `one of ${words.join(', ')}`,
    fromText: asText,
    read: value => words.find(word => word === value),
  }
}

/** Accepts a word in addition to values of another kind. */
export function orWord<T, const W extends string>(kind: SettingKind<T>, word: W): SettingKind<T | W> {
  return {
    allowed: within => `${kind.allowed(within)}, or "${word}"`,
    fromText: kind.fromText,
    read: (value, within) => (value === word ? word : kind.read(value, within)),
    text: value => (value === word ? word : textOf(kind, value as T)),
  }
}

/** The text of a value for people, as in a settings file. */
export const textOf = <T>(kind: SettingKind<T>, value: T): string =>
  kind.text?.(value) ?? (typeof value === 'string' ? value : JSON.stringify(value))

/**
 * A kind whose values are texts in TOML too.
 * @param read the value for a text, or undefined for one not allowed
 * @param text the inverse of `read`, where the value is no text
 */
const ofText = <T>(
  allowed: string,
  read: (text: string, within: KindContext) => T | undefined,
  text?: (value: T) => string,
): SettingKind<T> => ({
  allowed: () => allowed,
  fromText: asText,
  read: (value, within) => (typeof value === 'string' ? read(value, within) : undefined),
  ...(text && { text }),
})

export function text(allowed: string, pattern: RegExp): SettingKind<string> {
  return ofText(allowed, value => (pattern.test(value) ? value : undefined))
}

/** Read as an absolute path. A space at either end is refused: it comes from a mistake and would name another file. */
export const path = ofText('the path of a file, without spaces at its ends', (value, { cwd }) =>
  /^\S(.*\S)?$/s.test(value) && !value.endsWith('/') && !value.includes('\0')
    ? resolve(cwd, value)
    : undefined,
)

/** As `path`, but slashes at the end are allowed. */
export const folder = ofText('the path of a folder, without spaces at its ends', (value, within) =>
  path.read(value.replace(/(?<=[^/])\/+$/, ''), within),
)

/** `daily` and `weekly` are at night, when few people use the warehouse, and after the nightly maintenance. */
const NAMED_TIMES = { hourly: '7 * * * *', daily: '47 3 * * *', weekly: '47 3 * * 0' } as const

/** Read as a cron pattern of five fields. A pattern that never occurs, such as one for February 30, is refused. */
export const calendar = ofText<string>(
  `${Object.keys(NAMED_TIMES).join(', ')}, or a cron pattern of minute, hour, day, month and weekday, such as "30 */6 * * *", that matches at least one date`,
  value => {
    const named = Object.entries(NAMED_TIMES).find(([word]) => word === value)?.[1]
    return named ?? (isCronPattern(value) ? value.trim() : undefined)
  },
  pattern => Object.entries(NAMED_TIMES).find(([, named]) => named === pattern)?.[0] ?? pattern,
)

/** Searches from the epoch: a pattern has no year, so a pattern that ever occurs also occurs after any instant. */
function isCronPattern(pattern: string): boolean {
  // croner also accepts names such as `@daily` and `MON`, and modifiers such as `L` and `#`.
  if (!/^[\d\s*,/-]+$/.test(pattern)) return false
  try {
    return Number.isFinite(nextOccurrence(pattern, 0))
  } catch {
    return false
  }
}

export type Recurrence =
  | { readonly by: 'interval'; readonly ms: number }
  | { readonly by: 'calendar'; readonly pattern: string }

/** A number with the largest unit of which it is a whole number. @param units ascending */
function textInUnits(value: number, units: Readonly<Record<string, number>>): string {
  const [unit, size] = Object.entries(units).findLast(([, each]) => value % each === 0) ?? ['', 1]
  return `${value / size}${unit}`
}

const TIME_UNITS = { s: SECOND_MS, m: MINUTE_MS, h: HOUR_MS, d: DAY_MS } as const
const LONGEST_INTERVAL_MS = 7 * DAY_MS

/** Read as ms. */
export const duration = ofText('a number with a unit, such as 90s, 15m, 2h or 1d', value => {
  const [, count, unit] = /^(\d{1,6}) ?([smhd])$/.exec(value) ?? []
  return Number(count) * TIME_UNITS[unit as keyof typeof TIME_UNITS] || undefined
})

/** An interval, or times of the calendar. */
export const recurrence = ofText<Recurrence>(
  `an interval from 1s to 7d, such as "5m" (s, m, h, d), ${calendar.allowed()}`,
  (value, within) => {
    const ms = duration.read(value, within)
    if (ms !== undefined) return ms <= LONGEST_INTERVAL_MS ? { by: 'interval', ms } : undefined
    const pattern = calendar.read(value, within)
    return pattern === undefined ? undefined : { by: 'calendar', pattern }
  },
  every => (every.by === 'interval' ? textInUnits(every.ms, TIME_UNITS) : textOf(calendar, every.pattern)),
)

const BUCKET = /^s3:\/\/[a-z\d][a-z\d.-]{1,61}[a-z\d](\/|$)/

/** The fault of a target that only earlier versions wrote; undefined for any other target. */
export const formerTargetFault = (target: string): string | undefined =>
  /^clickhouse:/i.test(target)
    ? "parley no longer writes tables of a ClickHouse database: publish to a folder or s3://bucket/prefix, which ClickHouse reads itself, as in SELECT count() FROM icebergLocal('/data/lake/messages'); see ClickHouse in drizzle/engines.md"
    : undefined

/** Read as an absolute path, or as the URL. */
export const publishTarget: SettingKind<string> = {
  ...ofText('the path of a folder, without spaces at its ends, or s3://bucket/prefix', (value, within) => {
    if (!/^[a-z][a-z\d+.-]*:/i.test(value)) return folder.read(value, within)
    return BUCKET.test(value) ? value : undefined
  }),
  fault: value => (typeof value === 'string' ? formerTargetFault(value) : undefined),
}

/**
 * The URL that the metadata of publications has before each path: readers take it as it is, so any scheme is allowed,
 * and a space within it. Of file systems, `file:/path` is a URL too.
 */
export const location = ofText(
  'a URL with a scheme, such as s3://bucket/lake, abfss://container@account/lake or file:///data/lake, without spaces at its ends',
  value =>
    /^([a-z][a-z\d+.-]+:\/\/\/?|(file|hdfs|dbfs):\/)[^\s/]/i.test(value) && !/\s$|\p{Cc}/u.test(value)
      ? value
      : undefined,
)

/** Slashes at the end are removed, so that `/v1/…` can be appended. */
export const baseUrl = ofText(
  'an http or https URL without user name, password, query and fragment',
  value => {
    if (!/^https?:\/\//i.test(value) || !URL.canParse(value)) return undefined
    const url = new URL(value)
    const bare = url.username === '' && url.password === '' && !/[?#]/.test(value)
    return bare ? url.href.replace(/(?<!\/)\/+$/, '') : undefined
  },
)

/** The address of an S3 server. Requests are signed, not encrypted, so plain http is for this machine only. */
export const endpoint = ofText(
  'an https URL, or an http URL of this machine, without path, user name, password, query and fragment',
  (value, within) => {
    const url = baseUrl.read(value, within)
    if (url === undefined || new URL(url).pathname !== '/') return undefined
    return isReadableOnTheWay(url) ? undefined : url
  },
)

/** Read as a URL, which may contain a user name and a password, or as "none". */
export const proxy: SettingKind<string> = orWord(
  ofText(
    'the http or https address of a proxy, such as http://proxy.example.com:3128 or proxy.example.com:3128, also with user name and password (http://NAME:PASSWORD@…, special characters percent-encoded)',
    value => readProxyUrl(value.trim()),
  ),
  'none',
)

const SIZE_UNITS = { KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 } as const

/** Read as a number of bytes. */
export function size(min: string, max: string): SettingKind<number> {
  return {
    allowed: () => `a number of bytes, or text such as "32MiB" (KiB, MiB, GiB), from ${min} to ${max}`,
    fromText: asNumber,
    read: value => {
      const bytes = parseBytes(value)
      return bytes >= parseBytes(min) && bytes <= parseBytes(max) ? bytes : undefined
    },
    text: bytes => textInUnits(bytes, SIZE_UNITS),
  }
}

function parseBytes(value: unknown): number {
  if (typeof value !== 'string') return Number.isSafeInteger(value) ? Number(value) : Number.NaN
  const match = /^(\d+) ?(KiB|MiB|GiB)$/.exec(value)
  const unit = Object.entries(SIZE_UNITS).find(([name]) => name === match?.[2])
  return unit === undefined ? Number.NaN : Number(match?.[1]) * unit[1]
}

/** Read as a number. The owner must have read and write access, and execute rights are not allowed. */
export const fileMode = ofText(
  'an octal file mode as text, with 6 for the owner and 0, 2, 4 or 6 for the group and for others, such as "0640"',
  value => (/^(0|0o)?6[0246]{2}$/.test(value) ? Number.parseInt(value.slice(-3), 8) : undefined),
  octalMode,
)

/** A file mode as chmod(1) takes it, such as `0640`. */
export function octalMode(mode: number): string {
  return mode.toString(8).padStart(4, '0')
}

/** Read as an instant in the warehouse's format, `YYYY-MM-DDTHH:MM:SS.mmmZ`. Digits below the millisecond are cut. */
export const instant = ofText(
  'a UTC day such as 2025-01-31, or a full RFC 3339 instant such as 2025-01-31T08:00:00Z',
  value => {
    if (isDay(value)) return `${value}T00:00:00.000Z`
    const instant = readInstant(value)
    // Without a zone the user may mean local time, so the text is refused.
    return instant?.hasZone ? instant.text : undefined
  },
)

const namesIn = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

/** What is wrong with the first unknown name of a list. */
function unknownName(
  value: unknown,
  what: string,
  known: readonly string[],
  isKnown: (name: unknown) => boolean,
): string | undefined {
  const unknown = namesIn(value).find(name => typeof name === 'string' && name !== '' && !isKnown(name))
  if (typeof unknown !== 'string') return undefined
  const meant = nearestName(unknown, known)
  return `there is no ${what} ${JSON.stringify(unknown)}${meant === undefined ? '' : `; did you mean ${meant}?`}`
}

const isResource = (name: unknown, known: readonly string[] | undefined): name is string =>
  typeof name === 'string' && (known?.includes(name) ?? /^[a-z_]+$/.test(name))

const allowedResources = (within?: KindContext): string =>
  within?.resourceNames === undefined
    ? 'a list of names of resources'
    : `a list of names from ${within.resourceNames.join(', ')}`

/** A list of resource names; repeated names are dropped. In text, commas separate the names. */
export const resourceList: SettingKind<readonly string[]> = {
  allowed: allowedResources,
  fromText: list => list.split(',').map(name => name.trim()),
  read: (value, { resourceNames }) => {
    const names = namesIn(value)
    const areKnown = names.every(name => isResource(name, resourceNames))
    return names.length > 0 && areKnown ? [...new Set(names.map(String))] : undefined
  },
  fault: (value, within) => {
    const { resourceNames } = within
    const fault = unknownName(value, 'resource', resourceNames ?? [], name => isResource(name, resourceNames))
    return fault === undefined || fault.endsWith('?')
      ? fault
      : `${fault}; expected ${allowedResources(within)}`
  },
}

const isTable = (name: unknown, known: readonly string[] | undefined): name is string =>
  typeof name === 'string' &&
  name !== '' &&
  (/^crm_/i.test(name) || (known?.includes(name.toLowerCase()) ?? true))

/** As `resourceList`, with names of tables, in which case does not matter. */
export const tableList: SettingKind<readonly string[]> = {
  allowed: () => 'a list of names of tables',
  fromText: resourceList.fromText,
  read: (value, { tableNames }) => {
    const names = namesIn(value)
    const areKnown = names.every(name => isTable(name, tableNames))
    return names.length > 0 && areKnown ? [...new Set(names.map(String))] : undefined
  },
  fault: (value, { tableNames = [] }) =>
    unknownName(value, 'table', tableNames, name => isTable(name, tableNames)),
}

/**
 * A list of texts; repeated ones are dropped. In text, commas separate them.
 * @param read the value for one text, or undefined for one not allowed
 * @param text the inverse of `read`, where the value is no text
 */
const listOf = <T>(
  what: string,
  read: (text: string) => T | undefined,
  text?: (value: T) => string | undefined,
): SettingKind<readonly T[]> => ({
  allowed: () => `a list of ${what}`,
  fromText: resourceList.fromText,
  read: value => {
    if (!Array.isArray(value)) return undefined
    const items = [...new Set<unknown>(value)].map(each =>
      typeof each === 'string' && each.trim() !== '' ? read(each) : undefined,
    )
    return items.every(item => item !== undefined) ? items : undefined
  },
  ...(text && { text: items => JSON.stringify(items.map(text)) }),
})

/** A list of texts that are not checked, such as names in the CRM. */
export const textList = (what: string): SettingKind<readonly string[]> => listOf(what, text => text)

export const WEEKDAYS = [
  'monday',
  'tuesday',
  'wednesday',
  'thursday',
  'friday',
  'saturday',
  'sunday',
] as const

/** Read as ISO numbers, 1 for Monday. */
export const weekdayList = listOf<number>(
  `days from ${WEEKDAYS.join(', ')}`,
  name => (WEEKDAYS as readonly string[]).indexOf(name) + 1 || undefined,
  day => WEEKDAYS[day - 1],
)

export const dayList = listOf('days such as 2026-12-25', day => (isDay(day) ? day : undefined))

/** A time of day such as `09:30`, read as minutes after midnight. */
export const timeOfDay = ofText(
  'a time of day from 00:00 to 24:00, such as 09:30',
  value => {
    const [, hours, minutes] = /^([01]\d|2[0-4]):([0-5]\d)$/.exec(value) ?? []
    const time = Number(hours) * 60 + Number(minutes)
    return time <= 24 * 60 ? time : undefined
  },
  timeOfDayText,
)

/** Pure: the inverse of `timeOfDay`. */
export function timeOfDayText(time: number): string {
  const twoDigits = (part: number) => String(part).padStart(2, '0')
  return `${twoDigits(Math.floor(time / 60))}:${twoDigits(time % 60)}`
}

/** Domains of addresses, read in lower case. */
export const domainList = listOf('domains such as example.com, without @', domain => {
  const labels = domain.split('.')
  const isDomain = labels.length > 1 && labels.every(label => /^[^\s@:/]+$/.test(label))
  return isDomain ? domain.toLowerCase() : undefined
})

/** The name of a time zone that this Node.js knows. */
export const timeZone = ofText('the name of a time zone such as Europe/Berlin, or UTC', zoneNamed)

const CURRENCY = /^[A-Z]{3}$/

export const currency = text('the code of a currency, such as EUR', CURRENCY)

/** Read as a number for each currency. As text: `USD=0.92,JPY=0.0061`. */
export const rates: SettingKind<Readonly<Record<string, number>>> = {
  allowed: () =>
    'a table of codes of currencies and numbers above 0, such as { USD = 0.92 }, or in the environment USD=0.92',
  fromText: list => {
    const pairs = list.split(',').map(pair => pair.split('=').map(part => part.trim()))
    const codes = new Set(pairs.map(([code]) => code))
    if (codes.size < pairs.length || pairs.some(pair => pair.length !== 2)) return list
    const table = pairs.map(([code = '', rate = '']) => [code, asNumber(rate)])
    return rates.read(Object.fromEntries(table), { cwd: '' }) === undefined ? list : Object.fromEntries(table)
  },
  read: value => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
    const entries = Object.entries(value)
    const areRates = entries.every(
      ([code, rate]) => CURRENCY.test(code) && typeof rate === 'number' && rate > 0 && Number.isFinite(rate),
    )
    return entries.length > 0 && areRates ? Object.fromEntries(entries) : undefined
  },
}

export type Listen =
  | { readonly at: 'port'; readonly host: string; readonly port: number }
  | { readonly at: 'socket'; readonly path: string }
  | { readonly at: 'off' }

export const listen = ofText<Listen>(
  'ADDRESS:PORT such as 127.0.0.1:8787 or [::1]:8787, unix:PATH, or off',
  (value, { cwd }) => {
    if (value === 'off') return { at: 'off' }
    const socket = /^unix:(.+)$/.exec(value)?.[1]
    if (socket !== undefined) return { at: 'socket', path: resolve(cwd, socket) }
    const [, bracketed, plain, port] = /^(?:\[([0-9a-f:.]+)\]|([\w.-]+)):(\d{1,5})$/i.exec(value) ?? []
    const host = bracketed ?? plain
    return host !== undefined && Number(port) <= 65_535 ? { at: 'port', host, port: Number(port) } : undefined
  },
  listenText,
)

/** Pure: the inverse of `listen`. */
export function listenText(listen: Listen): string {
  if (listen.at === 'off') return 'off'
  if (listen.at === 'socket') return `unix:${listen.path}`
  return listen.host.includes(':') ? `[${listen.host}]:${listen.port}` : `${listen.host}:${listen.port}`
}

/** A command or the address of a webhook. Both may contain a token. */
export type HookTarget =
  | { readonly by: 'command'; readonly command: string }
  | { readonly by: 'webhook'; readonly url: string }

const LONGEST_HOOK = 4000

/** Text that begins like a URL is an address; all other text is a command. */
export const hook: SettingKind<HookTarget> = {
  ...ofText<HookTarget>(
    `a command in one line of at most ${LONGEST_HOOK} characters, an https URL, or an http URL of this machine, without user name`,
    value => {
      const text = value.trim()
      if (value.length > LONGEST_HOOK || text === '' || /\p{Cc}/u.test(text)) return undefined
      if (!/^[a-z][a-z\d+.-]*:\/\//i.test(text)) return { by: 'command', command: text }
      return isWebhookUrl(text) ? { by: 'webhook', url: text } : undefined
    },
  ),
  isCommand: ({ by }) => by === 'command',
}

function isWebhookUrl(text: string): boolean {
  if (/\s/.test(text) || !URL.canParse(text)) return false
  const { protocol, username, password } = new URL(text)
  if (username !== '' || password !== '') return false
  return /^https?:$/.test(protocol) && !isReadableOnTheWay(text)
}
