import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { createServer as createSocketServer } from 'node:net'
import { gzipSync } from 'node:zlib'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type ClientOptions, createClient } from '../../src/api/client.ts'
import type { ApiRequest } from '../../src/api/request.ts'
import { systemClock } from '../../src/base/clock.ts'
import { listen, serve } from './server.ts'

const KEY = 'key-that-nobody-may-see'
const REQUEST: ApiRequest = {
  route: '/v2/messages',
  path: '/v2/messages',
  query: { limit: '100', cursor: 'a+b' },
}

function connect(baseUrl: string, options: Partial<ClientOptions> = {}) {
  const client = createClient({
    baseUrl,
    apiKey: () => KEY,
    workspaceId: 'w-1',
    keySource: { by: 'environment', text: 'environment PARLEY_API_KEY' },
    timeoutMs: 30_000,
    maxResponseBytes: 100_000,
    clock: systemClock(),
    ...options,
  })
  onTestFinished(() => client.close())
  return client
}

/** Sends one request, and checks that the outcome does not contain the key. */
async function send(baseUrl: string, options?: Partial<ClientOptions>) {
  const sent = await connect(baseUrl, options).send(REQUEST, new AbortController().signal)
  expect(JSON.stringify(sent)).not.toContain(KEY)
  return sent
}

function json(response: ServerResponse, value: unknown, status = 200) {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}

describe('a sent request', () => {
  it.each(['', '/', '/gateway', '/gateway/'])(
    'a request finds its path below a base URL that ends with %j',
    async path => {
      const { baseUrl, received } = await serve((_, response) => json(response, {}))
      await send(baseUrl + path)
      expect(received[0]?.url).toBe(`${path.replace(/\/$/, '')}/v2/messages?limit=100&cursor=a%2Bb`)
    },
  )

  it('a request carries the current key, the workspace and the accepted encodings', async () => {
    const { baseUrl, received } = await serve((_, response) => json(response, {}))
    const keys = ['old', 'new']
    const client = connect(baseUrl, { apiKey: () => keys.shift() ?? '' })
    const signal = new AbortController().signal
    await client.send(REQUEST, signal)
    await client.send(REQUEST, signal)
    expect(received.map(({ headers }) => headers['x-api-key'])).toEqual(['old', 'new'])
    expect(received[0]?.method).toBe('GET')
    expect(received[0]?.headers).toMatchObject({
      'x-workspace-id': 'w-1',
      accept: 'application/json',
      'accept-encoding': 'gzip',
      'user-agent': 'parley',
    })
  })

  it('a request reuses an open connection', async () => {
    const { baseUrl, received } = await serve((_, response) => json(response, {}))
    const client = connect(baseUrl)
    for (let i = 0; i < 10; i++) await client.send(REQUEST, new AbortController().signal)
    expect(new Set(received.map(({ socket }) => socket)).size).toBeLessThanOrEqual(2)
  })

  it('a request that HTTP cannot carry is a defect', async () => {
    const { baseUrl, received } = await serve((_, response) => json(response, {}))
    expect(await send(baseUrl, { apiKey: () => `${KEY}\n` })).toMatchObject({
      kind: 'fault',
      code: 'bad-request-setup',
    })
    expect(received).toHaveLength(0)
  })
})

