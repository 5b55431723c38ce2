import { Readable } from 'node:stream'
import { AwsV4Signer } from 'aws4fetch'
import type { Dispatcher } from 'undici'
import { type Backoff, backoffMs } from '../../../backoff.ts'
import { type Clock, isoInstant, SECOND_MS } from '../../../clock.ts'
import { errorCode } from '../../../error-code.ts'
import { createHttpPool, type HttpPool } from '../../../http-pool.ts'
import { NO_PROXIES, ProxyError, type ProxyRules } from '../../../proxies.ts'
import { type BucketEndpoint, bucketUrl, encodedKey, encodedText } from './address.ts'
import { type BucketAnswer, isTemporary, type LostAnswer, readAnswer } from './answers.ts'

/**
 * Signs requests, sends them, and repeats those that failed for now. Redirects are not followed: another address may
 * belong to someone else, and the signature is for this one.
 */

export interface BucketCredentials {
  accessKeyId: string
  secretAccessKey: string
  sessionToken: string | undefined
}

export interface BucketRequest {
  method: 'GET' | 'PUT' | 'DELETE'
  /** Undefined for the bucket itself. */
  key?: string
  query?: Readonly<Record<string, string>>
  headers?: Readonly<Record<string, string>>
  body?: RequestBody
}

export interface RequestBody {
  bytes: number
  /** In hex. S3 refuses a body that differs. */
  sha256: string
  /** The content, for one try. */
  chunks(): AsyncIterable<Buffer> | Iterable<Buffer>
}

export interface BucketRequestsOptions extends BucketEndpoint {
  bucket: string
  credentials: BucketCredentials
  /** Default: none. */
  proxies?: ProxyRules
  clock: Clock
  /** Stops every request and every wait. */
  signal: AbortSignal
  /** Returns a number from 0 to below 1. */
  random: () => number
}

export interface BucketRequests {
  /** The last of at most `ATTEMPTS` answers. @throws the reason of the signal */
  send(request: BucketRequest): Promise<BucketAnswer | LostAnswer>
  close(): void
}

export const ATTEMPTS = 6
const BACKOFF: Backoff = { firstMs: 500, mostMs: 30 * SECOND_MS, jitter: 1 }
/** Requests in progress. Most are small, so each takes about one round trip. */
const CONNECTIONS = 32
const CONNECT_TIMEOUT_MS = 10 * SECOND_MS
/** A request of which nothing was sent or received for this time is given up, at the latest after twice the time. */
const IDLE_TIMEOUT_MS = 60 * SECOND_MS
/** What is read into memory is metadata. */
const MAX_BODY_BYTES = 256 * 2 ** 20

/** SHA-256 of nothing. */
const EMPTY_SHA256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

export function createBucketRequests(options: BucketRequestsOptions): BucketRequests {
  const { bucket, clock, signal, random, proxies = NO_PROXIES } = options
  const url = bucketUrl(options, bucket)
  const pool = createHttpPool(new URL(url).origin, {
    connections: CONNECTIONS,
    proxies,
    connectMs: CONNECT_TIMEOUT_MS,
    // The idle limit replaces both. It also sees a request of which the body cannot be sent.
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  const attempt = async (request: BucketRequest): Promise<BucketAnswer | LostAnswer> => {
    const limit = startIdleLimit(clock, signal)
    try {
      return await exchange(pool, await sign(url, request, options), request.body, limit)
    } catch (error) {
      if (signal.aborted) throw signal.reason
      return { lost: limit.hasExpired() ? 'no answer in time' : lostReason(error) }
    } finally {
      limit.end()
    }
  }
  return {
    async send(request) {
      for (let failures = 1; ; failures += 1) {
        signal.throwIfAborted()
        const answer = await attempt(request)
        if (!isTemporary(answer) || failures === ATTEMPTS) return answer
        await clock.sleep(backoffMs(BACKOFF, failures, random), signal)
      }
    },
    close: () => void pool.destroy(),
  }
}

interface SignedRequest {
  method: BucketRequest['method']
  path: string
  headers: Record<string, string>
}

async function sign(
  url: string,
  { method, key, query = {}, headers = {}, body }: BucketRequest,
  { credentials, region, clock }: BucketRequestsOptions,
): Promise<SignedRequest> {
  const { accessKeyId, secretAccessKey, sessionToken } = credentials
  const search = Object.entries(query).map(([name, value]) => `${name}=${encodedText(value)}`)
  const path = key === undefined ? '/' : `/${encodedKey(key)}`
  const signer = new AwsV4Signer({
    method,
    url: `${url}${path}${search.length > 0 ? `?${search.join('&')}` : ''}`,
    headers: { ...headers, 'x-amz-content-sha256': body?.sha256 ?? EMPTY_SHA256 },
    accessKeyId,
    secretAccessKey,
    ...(sessionToken !== undefined && { sessionToken }),
    service: 's3',
    region,
    datetime: isoInstant(clock.now()).replace(/[:-]|\.\d{3}/g, ''),
  })
  const signed = await signer.sign()
  return {
    method,
    path: signed.url.pathname + signed.url.search,
    headers: {
      ...Object.fromEntries(signed.headers.entries()),
      'user-agent': 'parley',
      ...(body && { 'content-length': String(body.bytes) }),
    },
  }
}

async function exchange(
  pool: HttpPool,
  request: SignedRequest,
  body: RequestBody | undefined,
  limit: IdleLimit,
): Promise<BucketAnswer | LostAnswer> {
  const response = await pool.request({
    ...request,
    body: body ? Readable.from(watched(body.chunks(), limit), { objectMode: false }) : null,
    signal: limit.signal,
  })
  const content = await readContent(response, limit)
  return content === undefined
    ? { lost: 'the answer is too large' }
    : readAnswer(response.statusCode, response.headers, content)
}

/** Returning early destroys the connection, so that the rest is never received. */
async function readContent({ body }: Dispatcher.ResponseData, limit: IdleLimit): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of watched<Buffer>(body, limit)) {
    bytes += chunk.length
    if (bytes > MAX_BODY_BYTES) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

async function* watched<Chunk>(chunks: AsyncIterable<Chunk> | Iterable<Chunk>, limit: IdleLimit) {
  for await (const chunk of chunks) {
    limit.restart()
    yield chunk
  }
}

interface IdleLimit {
  /** Aborted when nothing has happened for the time, or with the signal of the caller. */
  signal: AbortSignal
  restart(): void
  hasExpired(): boolean
  end(): void
}

function startIdleLimit(clock: Clock, outer: AbortSignal): IdleLimit {
  const over = new AbortController()
  const expired = new AbortController()
  let steps = 0
  const watch = async () => {
    for (let seen = -1; seen !== steps; ) {
      seen = steps
      await clock.sleep(IDLE_TIMEOUT_MS, over.signal)
      if (over.signal.aborted) return
    }
    expired.abort()
  }
  void watch()
  return {
    signal: AbortSignal.any([outer, expired.signal]),
    restart() {
      steps += 1
    },
    hasExpired: () => expired.signal.aborted,
    end: () => over.abort(),
  }
}

/** The code of the system, of TLS or of undici; never the text of an error, which may quote the answer. */
function lostReason(error: unknown): string {
  if (error instanceof ProxyError) return error.message
  const code = errorCode(error) ?? errorCode(error instanceof Error ? error.cause : undefined)
  return code !== undefined && /^[A-Z][A-Z\d_]{2,60}$/.test(code) ? code : 'the connection failed'
}
