import { STATUS_CODES } from 'node:http'
import { DAY_MS, MINUTE_MS } from '../base/clock.ts'
import { failureCode, tlsReason } from '../base/connection-faults.ts'
import { decodeJson } from '../base/json.ts'
import { ProxyError } from '../base/proxies.ts'
import { knownWords } from './server-text.ts'

/** Classifies HTTP responses and failed requests. Pure. Every message may be logged. */

export type RetryCause = 'throttled' | 'server' | 'timeout' | 'transport' | 'garbled' | 'unreachable'

export type Outcome =
  | {
      kind: 'answer'
      /** Decoded JSON. Numbers that a double cannot hold are exact numbers (`exactNumber`). */
      value: unknown
      /** Size of the body after decompression. */
      bytes: number
      /** The server's clock from its `Date` header in ms since the epoch, whole seconds. */
      serverTime: number | undefined
    }
  /** 400, 403, 404 and every other 4xx that is not retried. The caller knows whether it expects the status. */
  | {
      kind: 'refused'
      status: number
      message: string
      serverTime?: number
      /** The body does not have the form of the API's errors: another server may answer at this address. */
      isForeign: boolean
      /** The body is a web page. */
      isWebPage: boolean
    }
  | {
      kind: 'retry'
      cause: RetryCause
      status?: number
      /**
       * The wait that the API asks for: at most 24 h with a 429, at most 60 s with any other status. Absent if the API
       * asks for none.
       */
      waitMs?: number
      message: string
      /** The status is 2xx, but the body is a web page. */
      isForeign?: true
    }
  /** 401: the key is missing, invalid, revoked or expired. */
  | { kind: 'unauthorized'; message: string }
  /** A failure that is not retried: `redirect`, `response-too-large`, `bad-request-setup`. */
  | {
      kind: 'fault'
      code: string
      message: string
      /** Undefined when the request was not sent. */
      status: number | undefined
    }

/** An HTTP response with its body decompressed. */
export interface HttpAnswer {
  status: number
  /** Header names are in lower case. */
  headers: Readonly<Record<string, string | readonly string[] | undefined>>
  text: string
  bytes: number
}

/** Requested waits are cut to this. A rate limit may apply per day. Other failures may end before a long wait does. */
const MAX_WAIT_MS = { throttled: DAY_MS, other: MINUTE_MS }

export interface ReadingContext {
  /** This machine's clock in ms. It is only used when the response has no `Date`. */
  now: number
  /** The API key, which a server may repeat in a message. */
  secret: string
}

/**
 * Classifies a response, whose content may be anything. If that causes an exception, only this request has failed, by
 * an unreadable answer.
 */
export function classifyAnswer(answer: HttpAnswer, context: ReadingContext): Outcome {
  try {
    return meaningOf(answer, context)
  } catch (error) {
    const { status } = answer
    const name = error instanceof Error ? error.name : typeof error
    return { kind: 'retry', cause: 'garbled', status, message: `The answer is unreadable (${name})` }
  }
}

function meaningOf(answer: HttpAnswer, { now, secret }: ReadingContext): Outcome {
  const { status } = answer
  if (status >= 200 && status < 300) return readAnswer(answer)
  if (status === 304) return { kind: 'retry', cause: 'garbled', status, message: NOT_MODIFIED }
  if (status >= 300 && status < 400) return redirectFault(status)
  const message = serverMessage(answer, secret)
  if (status === 401) return { kind: 'unauthorized', message }
  const cause = retryCause(status)
  if (cause === undefined) {
    const time = serverTime(answer.headers)
    const isForeign = !isApiError(answer.text)
    const isWebPage = WEB_PAGE.test(answer.text)
    return {
      kind: 'refused',
      status,
      message,
      isForeign,
      isWebPage,
      ...(time !== undefined && { serverTime: time }),
    }
  }
  const waitMs = readWait(answer, now)
  return { kind: 'retry', cause, status, message, ...(waitMs !== undefined && { waitMs }) }
}

const WEB_PAGE = /^\s*</

function readAnswer({ status, headers, text, bytes }: HttpAnswer): Outcome {
  try {
    return { kind: 'answer', value: decodeJson(text).value, bytes, serverTime: serverTime(headers) }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    // The parser's error is not used, since its message quotes the body.
    const failed = { kind: 'retry', cause: 'garbled', status } as const
    if (!WEB_PAGE.test(text)) return { ...failed, message: `The answer is not JSON (${bytes} bytes)` }
    return { ...failed, message: `The answer is a web page, not JSON (${bytes} bytes)`, isForeign: true }
  }
}

