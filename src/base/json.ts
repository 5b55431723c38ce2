import { randomUUID } from 'node:crypto'

/**
 * JSON decoding and encoding that keep every digit, at any depth. A number that a double cannot hold exactly becomes an
 * exact number: an object with one field, whose name is random and whose value is the literal.
 */

export interface DecodedJson {
  value: unknown
  /** Whether the value contains exact numbers (`exactNumber`). */
  exact: boolean
}

/** The field name of exact numbers, random for each process and never written out, so that no input can contain it. */
const EXACT = randomUUID()

/** Matches the opening quote of a string, which is then skipped, or a number literal. */
const TOKEN = /"|-?\d[\d.eE+-]*/g

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

/**
 * Matches number literals that a double may not hold: 16 or more digits (with or without a point), or an exponent. A
 * JSON number follows white space, `:`, `,` or `[`, or starts the text. Digits in a string mostly follow its quote, so
 * ids and UUIDs do not match.
 */
const DOUBTFUL_NUMBER = /(?:^|[\s:,[])(-?\d(?:[\d.]{15}[\d.]*(?:[eE][+-]?\d+)?|[\d.]*[eE][+-]?\d+))/g

/**
 * Parses JSON. Numbers that a double holds digit for digit become numbers, all others exact numbers. As with
 * `JSON.parse`, the last of repeated keys wins and `__proto__` is an ordinary key.
 * @throws SyntaxError when the text is not JSON
 */
export function decodeJson(text: string): DecodedJson {
  const json = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
  const exact = hasExactNumbers(json)
  return { value: JSON.parse(exact ? wrapExactNumbers(json) : json), exact }
}

/**
 * JSON text of a value, with exact numbers written digit for digit. As fast as `JSON.stringify` when there are none.
 * Values that JSON cannot express are omitted or null, as with `JSON.stringify`. Depth is not limited.
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

/** The literal of an exact number; undefined for every other value, plain numbers included. */
export function exactNumber(value: unknown): { text: string } | undefined {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, EXACT)) return undefined
  return { text: (value as Record<string, string>)[EXACT] ?? '' }
}

export function isExactNumber(value: unknown): boolean {
  return exactNumber(value) !== undefined
}

/** Whether a decoded value is an object with fields: no list, and no exact number. */
export function isJsonObject(value: unknown): value is Record<string, unknown> {
  return isContainer(value) && !Array.isArray(value) && !isExactNumber(value)
}

/**
 * Whether two decoded values are equal, in any order of their fields. With `nullIsMissing`, a null field equals a
 * missing one. Not recursive, so that depth is not limited.
 */
export function isSameValue(one: unknown, other: unknown, { nullIsMissing = false } = {}): boolean {
  const missing = nullIsMissing ? null : undefined
  const fieldOf = (container: Record<string, unknown>, name: string) =>
    Object.hasOwn(container, name) ? container[name] : missing
  const open: [unknown, unknown][] = [[one, other]]
  for (let pair = open.pop(); pair !== undefined; pair = open.pop()) {
    const [left, right] = pair
    if (Object.is(left, right)) continue
    if (!isContainer(left) || !isContainer(right) || Array.isArray(left) !== Array.isArray(right))
      return false
    const [names, others] = [Object.keys(left), Object.keys(right)]
    const mayLackFields = nullIsMissing && !Array.isArray(left)
    if (names.length !== others.length && !mayLackFields) return false
    for (const name of mayLackFields ? new Set([...names, ...others]) : names) {
      open.push([fieldOf(left, name), fieldOf(right, name)])
    }
  }
  return true
}

function isContainer(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function hasExactNumbers(json: string): boolean {
  for (const [, literal] of json.matchAll(DOUBTFUL_NUMBER)) {
    if (literal !== undefined && !isKeptByDouble(literal)) return true
  }
  return false
}

/** Replaces each number that a double cannot hold with its wrapper object. */
function wrapExactNumbers(json: string): string {
  const parts: string[] = []
  let copied = 0
  TOKEN.lastIndex = 0
  for (let token = TOKEN.exec(json); token !== null; token = TOKEN.exec(json)) {
    const [literal] = token
    if (literal === '"') TOKEN.lastIndex = endOfString(json, token.index)
    else if (NUMBER.test(literal) && !isKeptByDouble(literal)) {
      parts.push(json.slice(copied, token.index), `{"${EXACT}":"${literal}"}`)
      copied = TOKEN.lastIndex
    }
  }
  parts.push(json.slice(copied))
  return parts.join('')
}

/** The index after the closing quote. @param start the index of the opening quote */
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

/** Whether the nearest double, written as text, has the same significant digits and the same power of ten. */
function isKeptByDouble(literal: string): boolean {
  const number = Number(literal)
  // The match is no number but digits and points inside a string, such as a version.
  if (Number.isNaN(number)) return true
  const text = String(number)
  if (text === literal) return true
  return Number.isFinite(number) && canonical(text) === canonical(literal)
}

/**
 * The significant digits, without the sign, and the power of ten of the last digit: `1.50` and `15e-1` give the same.
 */
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

/** A list or object whose entries are being written. */
interface OpenValue {
  entries: Iterator<[key: string | undefined, value: unknown]>
  close: string
  empty: boolean
}

/** Not recursive, so that depth is not limited. */
function encodeDeep(value: unknown): string {
  const parts: string[] = []
  const open: OpenValue[] = []
  const write = (item: unknown) => {
    const exact = exactNumber(item)
    if (exact) parts.push(exact.text)
    else if (Array.isArray(item)) openContainer('[', ']', arrayEntries(item))
    else if (typeof item === 'object' && item !== null) openContainer('{', '}', objectEntries(item))
    else parts.push(JSON.stringify(item) ?? 'null')
  }
  const openContainer = (start: string, close: string, entries: OpenValue['entries']) => {
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