describe('a received answer', () => {
  const value = { data: [{ id: 'ü', text: 'x'.repeat(1000) }] }

  it('an answer has its times and its size', async () => {
    const { baseUrl } = await serve((_, response) => json(response, value))
    const before = Date.now()
    const sent = await send(baseUrl)
    expect(sent).toMatchObject({ kind: 'answer', value, bytes: Buffer.byteLength(JSON.stringify(value)) })
    expect(sent.startedAt).toBeGreaterThanOrEqual(before)
    expect(sent.kind === 'answer' && sent.serverTime).toBeGreaterThanOrEqual(before - 1000)
  })

  it('a compressed answer is unpacked, and its unpacked size counts', async () => {
    const text = JSON.stringify(value)
    const { baseUrl } = await serve((_, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(text))
    })
    expect(await send(baseUrl)).toMatchObject({ kind: 'answer', value, bytes: Buffer.byteLength(text) })
  })

  it('an answer is assembled from any number of chunks, cut inside a character too', async () => {
    const bytes = Buffer.from(JSON.stringify(value))
    const { baseUrl } = await serve(async (_, response) => {
      for (const byte of bytes) if (!response.write(Buffer.of(byte))) await once(response, 'drain')
      response.end()
    })
    expect(await send(baseUrl)).toMatchObject({ kind: 'answer', value })
  })

  it.each([
    [401, { kind: 'unauthorized', message: 'Invalid API key …' }],
    [403, { kind: 'refused', status: 403, message: 'Invalid API key …' }],
    [429, { kind: 'retry', cause: 'throttled', status: 429, waitMs: 2000 }],
    [502, { kind: 'retry', cause: 'server', status: 502 }],
  ])('an answer with status %i is not an error of the client', async (status, outcome) => {
    const { baseUrl } = await serve((_, response) => {
      response.setHeader('retry-after', '2')
      json(response, { statusCode: status, message: `Invalid API key ${KEY}` }, status)
    })
    expect(await send(baseUrl)).toMatchObject(outcome)
  })

  it('a redirect is not followed', async () => {
    const elsewhere = await serve((_, response) => json(response, {}))
    const { baseUrl } = await serve((_, response) => {
      response.writeHead(302, { location: `${elsewhere.baseUrl}/v2/messages` }).end()
    })
    expect(await send(baseUrl)).toMatchObject({ kind: 'fault', code: 'redirect' })
    expect(elsewhere.received).toHaveLength(0)
  })
})

describe('an answer that is too large', () => {
  const fault = {
    kind: 'fault',
    code: 'response-too-large',
    message: expect.stringContaining('api.max_response_bytes'),
  }

  it('the answer is cut off while it streams', async () => {
    const closed: Promise<unknown>[] = []
    const { baseUrl } = await serve((_, response) => {
      closed.push(once(response, 'close'))
      const more = () => {
        while (!response.destroyed && response.write('x'.repeat(10_000)));
      }
      response.on('drain', more)
      more()
    })
    expect(await send(baseUrl)).toMatchObject(fault)
    await Promise.all(closed)
  })

  it('the answer is not read at all when its header says so', async () => {
    const { baseUrl } = await serve((_, response) => {
      response.writeHead(200, { 'content-length': '1000000' }).write('[')
    })
    expect(await send(baseUrl)).toMatchObject(fault)
  })

  it('the answer is not unpacked beyond the limit', async () => {
    const bomb = gzipSync(Buffer.alloc(50_000_000))
    const { baseUrl } = await serve((_, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb)
    })
    expect(bomb.length).toBeLessThan(100_000)
    expect(await send(baseUrl)).toMatchObject(fault)
  })

  it('an answer may be as large as the limit', async () => {
    const text = JSON.stringify('x'.repeat(99_998))
    for (const body of [text, gzipSync(text)]) {
      const { baseUrl } = await serve((_, response) => {
        if (typeof body !== 'string') response.setHeader('content-encoding', 'gzip')
        response.end(body)
      })
      expect(await send(baseUrl)).toMatchObject({ kind: 'answer', bytes: 100_000 })
    }
  })

  it('an error status with a body of more than 64 KiB is reported by its status', async () => {
    const { baseUrl } = await serve((_, response) =>
      json(response, { message: 'limit exceeded', more: 'x'.repeat(65_536) }, 500),
    )
    expect(await send(baseUrl)).toMatchObject({
      kind: 'retry',
      cause: 'server',
      message: 'Internal Server Error',
    })
  })

  it('the request after an answer that is too large is answered', async () => {
    const bodies = ['x'.repeat(1_000_000), '[1]']
    const { baseUrl } = await serve((_, response) => response.end(bodies.shift()))
    const client = connect(baseUrl, { maxSockets: 1 })
    const signal = new AbortController().signal
    const outcomes = await Promise.all([client.send(REQUEST, signal), client.send(REQUEST, signal)])
    expect(outcomes).toMatchObject([fault, { kind: 'answer', value: [1] }])
  })
})

