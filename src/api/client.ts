import { setMaxListeners } from 'node:events'
import { promisify } from 'node:util'
import { gunzip, gunzipSync } from 'node:zlib'
import type { Dispatcher } from 'undici'
import type { Clock } from '../base/clock.ts'
import { createHttpPool, type HttpPool } from '../base/http-pool.ts'
import { NO_PROXIES, type ProxyRules } from '../base/proxies.ts'
import type { ApiAccess } from './access-errors.ts'
import {
  classifyAnswer,
  classifyFailure,
  type HttpAnswer,
  type Outcome,
  timeoutOutcome,
  tooLargeFault,
} from './classify.ts'
import { type ApiRequest, pathWithQuery } from './request.ts'

/** Sends single requests to the API and classifies their outcome. */

export interface ClientOptions {
  /** The address under which the API has `/v1` and `/v2`. It may have a path and a trailing slash. */
  baseUrl: string
  /** Called for every request, so that a changed key takes effect at once. */
  apiKey: () => string
  workspaceId: string
  /** Where the key was read from, for error messages. */
  keySource: ApiAccess['keySource']
  /** Time limit of a whole request. Of this, connecting may take 10 s and the wait for the response headers 30 s. */
  timeoutMs: number
  /** Maximum size of a body after decompression. */
  maxResponseBytes: number
  clock: Clock
  /** Default: none. */
  proxies?: ProxyRules
  /** Maximum number of connections. Further requests wait for a free connection. Default 64. */
  maxSockets?: number
}

/** An outcome with its times. `startedAt` is this machine's clock before sending, in ms since the epoch. */
export type Sent = Outcome & { startedAt: number; durationMs: number }

export interface Client {
  /** Makes one attempt. @throws only an AbortError, when the signal is aborted */
  send(request: ApiRequest, signal: AbortSignal): Promise<Sent>
  /** Closes every connection. Requests in flight end as transport failures. */
  close(): Promise<void>
  /** The API, the workspace and the key's source, for error messages. */
  access: ApiAccess
}

const CONNECT_TIMEOUT_MS = 10_000
const HEADERS_TIMEOUT_MS = 30_000
const IDLE_CONNECTION_MS = 10_000

/** Maximum size of the body of an error. The errors of the API have some hundred bytes. */
const MAX_ERROR_BYTES = 64 * 1024

export function createClient(options: ClientOptions): Client {
  const { clock, timeoutMs, maxResponseBytes } = options
  const base = new URL(options.baseUrl)
  const prefix = base.pathname.replace(/(?<!\/)\/+$/, '')
  const pool = createPool(base.origin, options)

  const exchange = async (request: ApiRequest, secret: string, signal: AbortSignal): Promise<Exchange> => {
    const response = await pool.request({
      method: 'GET',
      path: prefix + pathWithQuery(request),
      headers: requestHeaders(secret, options.workspaceId),
      signal,
    })
    const isError = response.statusCode >= 300
    const maxBytes = isError ? Math.min(MAX_ERROR_BYTES, maxResponseBytes) : maxResponseBytes
    const body = await readBody(response, maxBytes)
    return { status: response.statusCode, headers: response.headers, body }
  }

  const attempt = async (request: ApiRequest, signal: AbortSignal): Promise<Outcome> => {
    if (signal.aborted) throw abortError()
    const secret = options.apiKey()
    const limit = startTimeLimit(clock, timeoutMs, signal)
    let exchanged: Exchange
    try {
      exchanged = await exchange(request, secret, limit.signal)
    } catch (error) {
      if (limit.expired()) return timeoutOutcome(timeoutMs)
      if (signal.aborted) throw abortError()
      return classifyFailure(error)
    } finally {
      limit.end()
    }
    const answer = decodeText(exchanged)
    if (answer === undefined) return tooLargeFault(exchanged.status, maxResponseBytes)
    return classifyAnswer(answer, { now: clock.now(), secret })
  }

  return {
    async send(request, signal) {
      const startedAt = clock.now()
      const began = clock.elapsed()
      const outcome = await attempt(request, signal)
      return { ...outcome, startedAt, durationMs: clock.elapsed() - began }
    },
    close: () => pool.destroy(),
    access: { baseUrl: options.baseUrl, workspaceId: options.workspaceId, keySource: options.keySource },
  }
}

