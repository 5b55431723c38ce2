import { isLosslessNumber, LosslessNumber, parse } from 'lossless-json'

/** JSON whose numbers keep every digit that they were written with. */
export type Json = null | boolean | string | LosslessNumber | readonly Json[] | Fields
export interface Fields {
  readonly [name: string]: Json | undefined
}

/** What is nested too deep for the parser, as a wrong answer may be, is its text. */
export function parseExact(text: string): Json {
  try {
    return parse(text) as Json
  } catch (error) {
    if (error instanceof RangeError) return text
    throw error
  }
}

export function isFields(value: Json | undefined): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isLosslessNumber(value)
}

/** Empty for a value that is not an object. */
export function fieldsOf(value: Json | undefined): Fields {
  return isFields(value) ? value : {}
}

export function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : []
}

/** The double nearest to a JSON number; undefined for other values. */
export function numberOf(value: Json | undefined): number | undefined {
  return value instanceof LosslessNumber ? Number(value.value) : undefined
}

/** Canonical text: sorted keys, and numbers by their exact value, whatever their notation. */
export function canonicalJson(value: Json): string {
  if (value instanceof LosslessNumber) return canonicalNumber(value.value)
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (!isFields(value)) return JSON.stringify(value)
  const parts = Object.keys(value)
    .sort()
    .map(name => `${JSON.stringify(name)}:${canonicalJson(value[name] ?? null)}`)
  return `{${parts.join(',')}}`
}

const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/

/** All significant digits, and the power of ten of the last digit. */
function canonicalNumber(text: string): string {
  const [, sign = '', whole = '', part = '', power = '0'] = NUMBER.exec(text) ?? []
  const digits = `${whole}${part}`.replace(/^0+/, '')
  const significant = digits.replace(/0+$/, '')
  if (significant === '') return '0'
  const exponent = Number(power) - part.length + (digits.length - significant.length)
  return `${sign}${significant}e${exponent}`
}
