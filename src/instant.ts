/**
 * Instants as text. The API sends RFC 3339 with any offset and any precision; the warehouse keeps UTC with
 * milliseconds, 24 characters, so that text order is time order. Digits beyond the millisecond are cut, not rounded.
 */

const RFC3339 = /^(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}:\d{2})(?:[.,](\d+))?([Zz]|[+-]\d{2}:?\d{2})$/
const CANONICAL = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/
const DAY = /^\d{4}-\d{2}-\d{2}$/

/** The instant as the warehouse writes it; undefined when the text is no RFC 3339 date-time. */
export function canonicalInstant(text: string): string | undefined {
  const match = RFC3339.exec(text)
  if (!match) return undefined
  const [, day = '', time = '', fraction = '', offset = ''] = match
  if (!isDay(day)) return undefined
  const zone = offset === 'z' || offset === 'Z' ? 'Z' : offset
  const candidate = `${day}T${time}.${fraction.slice(0, 3).padEnd(3, '0')}${zone}`
  const ms = Date.parse(candidate)
  if (Number.isNaN(ms)) return undefined
  if (zone === 'Z' && !time.startsWith('24')) return candidate
  const instant = new Date(ms).toISOString()
  return CANONICAL.test(instant) ? instant : undefined
}

/** True for an existing day of the calendar written `YYYY-MM-DD`. */
export function isDay(text: string): boolean {
  if (!DAY.test(text)) return false
  const ms = Date.parse(`${text}T00:00:00.000Z`)
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text)
}
