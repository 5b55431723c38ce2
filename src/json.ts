import { randomUUID } from 'node:crypto'

/**
 * How JSON text becomes values and text again with no digit lost, at any depth. A number that no double holds becomes
 * an object with one field, whose name no text can hold, and whose value is the literal.
 */

export interface DecodedJson {
  value: unknown
  /** True when exact numbers (`exactNumber`) are among the values. */
  exact: boolean
}

/** Random and never written anywhere, so that no text can imitate it. */
const EXACT = randomUUID()

/** Strings, which are skipped, and number literals. */
const TOKEN = /"|-?\d[\d.eE+-]*/g

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

/**
 * Number literals that a double may not hold: 16 or more digits (with or without a point), or an exponent.
 * A JSON number always stands after one of these characters or at the start, while a digit run inside a
 * string mostly follows a quote, so ids and UUIDs are not taken for numbers.
 */
const DOUBTFUL_NUMBER = /(?:^|[\s:,[])(-?\d(?:[\d.]{15,}(?:[eE][+-]?\d+)?|[\d.]*[eE][+-]?\d+))/g

/**
 * Reads JSON text. Numbers that a double keeps digit for digit come as numbers, all others as exact numbers.
 * Of a repeated key the last one counts, and `__proto__` is a key like any other, as with `JSON.parse`.
 * @throws SyntaxError when the text is not JSON
 */
export function decodeJson(text: string): DecodedJson {
  const json = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
  const exact = hasExactNumbers(json)
  return { value: JSON.parse(exact ? wrapExactNumbers(json) : json), exact }
}

/**
 * JSON text of a value, with exact numbers written digit for digit. As fast as `JSON.stringify` where there are none.
 * What JSON cannot express is left out or null, as with `JSON.stringify`; any depth is written.
 */
export function encodeJson(value: unknown): string {
  try {
    const text = JSON.stringify(value) ?? 'null'
    return text.includes(EXACT) ? text.replaceAll(WRAPPED, '$1') : text
  } catch (error) {
    if (error instanceof RangeError) return encodeDeep(value)
    throw error
  }
}

const WRAPPED = new RegExp(`\\{"${EXACT}":"([^"]*)"\\}`, 'g')

/** The literal of a number that no double holds, or undefined for every other value, plain numbers included. */
export function exactNumber(value: unknown): { text: string } | undefined {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, EXACT)) return undefined
  return { text: (value as Record<string, string>)[EXACT] ?? '' }
}

export function isExactNumber(value: unknown): boolean {
  return exactNumber(value) !== undefined
}

/**
 * Whether two decoded values are the same, whatever the order of their fields. Without recursion, so that no depth is
 * too deep.
 */
export function isSameValue(one: unknown, other: unknown): boolean {
  const open: [unknown, unknown][] = [[one, other]]
  for (let pair = open.pop(); pair !== undefined; pair = open.pop()) {
    const [left, right] = pair
    if (Object.is(left, right)) continue
    if (!isContainer(left) || !isContainer(right) || Array.isArray(left) !== Array.isArray(right))
      return false
    const names = Object.keys(left)
    if (names.length !== Object.keys(right).length) return false
    for (const name of names) {
      if (!Object.hasOwn(right, name)) return false
      open.push([left[name], right[name]])
    }
  }
  return true
}

function isContainer(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function hasExactNumbers(json: string): boolean {
  for (const [, literal] of json.matchAll(DOUBTFUL_NUMBER)) {
    if (literal !== undefined && !doubleKeeps(literal)) return true
  }
  return false
}

/** The text with an object in place of each number that no double holds. */
function wrapExactNumbers(json: string): string {
  const parts: string[] = []
  let copied = 0
  TOKEN.lastIndex = 0
  for (let token = TOKEN.exec(json); token !== null; token = TOKEN.exec(json)) {
    const [literal] = token
    if (literal === '"') TOKEN.lastIndex = endOfString(json, token.index)
    else if (NUMBER.test(literal) && !doubleKeeps(literal)) {
      parts.push(json.slice(copied, token.index), `{"${EXACT}":"${literal}"}`)
      copied = TOKEN.lastIndex
    }
  }
  parts.push(json.slice(copied))
  return parts.join('')
}

/** @param start where the opening quote stands */
function endOfString(json: string, start: number): number {
  let end = json.indexOf('"', start + 1)
  while (end >= 0 && isEscaped(json, end)) end = json.indexOf('"', end + 1)
  return end < 0 ? json.length : end + 1
}

function isEscaped(json: string, at: number): boolean {
  let backslashes = 0
  while (json[at - 1 - backslashes] === '\\') backslashes++
  return backslashes % 2 === 1
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
function encodeDeep(value: unknown): string {
  const parts: string[] = []
  const open: OpenValue[] = []
  const write = (item: unknown) => {
    const exact = exactNumber(item)
    if (exact) parts.push(exact.text)
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
