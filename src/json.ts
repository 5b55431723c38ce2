import { isLosslessNumber, LosslessNumber, parse } from 'lossless-json'

/** How JSON text becomes values and text again with no digit lost: the only user of lossless-json. */

export { isLosslessNumber }

export interface DecodedJson {
  value: unknown
  /** True when the text was read losslessly, so that LosslessNumbers may be among the values. */
  exact: boolean
}

/**
 * Number literals that a double may not hold: 16 or more digits (with or without a point), or an exponent.
 * A JSON number always stands after one of these characters or at the start, while a digit run inside a
 * string mostly follows a quote, so ids and UUIDs are not taken for numbers.
 */
const DOUBTFUL_NUMBER = /(?:^|[\s:,[])(-?\d(?:[\d.]{15,}(?:[eE][+-]?\d+)?|[\d.]*[eE][+-]?\d+))/g

/**
 * Reads JSON text. Numbers that a double keeps digit for digit come as numbers, all others as LosslessNumber.
 * Of a repeated key the last one counts, and `__proto__` is a key like any other, as with `JSON.parse`.
 * @throws SyntaxError when the text is not JSON, or is nested too deep to be read losslessly.
 */
export function decodeJson(text: string): DecodedJson {
  const json = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
  if (!needsLosslessReading(json)) return { value: JSON.parse(json), exact: false }
  try {
    const value = parse(json, undefined, { parseNumber, onDuplicateKey: ({ newValue }) => newValue })
    return { value, exact: true }
  } catch (error) {
    // The lossless parser recurses: a text nested some thousand levels deep overflows the stack.
    if (error instanceof RangeError) throw new SyntaxError('The JSON text is nested too deep')
    throw error
  }
}

/**
 * JSON text of a value, with LosslessNumbers written digit for digit. As fast as `JSON.stringify` where there
 * are none. What JSON cannot express is left out or null, as with `JSON.stringify`; any depth is written.
 */
export function encodeJson(value: unknown): string {
  try {
    const text = JSON.stringify(value) ?? 'null'
    return text.includes(LOSSLESS_MARK) ? encodeExactly(value) : text
  } catch (error) {
    if (error instanceof RangeError) return encodeExactly(value)
    throw error
  }
}

/** The literal of a number that no double holds, or undefined for every other value, plain numbers included. */
export function exactNumber(value: unknown): { text: string } | undefined {
  return isLosslessNumber(value) ? { text: value.value } : undefined
}

/** A field that only LosslessNumbers have, or data that imitates them, which merely costs time. */
const LOSSLESS_MARK = '"isLosslessNumber":true'

function needsLosslessReading(json: string): boolean {
  for (const [, literal] of json.matchAll(DOUBTFUL_NUMBER)) {
    if (literal !== undefined && !doubleKeeps(literal)) return true
  }
  return false
}

function parseNumber(literal: string): number | LosslessNumber {
  return doubleKeeps(literal) ? Number(literal) : new LosslessNumber(literal)
}

/** Whether the double nearest to the literal, written as text, has the same digits at the same places. */
function doubleKeeps(literal: string): boolean {
  const number = Number(literal)
  // Not a number at all: digits and points from inside a string, such as a version.
  if (Number.isNaN(number)) return true
  const text = String(number)
  if (text === literal) return true
  return Number.isFinite(number) && canonical(text) === canonical(literal)
}

/** A literal without its sign as significant digits and the power of ten of the last: `1.50` equals `15e-1`. */
function canonical(literal: string): string {
  const [mantissa = '', exponent = '0'] = literal.split(/[eE]/)
  const point = mantissa.indexOf('.')
  const digits = mantissa.replace(/[-.]/g, '')
  let start = 0
  while (digits[start] === '0') start++
  let end = digits.length
  while (end > start && digits[end - 1] === '0') end--
  if (start === end) return '0'
  const fraction = point < 0 ? 0 : mantissa.length - point - 1
  return `${digits.slice(start, end)}e${Number(exponent) - fraction + digits.length - end}`
}

/** One open list or object on the way down. */
interface OpenValue {
  entries: Iterator<[key: string | undefined, value: unknown]>
  close: string
  empty: boolean
}

/** Writes without recursion, so that no depth is too deep. */
function encodeExactly(value: unknown): string {
  const parts: string[] = []
  const open: OpenValue[] = []
  const write = (item: unknown) => {
    if (isLosslessNumber(item)) parts.push(item.value)
    else if (Array.isArray(item)) begin('[', ']', arrayEntries(item))
    else if (typeof item === 'object' && item !== null) begin('{', '}', objectEntries(item))
    else parts.push(JSON.stringify(item) ?? 'null')
  }
  const begin = (start: string, close: string, entries: OpenValue['entries']) => {
    parts.push(start)
    open.push({ entries, close, empty: true })
  }
  write(value)
  for (let last = open.at(-1); last !== undefined; last = open.at(-1)) {
    const { done, value: entry } = last.entries.next()
    if (done) {
      parts.push(last.close)
      open.pop()
      continue
    }
    if (!last.empty) parts.push(',')
    last.empty = false
    if (entry[0] !== undefined) parts.push(JSON.stringify(entry[0]), ':')
    write(entry[1])
  }
  return parts.join('')
}

function* arrayEntries(array: readonly unknown[]): OpenValue['entries'] {
  for (const item of array) yield [undefined, item]
}

function* objectEntries(object: object): OpenValue['entries'] {
  for (const [key, item] of Object.entries(object)) if (item !== undefined) yield [key, item]
}