/** parley sends no conditional requests, so a cache has mixed up its requests. */
const NOT_MODIFIED = 'Not Modified, without a request for it'

function redirectFault(status: number): Outcome {
  return {
    kind: 'fault',
    code: 'redirect',
    status,
    message: `The API answered with a redirect (${status}). parley does not follow redirects, since they could leak the key: check api.base_url`,
  }
}

/** 4xx statuses that are retried. */
const RETRIED_STATUS: Readonly<Record<number, RetryCause>> = {
  408: 'timeout',
  425: 'server',
  429: 'throttled',
}

function retryCause(status: number): RetryCause | undefined {
  return RETRIED_STATUS[status] ?? (status >= 500 ? 'server' : undefined)
}

/** @returns the words of the error body that may be logged, or the name of the status if there are none */
function serverMessage({ status, text }: HttpAnswer, secret: string): string {
  const { code, sentences } = errorBody(text)
  const safeSentences = sentences.flatMap(sentence => knownWords(sentence, secret) || [])
  const safeCode = knownWords(code, secret)
  const parts = [safeSentences.join('; '), safeCode && `(${safeCode})`].filter(part => part !== '')
  return parts.length === 0 ? (STATUS_CODES[status] ?? `HTTP status ${status}`) : parts.join(' ')
}

/** Whether the body has a field of the API's errors (spec: Errors). */
function isApiError(text: string): boolean {
  const { body, sentences } = errorBody(text)
  return sentences.length > 0 || typeof fieldOf(body, 'statusCode') === 'number'
}

/** `message` of the v1 error body, or `error.code` and `error.message` of the v2 one (spec: Errors). */
function errorBody(text: string): { body: unknown; code: string; sentences: readonly string[] } {
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    return { body: undefined, code: '', sentences: [] }
  }
  const error = fieldOf(body, 'error')
  const code = fieldOf(error, 'code')
  const message = fieldOf(body, 'message') ?? fieldOf(error, 'message')
  // Validation errors are a list of sentences.
  const sentences = (Array.isArray(message) ? message : [message]).slice(0, MAX_SENTENCES)
  return {
    body,
    code: typeof code === 'string' ? code : '',
    sentences: sentences.filter(sentence => typeof sentence === 'string'),
  }
}

const MAX_SENTENCES = 3

function fieldOf(value: unknown, key: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined
  return Object.entries(value).find(([name]) => name === key)?.[1]
}

/**
 * The wait that the headers ask for, in ms: `Retry-After`, and with a 429 also the headers that state the reset time of
 * the limit. The first of them with a wait above 0 counts.
 */
function readWait({ status, headers }: HttpAnswer, now: number): number | undefined {
  const today = serverTime(headers) ?? now
  const readings = [retryAfter(header(headers, 'retry-after'), today)]
  if (status === 429)
    for (const name of RESET_HEADERS) readings.push(secondsOrInstant(header(headers, name), today))
  const wait = readings.find(reading => reading !== undefined && reading > 0)
  const longest = MAX_WAIT_MS[status === 429 ? 'throttled' : 'other']
  return wait === undefined ? undefined : Math.min(Math.ceil(wait), longest)
}

const RESET_HEADERS = ['ratelimit-reset', 'x-ratelimit-reset', 'x-rate-limit-reset']

/**
 * Reads `Retry-After`: seconds from now or a date. Some servers send an instant as a number, as in the reset headers.
 */
function retryAfter(text: string, today: number): number | undefined {
  const date = httpDate(text)
  return date === undefined ? secondsOrInstant(text, today) : date - today
}

/** Reads a number as seconds from now, or as an instant in seconds or milliseconds since the epoch, by its size. */
function secondsOrInstant(text: string, today: number): number | undefined {
  const value = decimal(text)
  if (value === undefined) return undefined
  if (value < 1e9) return value * 1000
  return (value < 1e11 ? value * 1000 : value) - today
}

function serverTime(headers: HttpAnswer['headers']): number | undefined {
  return httpDate(header(headers, 'date'))
}

function header(headers: HttpAnswer['headers'], name: string): string {
  const value = headers[name]
  return (typeof value === 'string' ? value : (value?.[0] ?? '')).trim()
}

function decimal(text: string): number | undefined {
  return /^\d{1,15}(\.\d{1,9})?$/.test(text) ? Number(text) : undefined
}