describe('a connection that fails', () => {
  it.each<[string, string, (response: ServerResponse) => void]>([
    ['reset before the answer', 'transport', response => response.socket?.resetAndDestroy()],
    ['closed before the answer', 'transport', response => response.socket?.destroy()],
    [
      'closed within the answer',
      'transport',
      response =>
        response.writeHead(200, { 'content-length': '100' }).write('[1', () => response.socket?.end()),
    ],
    [
      'closed within pieces',
      'transport',
      response => response.writeHead(200).write('[1', () => response.socket?.destroy()),
    ],
    [
      'with a compressed answer cut off',
      'garbled',
      response =>
        response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('[1,2,3]').subarray(0, 15)),
    ],
    [
      'with a compressed answer that is not',
      'garbled',
      response => response.writeHead(200, { 'content-encoding': 'gzip' }).end('<html>'),
    ],
    [
      'with a page of HTML',
      'garbled',
      response => response.writeHead(200, { 'content-type': 'text/html' }).end('<p>'),
    ],
    ['with an empty answer', 'garbled', response => response.end()],
  ])('a failure (%s) may be retried: %s', async (_, cause, answer) => {
    const { baseUrl } = await serve((_request, response) => answer(response))
    expect(await send(baseUrl)).toMatchObject({ kind: 'retry', cause })
  })

  it.each<[string, (response: ServerResponse) => void]>([
    ['never answers', () => undefined],
    ['stops within the headers', response => response.socket?.write('HTTP/1.1 200 OK\r\n')],
    ['stops within the body', response => response.writeHead(200).write('[1')],
    [
      'never ends its body',
      response => {
        const drip = () => response.write(' ', error => error ?? setImmediate(drip))
        drip()
      },
    ],
  ])('a request times out when the API %s', async (_, answer) => {
    const { baseUrl } = await serve((_request, response) => answer(response))
    const sent = await send(baseUrl, { timeoutMs: 100, maxResponseBytes: 2 ** 30 })
    expect(sent).toMatchObject({ kind: 'retry', cause: 'timeout' })
  })

  it('the API is unreachable when no process listens', async () => {
    const server = createSocketServer()
    const port = await listen(server)
    server.close()
    await once(server, 'close')
    expect(await send(`http://127.0.0.1:${port}`)).toMatchObject({
      kind: 'retry',
      cause: 'unreachable',
      message: expect.stringContaining('refused'),
    })
  })

  it('the API is unreachable when the server does not speak TLS', async () => {
    const { baseUrl } = await serve((_, response) => json(response, {}))
    expect(await send(baseUrl.replace('http:', 'https:'))).toMatchObject({
      kind: 'retry',
      cause: 'unreachable',
      message: expect.stringContaining('TLS'),
    })
  })

  it('the answer of a server that does not speak HTTP is garbled', async () => {
    const server = createSocketServer(socket => {
      socket.once('data', () => socket.end('SSH-2.0-OpenSSH_9.6\r\n'))
    })
    onTestFinished(() => void server.close())
    expect(await send(`http://127.0.0.1:${await listen(server)}`)).toMatchObject({
      kind: 'retry',
      cause: 'garbled',
    })
  })
})

describe('an aborted request', () => {
  it('an aborted request rejects with an AbortError, before and after it was sent', async () => {
    const controller = new AbortController()
    const { baseUrl, received } = await serve(() => controller.abort(new Error('stop it all')))
    const client = connect(baseUrl)
    await expect(client.send(REQUEST, controller.signal)).rejects.toMatchObject({ name: 'AbortError' })
    await expect(client.send(REQUEST, controller.signal)).rejects.toMatchObject({ name: 'AbortError' })
    expect(received).toHaveLength(1)
  })

  it('a request rejects when it is aborted in its body', async () => {
    const controller = new AbortController()
    const { baseUrl } = await serve((_, response) => {
      response.writeHead(200).write('[1', () => setImmediate(() => controller.abort()))
    })
    await expect(connect(baseUrl).send(REQUEST, controller.signal)).rejects.toMatchObject({
      name: 'AbortError',
    })
  })

  it('many requests may share a signal without a warning of a leak', async () => {
    const warnings: Error[] = []
    const note = (warning: Error) => warnings.push(warning)
    process.on('warning', note)
    onTestFinished(() => void process.off('warning', note))
    const { baseUrl } = await serve((_, response) => json(response, {}))
    const client = connect(baseUrl)
    const { signal } = new AbortController()
    const outcomes = await Promise.all(Array.from({ length: 40 }, () => client.send(REQUEST, signal)))
    expect(outcomes.every(({ kind }) => kind === 'answer')).toBe(true)
    expect(warnings).toEqual([])
  })

  it('a request ends as a transport failure when its client is closed', async () => {
    const { baseUrl } = await serve(() => void client.close())
    const client = connect(baseUrl)
    expect(await client.send(REQUEST, new AbortController().signal)).toMatchObject({
      kind: 'retry',
      cause: 'transport',
    })
  })
})
