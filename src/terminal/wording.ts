/** Counts, rates and durations as text for people. Sizes are in `size-text.ts`. Pure. */

import { safeText } from '../safe-text.ts'
import { wholeNumber } from '../whole-number.ts'

/** `1 row`, `1,200 rows`. */
export function countText(value: number, one: string, many = `${one}s`): string {
  return `${wholeNumber(value)} ${value === 1 ? one : many}`
}

/** A rate with two significant digits below 10: `0.03`, `4.2`, `45`. */
export function rateText(rate: number): string {
  if (rate >= 10) return wholeNumber(Math.round(rate))
  return String(Number(rate.toFixed(rate >= 1 ? 1 : 2)))
}

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const YEAR = 365 * DAY

/** The two largest units, such as `3 min 4 s`. Below a second: milliseconds. */
export function durationText(ms: number): string {
  if (ms < SECOND) return `${Math.round(ms)} ms`
  const parts: [number, string][] = [
    [Math.floor(ms / YEAR), 'y'],
    [Math.floor((ms % YEAR) / DAY), 'd'],
    [Math.floor((ms % DAY) / HOUR), 'h'],
    [Math.floor((ms % HOUR) / MINUTE), 'min'],
    [Math.floor((ms % MINUTE) / SECOND), 's'],
  ]
  const first = parts.findIndex(([value]) => value > 0)
  return parts
    .slice(first, first + 2)
    .filter(([value]) => value > 0)
    .map(([value, unit]) => `${value} ${unit}`)
    .join(' ')
}

/** As `duration`, but at least one second. For countdowns and elapsed times. */
export function wholeSecondsText(ms: number): string {
  return durationText(Math.max(ms, SECOND))
}

const UNITS: readonly (readonly [ms: number, one: string, many: string])[] = [
  [YEAR, 'year', 'years'],
  [30 * DAY, 'month', 'months'],
  [DAY, 'day', 'days'],
  [HOUR, 'h', 'h'],
  [MINUTE, 'min', 'min'],
  [SECOND, 's', 's'],
]

/** `3 min ago`, `in 2 days`, `now`; a dash for null. */
export function relativeTime(instant: string | null, now: number): string {
  if (instant === null) return '-'
  const ms = now - Date.parse(instant)
  const unit = UNITS.find(([size]) => Math.abs(ms) >= size)
  if (unit === undefined) return 'now'
  const [size, one, many] = unit
  const value = Math.floor(Math.abs(ms) / size)
  const length = `${value} ${value === 1 ? one : many}`
  return ms > 0 ? `${length} ago` : `in ${length}`
}

/** Breaks text between words into lines of at most `width` characters, safe to print. A longer word gets its own line. */
export function wrapText(text: string, width: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text
    .split(/\s+/)
    .filter(part => part !== '')
    .map(safeText)) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return line === '' ? lines : [...lines, line]
}
