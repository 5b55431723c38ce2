import { setMaxListeners } from 'node:events'
import { Readable } from 'node:stream'
import {
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  type ListObjectsV2CommandOutput,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3'
import type { Dispatcher } from 'undici'
import { type Backoff, backoffMs } from '../../base/backoff.ts'
import { type Clock, inTime, SECOND_MS } from '../../base/clock.ts'
import { StopError } from '../../base/errors.ts'
import { createHttpPool, type HttpPool } from '../../base/http-pool.ts'
import { isLoopbackUrl, isReadableOnTheWay } from '../../base/loopback.ts'
import { NO_PROXIES, type ProxyRules } from '../../base/proxies.ts'
import {
  bucketError,
  credentialsError,
  failureOf,
  isTemporary,
  lateCredentialsError,
  noBucketError,
  plainHttpError,
} from './s3-faults.ts'

/**
 * One bucket, through the S3 client of AWS, which finds credentials and the address of the API, signs requests and
 * reads answers. This file adds what the client lacks. An attempt ends when nothing was sent or received for a time,
 * and is repeated even if its body is a file. Only a whole answer counts. The wait for credentials has a limit, and ends
 * with the signal, as does the wait before the next attempt. Redirects are not followed: another address may belong to
 * someone else. Each verb throws a StopError with exit status 73, and the signal's reason once the signal is aborted.
 */
export type BucketClient = ReturnType<typeof createBucketClient>

export type ObjectContent = Buffer | FileContent

export interface FileContent {
  bytes: number
  /** In hex. S3 refuses content with another digest. */
  sha256: string
  /** Opens the content for one attempt. */
  read(): Readable
}

interface ListedPage {
  keys: readonly string[]
  /** The token that asks for the next page; undefined after the last page. */
  token: string | undefined
}

export interface BucketCredentials {
  accessKeyId: string
  secretAccessKey: string
  sessionToken: string | undefined
}

export interface BucketClientOptions {
  bucket: string
  /** The address of the API without the bucket; undefined: as the client of AWS finds it. */
  endpoint: string | undefined
  region: string
  /** Undefined: path style if `endpoint` is set. */
  pathStyle: boolean | undefined
  /** Undefined: those of the environment, profile or role that the client of AWS finds. */
  credentials: BucketCredentials | undefined
  /** How messages name the target. */
  name: string
  /** Default: no proxies. */
  proxies?: ProxyRules
  clock: Clock
  /** Stops every request and every wait. */
  signal: AbortSignal
  /** Returns a number from 0 to below 1. */
  random: () => number
}

const ATTEMPTS = 6
const BACKOFF: Backoff = { firstMs: 500, mostMs: 30 * SECOND_MS, jitter: 1 }
/** How many requests may be in progress. Most are small, so each takes about one round trip. */
const CONNECTIONS = 32
const CONNECT_TIMEOUT_MS = 10 * SECOND_MS
/** A request is given up when nothing was sent or received for this time, at the latest after twice the time. */
const IDLE_TIMEOUT_MS = 60 * SECOND_MS
/** A service or a program that gives credentials may never answer. */
const CREDENTIALS_TIMEOUT_MS = 60 * SECOND_MS
/** Only metadata and pieces of files are read into memory. */
const MAX_BODY_BYTES = 256 * 2 ** 20

// The client would print that versions of 2027 need a newer Node. The version here is pinned.
process.env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] = 'true'

/** The client would print some of its warnings. They may name accounts and roles. */
const SILENT = { trace() {}, debug() {}, info() {}, warn() {}, error() {} }

