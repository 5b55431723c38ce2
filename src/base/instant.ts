import { DAY_MS, HOUR_MS, MINUTE_MS } from './clock.ts'

/**
 * Instants as text. The API sends ISO 8601 with any offset and precision. The warehouse stores UTC with milliseconds,
 * 24 characters, so that text order is time order. Digits below the millisecond are cut, not rounded.
 */

const ZONE = '(?<zone>[Zz]|[+-]\\d{2}(?::?\\d{2})?)?'
const EXTENDED = new RegExp(
  `^(\\d{4})-(\\d{2})-(\\d{2})[Tt ](\\d{2}):(\\d{2})(?::(\\d{2})(?:[.,](\\d+))?)?${ZONE}$`,
)
const BASIC = new RegExp(`^(\\d{4})(\\d{2})(\\d{2})[Tt](\\d{2})(\\d{2})(?:(\\d{2})(?:[.,](\\d+))?)?${ZONE}$`)
const DAY = /^(\d{4})-(\d{2})-(\d{2})$/

export interface Instant {
  /** The instant in the warehouse's format. */
  text: string
  /** False for a leap second, which UTC milliseconds cannot express. */
  exact: boolean
  /** False when the text had no zone and UTC was assumed. */
  hasZone: boolean
}

/** The instant in the warehouse's format; undefined when the text is no date-time. Without a zone, UTC is assumed. */
export function canonicalInstant(text: string): string | undefined {
  return readInstant(text)?.text
}

/** Parses a date-time; undefined when the text is none. A leap second becomes the last millisecond before it. */
export function readInstant(text: string): Instant | undefined {
  const match = EXTENDED.exec(text) ?? BASIC.exec(text)
  if (!match) return undefined
  const [, year = '', month = '', day = '', hour = '', minute = '', second = '00', fraction = '', zone] =
    match
  if (!isOnCalendar(Number(year), Number(month), Number(day))) return undefined
  const ms = fraction.slice(0, 3).padEnd(3, '0')
  const isMidnight = hour === '24' && Number(`${minute}${second}${fraction}`) === 0
  if ((hour > '23' && !isMidnight) || minute > '59' || second > '60') return undefined
  const aheadMs = offsetMs(zone)
  if (aheadMs === undefined) return undefined
  const [exact, hasZone] = [second !== '60', zone !== undefined]
  const time = exact ? `${second}.${ms}` : '59.999'
  const local = `${year}-${month}-${day}T${isMidnight ? '00' : hour}:${minute}:${time}Z`
  if (aheadMs === 0 && !isMidnight) return { text: local, exact, hasZone }
  const utc = new Date(Date.parse(local) - aheadMs + (isMidnight ? DAY_MS : 0)).toISOString()
  // A year before 0 or after 9999 is written with a sign and six digits.
  return utc.length === local.length ? { text: utc, exact, hasZone } : undefined
}

/** How far a zone is ahead of UTC, in ms; undefined when the offset is out of range. */
function offsetMs(zone: string | undefined): number | undefined {
  if (zone === undefined || zone === 'Z' || zone === 'z') return 0
  const [hours, minutes] = [zone.slice(1, 3), zone.slice(3).replace(':', '') || '00']
  if (hours > '23' || minutes > '59') return undefined
  const ms = Number(hours) * HOUR_MS + Number(minutes) * MINUTE_MS
  return zone.startsWith('-') ? -ms : ms
}

/** Whether the text is an existing calendar day written `YYYY-MM-DD`. */
export function isDay(text: string): boolean {
  const match = DAY.exec(text)
  return match !== null && isOnCalendar(Number(match[1]), Number(match[2]), Number(match[3]))
}

const DAYS_OF_MONTH = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

function isOnCalendar(year: number, month: number, day: number): boolean {
  const days = DAYS_OF_MONTH[month - 1]
  if (days === undefined || day < 1) return false
  const isLeapYear = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
  return day <= (month === 2 && isLeapYear ? 29 : days)
}
