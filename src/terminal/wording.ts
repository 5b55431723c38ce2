/** Counts, rates and durations as text for people. Sizes are in `base/size-text.ts`. Pure. */

import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, utcDay } from '../base/clock.ts'
import { safeText, singleLine } from '../base/safe-text.ts'
import { wholeNumber } from '../base/whole-number.ts'
import { splitAtWidth, textWidth } from './text-width.ts'

/** `1 row`, `1,200 rows`. */
export function countText(value: number, one: string, many = `${one}s`): string {
  return `${wholeNumber(value)} ${value === 1 ? one : many}`
}

export const isAre = (count: number): string => (count === 1 ? 'is' : 'are')

/** A rate with at most two decimals below 1, one below 10, none from 10 on: `0.03`, `4.2`, `45`. */
export function rateText(rate: number): string {
  if (rate >= 10) return wholeNumber(Math.round(rate))
  return String(Number(rate.toFixed(rate >= 1 ? 1 : 2)))
}

const MONTH_MS = 30 * DAY_MS
const YEAR_MS = 365 * DAY_MS

/** A duration in its two largest units, such as `3 min 4 s`. Below a second: milliseconds. */
export function durationText(ms: number): string {
  if (ms < SECOND_MS) return `${Math.round(ms)} ms`
  const parts: [number, string][] = [
    [Math.floor(ms / YEAR_MS), 'y'],
    [Math.floor((ms % YEAR_MS) / DAY_MS), 'd'],
    [Math.floor((ms % DAY_MS) / HOUR_MS), 'h'],
    [Math.floor((ms % HOUR_MS) / MINUTE_MS), 'min'],
    [Math.floor((ms % MINUTE_MS) / SECOND_MS), 's'],
  ]
  const first = parts.findIndex(([value]) => value > 0)
  return parts
    .slice(first, first + 2)
    .filter(([value]) => value > 0)
    .map(([value, unit]) => `${value} ${unit}`)
    .join(' ')
}

/** As `durationText`, but at least one second. For countdowns and elapsed times. */
export function wholeSecondsText(ms: number): string {
  return durationText(Math.max(ms, SECOND_MS))
}

/** `14:02:10 UTC` on the same UTC day as `now`, else `2026-03-04 14:02 UTC`. */
export function clockText(instant: string, now: number): string {
  const [day = '', time = ''] = instant.split('T')
  return day === utcDay(now) ? `${time.slice(0, 8)} UTC` : dateTimeText(instant)
}

/** `2026-03-04 14:02 UTC`, for texts that are read on another day. */
export function dateTimeText(instant: string): string {
  return `${instant.slice(0, 16).replace('T', ' ')} UTC`
}

const UNITS: readonly (readonly [ms: number, one: string, many: string])[] = [
  [YEAR_MS, 'year', 'years'],
  [MONTH_MS, 'month', 'months'],
  [DAY_MS, 'day', 'days'],
  [HOUR_MS, 'h', 'h'],
  [MINUTE_MS, 'min', 'min'],
  [SECOND_MS, 's', 's'],
]

/** `3 min ago`, `in 2 days`, `now`; a dash for null. */
export function relativeTime(instant: string | null, now: number): string {
  if (instant === null) return '-'
  const ms = now - Date.parse(instant)
  const length = largestUnitText(Math.abs(ms))
  if (length === undefined) return 'now'
  return ms > 0 ? `${length} ago` : `in ${length}`
}

/** `3 min`; undefined below one second. */
function largestUnitText(ms: number): string | undefined {
  const unit = UNITS.find(([size]) => ms >= size)
  if (unit === undefined) return undefined
  const [size, one, many] = unit
  const value = Math.floor(ms / size)
  return `${value} ${value === 1 ? one : many}`
}

/** When something is due: `now` also for the past. */
export function dueText(at: string | null, now: number): string {
  return at !== null && Date.parse(at) <= now ? 'now' : relativeTime(at, now)
}

/** The text on one line and with at most `most` characters, safe to print. */
export function shortText(text: string, most: number): string {
  const characters = [...singleLine(text)]
  return characters.length > most ? `${characters.slice(0, most - 1).join('')}…` : characters.join('')
}

/** Breaks text between words into lines of at most `width` columns, safe to print. A longer word stays whole. */
export function wrapText(text: string, width: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text
    .split(/\s+/)
    .filter(part => part !== '')
    .map(safeText)) {
    if (line !== '' && textWidth(line) + 1 + textWidth(word) > width) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return line === '' ? lines : [...lines, line]
}

/** As `wrapText`, but a longer word is broken too, so that no line is wider. */
export function foldText(text: string, width: number): string[] {
  return wrapText(text, width).flatMap(line => splitAtWidth(line, width))
}
