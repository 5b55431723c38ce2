import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'
import { type FakeAccess, signatureFault } from './signature.ts'

export const BUCKET = 'lake-of-acme'

export const ACCESS = {
  id: 'AKIDOFTHETESTS',
  secret: 'S3CRET/of+the=tests',
  region: 'eu-test-1',
} as const satisfies FakeAccess

export interface FakeCall {
  method: string
  /** Empty for the bucket. */
  key: string
  query: URLSearchParams
  /** From 1. */
  number: number
}

/**
 * What goes wrong with a request. `lost`: it has its effect, and the connection is reset. `half`: half of the answer
 * arrives, and nothing shows that there was more. `empty`: a listing has no objects.
 */
export type FakeFault =
  | 'lost'
  | 'reset'
  | 'hang'
  | 'truncated'
  | 'half'
  | 'empty'
  | { status: number; code?: string; headers?: Record<string, string>; text?: string }

export const FAILING = { status: 500, code: 'InternalError' }
export const SLOW_DOWN = { status: 503, code: 'SlowDown' }
export const CONFLICT = { status: 409, code: 'ConditionalRequestConflict' }

/** A small S3 with one bucket, which checks every signature. */
export interface FakeS3 {
  url: string
  /** The date of the server, in ms since the epoch. */
  now: () => number
  /** By key. */
  objects: Map<string, { bytes: Buffer; at: number }>
  calls: readonly FakeCall[]
  /** Called before each request has an effect, and may wait. Default: nothing goes wrong. */
  fault: (call: FakeCall) => FakeFault | undefined | Promise<FakeFault | undefined>
  keys(): string[]
}

export interface FakeS3Options {
  access?: FakeAccess
  now?: () => number
  /** Ignores If-None-Match, as old servers do. */
  ignoresConditions?: boolean
  /** Lists keys without encoding them. */
  plainKeys?: boolean
}

interface Exchange {
  call: FakeCall
  request: IncomingMessage
  response: ServerResponse
  body: Buffer
}

export async function fakeS3(options: FakeS3Options = {}): Promise<FakeS3> {
  const { access = ACCESS, now = Date.now } = options
  const calls: FakeCall[] = []
  const fake: FakeS3 = {
    url: '',
    now,
    objects: new Map(),
    calls,
    fault: () => undefined,
    keys: () => [...fake.objects.keys()].sort(),
  }
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await buffer(request)
    const { method = '', url: target = '', headers } = request
    const url = new URL(target, fake.url)
    const [, bucket = '', ...rest] = url.pathname.split('/').map(decodeURIComponent)
    const call = { method, key: rest.join('/'), query: url.searchParams, number: calls.length + 1 }
    calls.push(call)
    response.setHeader('date', new Date(now()).toUTCString())
    const unsigned = signatureFault({ method, target, headers, body }, access, now())
    if (unsigned === 'AuthorizationHeaderMalformed')
      return fail(response, { status: 400, code: unsigned, text: `<Region>${access.region}</Region>` })
    if (unsigned !== undefined) return fail(response, { status: 403, code: unsigned })
    if (bucket !== BUCKET) return fail(response, { status: 404, code: 'NoSuchBucket' })
    const fault = await fake.fault(call)
    if (fault === 'hang') return
    if (fault === 'reset') return request.socket.destroy()
    if (typeof fault === 'object') return fail(response, fault)
    if (fault === 'truncated') truncate(response, request)
    if (fault === 'half') halve(response)
    if (fault === 'empty') call.query.set('prefix', 'no such prefix')
    if (fault === 'lost') lose(response, request)
    answer(fake, { call, request, response, body }, options)
  }
  const server = createServer((request, response) => void serve(request, response))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(
    () =>
      new Promise<void>(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  )
  const address = server.address()
  fake.url = `http://127.0.0.1:${address !== null && typeof address === 'object' ? address.port : 0}`
  return fake
}

/** Resets the connection in place of the answer. */
function lose(response: ServerResponse, request: IncomingMessage): void {
  response.end = () => {
    request.socket.destroy()
    return response
  }
}