export function createBucketClient(options: BucketClientOptions) {
  const { bucket: Bucket, endpoint, region, pathStyle, credentials, clock, signal, random, name } = options
  // Many requests may wait for their next attempt, each with a listener.
  setMaxListeners(0, signal)
  const connections = createConnections(options)
  const client = new S3Client({
    region,
    ...(endpoint !== undefined && { endpoint }),
    forcePathStyle: pathStyle ?? endpoint !== undefined,
    ...(credentials && { credentials: withoutUndefined(credentials) }),
    requestHandler: { ...connections, updateHttpClientConfig() {}, httpHandlerConfigs: () => ({}) },
    maxAttempts: 1,
    // Storage other than AWS may refuse newer checksums.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    expectContinueHeader: false,
    customUserAgent: 'parley',
    logger: SILENT,
  })
  const limit = { ms: CREDENTIALS_TIMEOUT_MS, error: lateCredentialsError(name, CREDENTIALS_TIMEOUT_MS) }
  /** Ends with the signal too; `ask` then throws its reason. */
  const sleep = (ms: number, over = signal) => clock.sleep(ms, AbortSignal.any([signal, over]))
  const authenticate = async () => {
    const before = connections.lastLoss()
    try {
      await inTime({ sleep }, limit, () => client.config.credentials())
    } catch (error) {
      if (error instanceof StopError) throw error
      // Credentials may come from a service such as STS. If the service is out of reach, its error is thrown.
      const loss = connections.lastLoss()
      throw loss === before ? credentialsError(name) : loss
    }
  }
  const putCommand = (Key: string, content: ObjectContent) => {
    if (Buffer.isBuffer(content)) return new PutObjectCommand({ Bucket, Key, Body: content })
    const { bytes: ContentLength, sha256 } = content
    const command = new PutObjectCommand({ Bucket, Key, Body: content.read(), ContentLength })
    // The client computes the digest only of content in memory.
    command.middlewareStack.add(
      next => args => {
        Object.assign((args.request as HandledRequest).headers, { 'x-amz-content-sha256': sha256 })
        return next(args)
      },
      { step: 'build' },
    )
    return command
  }
  /** The address of the API, as far as it is known. */
  const url = () => connections.origin() ?? endpoint ?? `https://s3.${region}.amazonaws.com`
  const words = () => ({ name, bucket: Bucket, region, url: url() })
  /** @param refusals what to return for refusals that are expected, by status */
  const ask = async <Output>(
    call: () => Promise<Output>,
    refusals: ReadonlyMap<number, Output> = new Map(),
  ): Promise<Output> => {
    for (let failures = 1; ; failures += 1) {
      signal.throwIfAborted()
      try {
        await authenticate()
        return await call()
      } catch (error) {
        if (signal.aborted) throw signal.reason
        if (error instanceof StopError) throw error
        const failure = failureOf(error)
        if (!isTemporary(failure) || failures === ATTEMPTS) {
          const isAnswer = !('lost' in failure) && failure.code !== 'NoSuchBucket'
          if (isAnswer && refusals.has(failure.status)) return refusals.get(failure.status) as Output
          throw bucketError(words(), failure)
        }
      }
      await clock.sleep(backoffMs(BACKOFF, failures, random), signal)
    }
  }
  return {
    /**
     * @param range the bytes to read: fewer at the end of the object, none behind it
     * @returns undefined where there is no such object
     */
    get: (Key: string, range?: { from: number; bytes: number }) =>
      ask<Buffer | undefined>(
        async () => {
          const Range = range && `bytes=${range.from}-${range.from + range.bytes - 1}`
          const command = new GetObjectCommand({ Bucket, Key, ...(Range !== undefined && { Range }) })
          const { Body, ContentRange, $metadata } = await client.send(command)
          const bytes = Buffer.from((await Body?.transformToByteArray()) ?? [])
          // A server that does not support ranges sends the whole object.
          if (range && $metadata.httpStatusCode === 200)
            return bytes.subarray(range.from, range.from + range.bytes)
          refuseShort(bytes, ContentRange)
          return bytes
        },
        new Map([[404, undefined], ...(range ? [[416, Buffer.alloc(0)] as const] : [])]),
      ),
    async put(Key: string, content: ObjectContent): Promise<void> {
      await ask(() => client.send(putCommand(Key, content)))
    },
    /** @returns whether the object was written: S3 answers 412 if it exists, 409 while another process writes it */
    putIfAbsent: (Key: string, Body: Buffer) =>
      ask(
        async () => {
          await client.send(new PutObjectCommand({ Bucket, Key, Body, IfNoneMatch: '*' }))
          return true
        },
        new Map([409, 412].map(status => [status, false])),
      ),
    async remove(Key: string): Promise<void> {
      const removal = async () => void (await client.send(new DeleteObjectCommand({ Bucket, Key })))
      await ask(removal, new Map([[404, undefined]]))
    },
    list: (Prefix: string, MaxKeys: number, token: string | undefined) =>
      ask(async () => {
        const ContinuationToken = token !== undefined && { ContinuationToken: token }
        const query = { Bucket, Prefix, MaxKeys, EncodingType: 'url', ...ContinuationToken } as const
        const page = listedPage(await client.send(new ListObjectsV2Command(query)))
        if (page === undefined || (page.token !== undefined && page.token === token))
          throw noBucketError(words())
        return page
      }),
    url,
    close() {
      client.destroy()
      connections.destroy()
    },
  }
}

function withoutUndefined({ sessionToken, ...key }: BucketCredentials) {
  return sessionToken === undefined ? key : { ...key, sessionToken }
}

/** Treats a body that ends early as a lost answer, even if the server does not announce the length. */
function refuseShort(bytes: Buffer, contentRange: string | undefined): void {
  const [, from, to] = /^bytes (\d+)-(\d+)\//.exec(contentRange ?? '')?.map(Number) ?? []
  if (from === undefined || to === undefined || bytes.length === to - from + 1) return
  throw Object.assign(new Error('The answer is too short'), { code: 'ECONNRESET' })
}

/** @returns undefined when the answer is not that of an S3 API */
function listedPage(listing: ListObjectsV2CommandOutput): ListedPage | undefined {
  const { Name, KeyCount, Contents = [], EncodingType, IsTruncated = false } = listing
  const token = IsTruncated ? listing.NextContinuationToken : undefined
  // Every listing of S3 has a name or a count, and a truncated one has a token.
  if ((Name === undefined && KeyCount === undefined) || (IsTruncated && !token)) return undefined
  const keys = Contents.map(({ Key }) => decodedKey(Key, EncodingType === 'url'))
  return keys.every(key => key !== undefined) ? { keys, token } : undefined
}