function createPool(
  origin: string,
  { timeoutMs, maxSockets = 64, proxies = NO_PROXIES }: ClientOptions,
): HttpPool {
  return createHttpPool(origin, {
    proxies,
    connections: maxSockets,
    pipelining: 1,
    connectMs: Math.min(timeoutMs, CONNECT_TIMEOUT_MS),
    headersTimeout: Math.min(timeoutMs, HEADERS_TIMEOUT_MS),
    bodyTimeout: timeoutMs,
    keepAliveTimeout: IDLE_CONNECTION_MS,
  })
}

function requestHeaders(apiKey: string, workspaceId: string): Record<string, string> {
  return {
    'x-api-key': apiKey,
    'x-workspace-id': workspaceId,
    accept: 'application/json',
    'accept-encoding': 'gzip',
    'user-agent': 'parley',
  }
}

/** A response. Its body is decompressed, and undefined if it is too large. */
interface Exchange {
  status: number
  headers: HttpAnswer['headers']
  body: Buffer | undefined
}

/**
 * @returns undefined when the body of a 2xx is too large. An error whose body is too large gets an empty text instead.
 */
function decodeText({ status, headers, body }: Exchange): HttpAnswer | undefined {
  if (body !== undefined) return { status, headers, text: body.toString('utf8'), bytes: body.length }
  return status < 300 ? undefined : { status, headers, text: '', bytes: 0 }
}

async function readBody(response: Dispatcher.ResponseData, maxBytes: number): Promise<Buffer | undefined> {
  const raw = await readRaw(response, maxBytes)
  const gzipped = /^(x-)?gzip$/i.test(String(response.headers['content-encoding'] ?? ''))
  return gzipped && raw !== undefined && raw.length > 0 ? decompress(raw, maxBytes) : raw
}

/** Reads a body. Returning early destroys the body and the connection, so that the rest is never received. */
async function readRaw(
  { body, headers }: Dispatcher.ResponseData,
  maxBytes: number,
): Promise<Buffer | undefined> {
  let bytes = Number(headers['content-length'] ?? 0) > maxBytes ? Number.POSITIVE_INFINITY : 0
  const chunks: Buffer[] = []
  for await (const chunk of body) {
    bytes += chunk.length
    if (bytes > maxBytes) return undefined
    chunks.push(chunk)
  }
  const [first] = chunks
  return chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks)
}

const gunzipAsync = promisify(gunzip)

/** Smaller bodies are decompressed on this thread: that takes less time and much less memory than on another thread. */
const SMALL_BODY_BYTES = 64 * 1024

async function decompress(raw: Buffer, maxBytes: number): Promise<Buffer | undefined> {
  try {
    if (raw.length < SMALL_BODY_BYTES) return gunzipSync(raw, { maxOutputLength: maxBytes })
    return await gunzipAsync(raw, { maxOutputLength: maxBytes, chunkSize: 64 * 1024 })
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

interface TimeLimit {
  /** Aborted after the timeout, or with the caller's signal. */
  signal: AbortSignal
  expired(): boolean
  end(): void
}

/** The reason of every abort. Without a reason, each `abort()` would create an exception, even after a success. */
const OVER = new Error('The request is over')

function startTimeLimit(clock: Clock, timeoutMs: number, outer: AbortSignal): TimeLimit {
  const controller = new AbortController()
  const abort = () => controller.abort(OVER)
  let expired = false
  // Every request adds a listener to the same signal. Node would warn of a leak at more than ten listeners.
  setMaxListeners(0, outer)
  outer.addEventListener('abort', abort, { once: true })
  clock.sleep(timeoutMs, controller.signal).then(() => {
    expired = !controller.signal.aborted
    abort()
  }, abort)
  return {
    signal: controller.signal,
    expired: () => expired,
    end: () => {
      outer.removeEventListener('abort', abort)
      abort()
    },
  }
}

function abortError(): Error {
  return new DOMException('The request was aborted', 'AbortError')
}