/**
 * Parses the three forms of an HTTP date, and RFC 3339 instants. The oldest form of an HTTP date (asctime) has no zone
 * and means GMT.
 */
function httpDate(text: string): number | undefined {
  if (!/^([A-Z][a-z]{2,8},? |\d{4}-\d\d-\d\dT)/.test(text)) return undefined
  const zoned = /(GMT|UTC|Z|[+-]\d\d:?\d\d)$/.test(text) ? text : `${text} GMT`
  const time = Date.parse(zoned)
  return Number.isNaN(time) ? undefined : time
}

/**
 * The meaning of an error code of the socket, TLS or HTTP layer. `message` replaces the error's own message, which may
 * contain headers.
 */
interface FailureMeaning {
  cause: RetryCause
  message: string
}

const FAILURES: Readonly<Record<string, FailureMeaning>> = {
  ECONNREFUSED: { cause: 'unreachable', message: 'The API cannot be reached: connection refused' },
  ENOTFOUND: { cause: 'unreachable', message: 'The API cannot be reached: its host name does not resolve' },
  EAI_AGAIN: { cause: 'unreachable', message: 'The API cannot be reached: name resolution failed' },
  EHOSTUNREACH: { cause: 'unreachable', message: 'The API cannot be reached: no route to its host' },
  ENETUNREACH: { cause: 'unreachable', message: 'The API cannot be reached: the network is unreachable' },
  UND_ERR_CONNECT_TIMEOUT: {
    cause: 'unreachable',
    message: 'The API cannot be reached: connecting timed out',
  },
  ETIMEDOUT: { cause: 'unreachable', message: 'The API cannot be reached: connecting timed out' },
  UND_ERR_HEADERS_TIMEOUT: { cause: 'timeout', message: 'The API did not start to answer in time' },
  UND_ERR_BODY_TIMEOUT: { cause: 'timeout', message: 'The answer stalled' },
  UND_ERR_SOCKET: { cause: 'transport', message: 'The connection was closed before the answer was complete' },
  ECONNRESET: { cause: 'transport', message: 'The connection was reset' },
  EPIPE: { cause: 'transport', message: 'The connection was closed while the request was sent' },
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: {
    cause: 'garbled',
    message: 'The length of the answer differs from its Content-Length',
  },
  UND_ERR_HEADERS_OVERFLOW: { cause: 'garbled', message: 'The headers of the answer are too large' },
  Z_BUF_ERROR: { cause: 'garbled', message: 'The compressed answer is incomplete' },
  Z_DATA_ERROR: { cause: 'garbled', message: 'The compressed answer is damaged' },
}

/** Classifies a failed attempt by the code of its error or of the error's causes. */
export function classifyFailure(error: unknown): Outcome {
  if (error instanceof ProxyError)
    return { kind: 'retry', cause: 'unreachable', message: `The API cannot be reached: ${error.message}` }
  const code = failureCode(error)
  if (/^UND_ERR_INVALID_ARG|^ERR_INVALID/.test(code)) return badSetupFault()
  return { kind: 'retry', ...(FAILURES[code] ?? meaningOfKind(code)) }
}

function meaningOfKind(code: string): FailureMeaning {
  const reason = tlsReason(code)
  if (reason !== undefined) return { cause: 'unreachable', message: `The API cannot be reached: ${reason}` }
  if (code.startsWith('HPE_')) return { cause: 'garbled', message: `The answer is not HTTP (${code})` }
  return { cause: 'transport', message: `The request failed (${code})` }
}

/** @returns the outcome when `api.timeout_seconds` has passed without a complete answer */
export function timeoutOutcome(timeoutMs: number): Outcome {
  const message = `No complete answer within ${timeoutMs / 1000} s (api.timeout_seconds)`
  return { kind: 'retry', cause: 'timeout', message }
}

export function tooLargeFault(status: number, maxResponseBytes: number): Outcome {
  return {
    kind: 'fault',
    code: 'response-too-large',
    status,
    message: `The answer is larger than ${maxResponseBytes} bytes: raise api.max_response_bytes if such an answer is expected`,
  }
}

/** @returns the fault when the key, the workspace id or the path has characters that HTTP does not allow */
function badSetupFault(): Outcome {
  return {
    kind: 'fault',
    code: 'bad-request-setup',
    status: undefined,
    message: 'The request cannot be sent as HTTP: check api.key and api.workspace_id for invalid characters',
  }
}