function decodedKey(text: string | undefined, isEncoded: boolean): string | undefined {
  if (!isEncoded) return text
  try {
    return text && decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}

interface HandledRequest {
  protocol: string
  hostname: string
  port?: number
  method: string
  path: string
  query?: Record<string, string | string[] | null>
  headers: Record<string, string>
  body?: unknown
}

interface HandledResponse {
  statusCode: number
  headers: Record<string, string>
  body: Readable
}

/** How the client of AWS sends requests: those to the bucket, and those for credentials, such as to STS. */
function createConnections({ bucket, clock, signal, proxies = NO_PROXIES }: BucketClientOptions) {
  const pools = new Map<string, HttpPool>()
  let origin: string | undefined
  let loss: unknown
  const poolOf = (to: string): HttpPool => {
    // The bucket may be the first part of the host, as in bucket.localhost.
    const server = to.replace(`//${bucket}.`, '//')
    // A request has a signature instead of the secret key, but its content and a session token would not be encrypted.
    if (isReadableOnTheWay(server)) throw plainHttpError(to)
    const pool = pools.get(to) ?? openPool(to, isLoopbackUrl(server) ? NO_PROXIES : proxies)
    pools.set(to, pool)
    return pool
  }
  return {
    async handle(request: HandledRequest): Promise<{ response: HandledResponse }> {
      const { protocol, hostname, port, method, headers, body } = request
      origin = `${protocol}//${hostname}${port === undefined ? '' : `:${port}`}`
      const pool = poolOf(origin)
      const limit = startIdleLimit(clock, signal)
      try {
        const response = await pool.request({
          method: method as Dispatcher.HttpMethod,
          path: targetOf(request),
          headers,
          body: sentBody(body, limit),
          signal: limit.signal,
        })
        return { response: answerOf(response, await readContent(response, limit)) }
      } catch (error) {
        loss = limit.hasExpired()
          ? Object.assign(new Error('No answer in time'), { code: 'ETIMEDOUT' })
          : error
        throw loss
      } finally {
        limit.end()
      }
    },
    /** The origin to which the newest request went. */
    origin: () => origin,
    /** The error of the newest request that got no complete answer. */
    lastLoss: () => loss,
    destroy() {
      for (const pool of pools.values()) void pool.destroy()
    },
  }
}

const openPool = (origin: string, proxies: ProxyRules): HttpPool =>
  createHttpPool(origin, {
    connections: CONNECTIONS,
    proxies,
    connectMs: CONNECT_TIMEOUT_MS,
    // The idle limit replaces both timeouts. It also ends a request whose body cannot be sent.
    headersTimeout: 0,
    bodyTimeout: 0,
  })

function targetOf({ path, query = {} }: HandledRequest): string {
  const pairs = Object.entries(query).flatMap(([name, values]) =>
    [values ?? ''].flat().map(value => `${encodedText(name)}=${encodedText(value)}`),
  )
  return pairs.length === 0 ? path : `${path}?${pairs.join('&')}`
}

/** Encodes everything but unreserved characters, as the signature requires. */
const encodedText = (text: string): string =>
  encodeURIComponent(text).replace(
    /[!'()*]/g,
    character => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )

function sentBody(body: unknown, limit: IdleLimit): Readable | Uint8Array | string | null {
  if (body instanceof Readable) return Readable.from(watched<Buffer>(body, limit), { objectMode: false })
  return body instanceof Uint8Array || typeof body === 'string' ? body : null
}

function answerOf({ statusCode, headers }: Dispatcher.ResponseData, content: Buffer): HandledResponse {
  const flat = Object.entries(headers).map(([name, value]) => [name, String(value ?? '')])
  return { statusCode, headers: Object.fromEntries(flat), body: Readable.from([content]) }
}

/** An error here destroys the connection, so that the rest is never received. */
async function readContent({ body }: Dispatcher.ResponseData, limit: IdleLimit): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of watched<Buffer>(body, limit)) {
    bytes += chunk.length
    if (bytes > MAX_BODY_BYTES) throw Object.assign(new Error('The answer is too large'), { code: 'EFBIG' })
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

async function* watched<Chunk>(chunks: AsyncIterable<Chunk>, limit: IdleLimit) {
  for await (const chunk of chunks) {
    limit.restart()
    yield chunk
  }
}

type IdleLimit = ReturnType<typeof startIdleLimit>

function startIdleLimit(clock: Clock, outer: AbortSignal) {
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
    /** Aborted when `restart` was not called for `IDLE_TIMEOUT_MS`, or with the caller's signal. */
    signal: AbortSignal.any([outer, expired.signal]),
    restart() {
      steps += 1
    },
    hasExpired: () => expired.signal.aborted,
    end: () => over.abort(),
  }
}