/** Announces the whole body, sends half of it and closes the connection. */
function truncate(response: ServerResponse, request: IncomingMessage): void {
  response.end = (bytes?: unknown) => {
    const whole = Buffer.from(bytes as Buffer)
    response.setHeader('content-length', whole.length)
    response.write(whole.subarray(0, whole.length / 2), () => request.socket.destroy())
    return response
  }
}

/** Sends half of the body without the length of the whole. */
function halve(response: ServerResponse): void {
  const end = response.end.bind(response)
  response.end = (bytes?: unknown) => {
    const whole = Buffer.from(bytes as Buffer)
    response.setHeader('transfer-encoding', 'chunked')
    return end(whole.subarray(0, whole.length / 2))
  }
}

export const PRIVATE_TEXT = 'private text of the server'

function fail(response: ServerResponse, fault: Exclude<FakeFault, string>): void {
  const { status, code, headers = {}, text = '' } = fault
  const named = code === undefined ? '' : `<Code>${code}</Code>`
  response
    .writeHead(status, { 'content-type': 'application/xml', ...headers })
    .end(`<?xml version="1.0"?>\n<Error>${named}<Message>${PRIVATE_TEXT}</Message>${text}</Error>`)
}

function answer(fake: FakeS3, exchange: Exchange, options: FakeS3Options): void {
  const { call, request, response, body } = exchange
  const { key, method } = call
  const { now = Date.now, ignoresConditions = false } = options
  const found = fake.objects.get(key)
  if (method === 'GET' && key === '') response.end(listing(fake, call, options))
  else if (method === 'GET' && found) sendObject(response, found.bytes, request.headers.range)
  else if (method === 'GET') fail(response, { status: 404, code: 'NoSuchKey' })
  else if (method === 'PUT' && found && !ignoresConditions && request.headers['if-none-match'] === '*')
    fail(response, { status: 412, code: 'PreconditionFailed' })
  else if (method === 'PUT') {
    fake.objects.set(key, { bytes: body, at: now() })
    response.end()
  } else if (method === 'DELETE') {
    fake.objects.delete(key)
    response.writeHead(204).end()
  } else fail(response, { status: 405, code: 'MethodNotAllowed' })
}

function sendObject(response: ServerResponse, bytes: Buffer, range: string | undefined): void {
  const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(range ?? '')?.map(Number) ?? []
  if (from === undefined || to === undefined) response.end(bytes)
  else if (from >= bytes.length) fail(response, { status: 416, code: 'InvalidRange' })
  else {
    const piece = bytes.subarray(from, to + 1)
    const range = `bytes ${from}-${from + piece.length - 1}/${bytes.length}`
    response.writeHead(206, { 'content-range': range }).end(piece)
  }
}

/** A page of ListObjectsV2. The token has characters that must be encoded in a URL. */
function listing({ objects }: FakeS3, { query }: FakeCall, { plainKeys = false }: FakeS3Options): Buffer {
  const prefix = query.get('prefix') ?? ''
  const after = query.get('continuation-token')?.replace(/^=\+\/ /, '') ?? ''
  const most = Number(query.get('max-keys') ?? 1000)
  const all = [...objects]
    .filter(([key]) => key.startsWith(prefix) && key > after)
    .sort(([a], [b]) => (a < b ? -1 : 1))
  const page = all.slice(0, most)
  const text = (key: string) =>
    plainKeys
      ? key.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
      : encodeURIComponent(key).replaceAll('%2F', '/').replaceAll('%20', '+')
  const isTruncated = all.length > page.length
  const contents = page.map(
    ([key, { bytes, at }]) =>
      `<Contents><Key>${text(key)}</Key><LastModified>${new Date(at).toISOString()}</LastModified><Size>${bytes.length}</Size><Owner><ID>x</ID></Owner></Contents>`,
  )
  const token = isTruncated ? `<NextContinuationToken>=+/ ${page.at(-1)?.[0]}</NextContinuationToken>` : ''
  return Buffer.from(
    `<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>${BUCKET}</Name><KeyCount>${page.length}</KeyCount>${plainKeys ? '' : '<EncodingType>url</EncodingType>'}<IsTruncated>${isTruncated}</IsTruncated>${token}${contents.join('')}</ListBucketResult>`,
  )
}
