import { isUuid } from '../base/ids.ts'
import { parseInstant } from '../base/instants.ts'
import { type Answer, generalError, OperationRefusal, v2BadRequest } from './answers.ts'

/** The query of one request, checked by the rules of its API version. Every refusal is a 400. */
export interface RequestQuery {
  has(name: string): boolean
  text(name: string): string | undefined
  /** Refuses an empty text. */
  nonEmptyText(name: string): string | undefined
  limit(max: number, fallback: number): number
  page(): number
  instant(name: string): number | undefined
  oneOf<T extends string>(name: string, allowed: readonly T[]): T | undefined
  /** Comma-separated UUIDs, at most 100, converted to lower case. */
  uuids(name: string): string[] | undefined
  uuid(name: string): string | undefined
  allowOnly(allowed: readonly string[]): void
  badRequest(message: string): OperationRefusal
  /** All parameters but those of paging, as one text. */
  filter(): string
}

const PAGING_PARAMETERS = ['limit', 'cursor', 'page']
const MAX_IDS = 100

export function createQuery(raw: string, version: 'v1' | 'v2'): RequestQuery {
  const parameters = new URLSearchParams(raw)
  const answerOf = (message: string): Answer =>
    version === 'v2' ? v2BadRequest(message) : generalError(400, message)
  const badRequest = (message: string): OperationRefusal => new OperationRefusal(answerOf(message))
  const names = [...new Set(parameters.keys())]
  for (const name of names) {
    if (parameters.getAll(name).length > 1) throw badRequest(`${name} must be given once`)
  }
  const text = (name: string): string | undefined => parameters.get(name) ?? undefined
  const nonEmptyText = (name: string): string | undefined => {
    const value = text(name)
    if (value === '') throw badRequest(`${name} must not be empty`)
    return value
  }
  const integer = (name: string, min: number, max: number, fallback: number): number => {
    const value = text(name)
    if (value === undefined) return fallback
    const number = /^\d{1,9}$/.test(value) ? Number(value) : Number.NaN
    if (!(number >= min && number <= max)) {
      throw badRequest(
        `${name} must be an integer from ${min}${max === Number.MAX_SAFE_INTEGER ? '' : ` to ${max}`}`,
      )
    }
    return number
  }

  return {
    has: name => parameters.has(name),
    text,
    nonEmptyText,
    limit: (max, fallback) => integer('limit', 1, max, fallback),
    page: () => integer('page', 1, Number.MAX_SAFE_INTEGER, 1),
    instant: name => {
      const value = nonEmptyText(name)
      if (value === undefined) return undefined
      const micros = parseInstant(value)
      if (micros === undefined) throw badRequest(`${name} must be an RFC 3339 date-time`)
      return micros
    },
    oneOf: (name, allowed) => {
      const value = text(name)
      if (value === undefined) return undefined
      const found = allowed.find(each => each === value)
      if (found === undefined) throw badRequest(`${name} must be one of ${allowed.join(', ')}`)
      return found
    },
    uuids: name => {
      const value = nonEmptyText(name)
      if (value === undefined) return undefined
      const ids = value.split(',')
      if (ids.length > MAX_IDS) throw badRequest(`${name} must hold at most ${MAX_IDS} ids`)
      if (!ids.every(isUuid)) throw badRequest(`${name} must be comma-separated UUIDs`)
      return ids.map(id => id.toLowerCase())
    },
    uuid: name => {
      const value = nonEmptyText(name)
      if (value !== undefined && !isUuid(value)) throw badRequest(`${name} must be a UUID`)
      return value?.toLowerCase()
    },
    allowOnly: allowed => {
      const unknown = names.find(name => !allowed.includes(name))
      if (unknown !== undefined) throw badRequest(`query parameter ${unknown} is not accepted`)
    },
    badRequest,
    filter: () =>
      names
        .filter(name => !PAGING_PARAMETERS.includes(name))
        .sort()
        .map(name => `${name}=${parameters.get(name)}`)
        .join('&'),
  }
}
