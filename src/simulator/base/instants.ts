/**
 * Instants are whole microseconds since the epoch, which a double holds exactly.
 * The made-up service writes instants in differing zones and precisions, as real services do.
 */

export const SECOND = 1_000_000
export const MINUTE = 60 * SECOND
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR

const RFC3339 = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)$/

/** Microseconds of an RFC 3339 date-time; undefined for any other text. Finer digits are cut off. */
export function parseInstant(text: string): number | undefined {
  const match = RFC3339.exec(text)
  if (!match) return undefined
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1, 7).map(Number)
  const ms = Date.UTC(year, month - 1, day, hour, minute, second)
  const real = new Date(ms)
  if (
    real.getUTCMonth() !== month - 1 ||
    real.getUTCDate() !== day ||
    hour > 23 ||
    minute > 59 ||
    second > 59
  ) {
    return undefined
  }
  const micros = Number((match[7] ?? '').padEnd(6, '0').slice(0, 6))
  return ms * 1000 + micros - zoneMicros(match[8] ?? 'Z')
}

function zoneMicros(zone: string): number {
  if (zone === 'Z' || zone === 'z') return 0
  const sign = zone.startsWith('-') ? -1 : 1
  return sign * (Number(zone.slice(1, 3)) * HOUR + Number(zone.slice(4, 6)) * MINUTE)
}

interface Style {
  digits: 0 | 3 | 6
  zone: string
  offset: number
}

const STYLES: readonly Style[] = [
  { digits: 3, zone: 'Z', offset: 0 },
  { digits: 3, zone: 'Z', offset: 0 },
  { digits: 3, zone: 'Z', offset: 0 },
  { digits: 0, zone: 'Z', offset: 0 },
  { digits: 6, zone: 'Z', offset: 0 },
  { digits: 0, zone: '+09:00', offset: 9 * HOUR },
  { digits: 3, zone: '+09:00', offset: 9 * HOUR },
  { digits: 6, zone: '-05:00', offset: -5 * HOUR },
]

const days = new Map<number, string>()
const TWO = Array.from({ length: 100 }, (_, n) => String(n).padStart(2, '0'))

/** The `variety` of a tidy workspace: in UTC, with milliseconds unless there are more digits. */
export const TIDY_VARIETY = 0

/** Writes an instant in one of several styles, without loss of digits. `variety`: any whole number, picks the style. */
export function formatInstant(micros: number, variety: number): string {
  const style = STYLES[variety & 7] ?? { digits: 3, zone: 'Z', offset: 0 }
  const local = micros + style.offset
  const day = Math.floor(local / DAY)
  let prefix = days.get(day)
  if (prefix === undefined) {
    prefix = new Date(day * 86_400_000).toISOString().slice(0, 11)
    days.set(day, prefix)
  }
  const rest = local - day * DAY
  const seconds = Math.floor(rest / SECOND)
  const fraction = rest - seconds * SECOND
  const clock = `${TWO[Math.floor(seconds / 3600)]}:${TWO[Math.floor(seconds / 60) % 60]}:${TWO[seconds % 60]}`
  return prefix + clock + fractionDigits(fraction, style.digits) + style.zone
}

function fractionDigits(fraction: number, least: 0 | 3 | 6): string {
  const needed = fraction === 0 ? 0 : fraction % 1000 === 0 ? 3 : 6
  const digits = Math.max(needed, least)
  if (digits === 0) return ''
  const all = String(fraction).padStart(6, '0')
  return `.${digits === 3 ? all.slice(0, 3) : all}`
}

/** Cuts 30 % of instants to whole seconds, 50 % to milliseconds. The last digit of `variety` selects the precision. */
export function coarsen(micros: number, variety: number): number {
  const tenth = variety % 10
  if (tenth < 3) return micros - (micros % SECOND)
  return tenth < 8 ? micros - (micros % 1000) : micros
}

/** A calendar day, `YYYY-MM-DD`, in UTC. */
export function formatDay(micros: number): string {
  return new Date(micros / 1000).toISOString().slice(0, 10)
}
