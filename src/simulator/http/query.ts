import { isUuid } from '../ids.ts'
import { parseInstant } from '../instants.ts'
import { type Answer, generalError, Refusal, v2BadRequest } from './answers.ts'

/** The query of one request, checked as the version of its operation demands. Every refusal is a 400. */
export interface Query {
  has(name: string): boolean
  text(name: string): string | undefined
  /** A text that must not be empty. */
  word(name: string): string | undefined
  limit(most: number, usual: number): number
  page(): number
  instant(name: string): number | undefined
  oneOf<T extends string>(name: string, allowed: readonly T[]): T | undefined
  /** Comma-separated UUIDs, at most 100, in lower case. */
  uuids(name: string): string[] | undefined
  uuid(name: string): string | undefined
  only(allowed: readonly string[]): void
  refuse(message: string): Refusal
  /** What the query asks for besides the place in the list, as one text. */
  filter(): string
}

const PLACE = ['limit', 'cursor', 'page']
const MOST_IDS = 100

export function createQuery(raw: string, version: 'v1' | 'v2'): Query {
  const parameters = new URLSearchParams(raw)
  const badRequest = (message: string): Answer =>
    version === 'v2' ? v2BadRequest(message) : generalError(400, message)
  const refuse = (message: string): Refusal => new Refusal(badRequest(message))
  const names = [...new Set(parameters.keys())]
  for (const name of names) {
    if (parameters.getAll(name).length > 1) throw refuse(`${name} must be given once`)
  }
  const text = (name: string): string | undefined => parameters.get(name) ?? undefined
  const word = (name: string): string | undefined => {
    const value = text(name)
    if (value === '') throw refuse(`${name} must not be empty`)
    return value
  }
  const whole = (name: string, least: number, most: number, usual: number): number => {
    const value = text(name)
    if (value === undefined) return usual
    const number = /^\d{1,9}$/.test(value) ? Number(value) : Number.NaN
    if (!(number >= least && number <= most)) {
      throw refuse(
        `${name} must be an integer from ${least}${most === Number.MAX_SAFE_INTEGER ? '' : ` to ${most}`}`,
      )
    }
    return number
  }

  return {
    has: name => parameters.has(name),
    text,
    word,
    limit: (most, usual) => whole('limit', 1, most, usual),
    page: () => whole('page', 1, Number.MAX_SAFE_INTEGER, 1),
    instant: name => {
      const value = word(name)
      if (value === undefined) return undefined
      const micros = parseInstant(value)
      if (micros === undefined) throw refuse(`${name} must be an RFC 3339 date-time`)
      return micros
    },
    oneOf: (name, allowed) => {
      const value = text(name)
      if (value === undefined) return undefined
      const found = allowed.find(each => each === value)
      if (found === undefined) throw refuse(`${name} must be one of ${allowed.join(', ')}`)
      return found
    },
    uuids: name => {
      const value = word(name)
      if (value === undefined) return undefined
      const ids = value.split(',')
      if (ids.length > MOST_IDS) throw refuse(`${name} must hold at most ${MOST_IDS} ids`)
      if (!ids.every(isUuid)) throw refuse(`${name} must be comma-separated UUIDs`)
      return ids.map(id => id.toLowerCase())
    },
    uuid: name => {
      const value = word(name)
      if (value !== undefined && !isUuid(value)) throw refuse(`${name} must be a UUID`)
      return value?.toLowerCase()
    },
    only: allowed => {
      const unknown = names.find(name => !allowed.includes(name))
      if (unknown !== undefined) throw refuse(`query parameter ${unknown} is not accepted`)
    },
    refuse,
    filter: () =>
      names
        .filter(name => !PLACE.includes(name))
        .sort()
        .map(name => `${name}=${parameters.get(name)}`)
        .join('&'),
  }
}
