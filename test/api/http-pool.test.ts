import { expect, onTestFinished, test } from 'vitest'
import { errorCode } from '../../src/base/errors.ts'
import { createHttpPool, type HttpPoolOptions } from '../../src/base/http-pool.ts'
import { ProxyError, type ProxyRules } from '../../src/base/proxies.ts'
import {
  createCertificate,
  type ProxyBehaviour,
  serveHttps,
  serveTcp,
  startConnectProxy,
} from '../support/connect-proxy.ts'
import { until } from '../support/until.ts'
import { serve } from './server.ts'

const HOST = 'api.example.test'

function through(url: string): ProxyRules {
  const proxy = { url, source: 'HTTPS_PROXY' }
  return { http: proxy, https: proxy }
}

function pool(origin: string, options: Partial<HttpPoolOptions> & Pick<HttpPoolOptions, 'proxies'>) {
  const made = createHttpPool(origin, { connectMs: 10_000, ...options })
  onTestFinished(() => made.destroy())
  return {
    destroy: () => made.destroy(),
    async get(signal = new AbortController().signal): Promise<string> {
      const { statusCode, body } = await made.request({ method: 'GET', path: '/v1/teams', signal })
      return `${statusCode} ${await body.text()}`
    },
  }
}

const failure = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    error => error,
  )

test('requests to a server with and without TLS go through the proxy, which alone gets its login', async () => {
  const certificate = createCertificate([HOST])
  const { baseUrl, received } = await serve((request, response) => response.end(request.headers.host))
  const seen: unknown[] = []
  const secure = await serveHttps(certificate, (request, response) => {
    seen.push(request.headers)
    response.end(request.headers.host)
  })
  const cases = [
    { origin: `http://${HOST}`, to: Number(new URL(baseUrl).port), target: `${HOST}:80` },
    { origin: `https://${HOST}`, to: secure, target: `${HOST}:443` },
    { origin: `https://${HOST}:8443`, to: secure, target: `${HOST}:8443` },
  ]
  for (const { origin, to, target } of cases) {
    const proxy = await startConnectProxy({ to, login: 'me:p@ss/word' })
    const url = proxy.url.replace('//', '//me:p%40ss%2Fword@')
    const { get } = pool(origin, { proxies: through(url), ca: certificate.cert, connections: 1 })
    expect([await get(), await get()]).toEqual(Array(2).fill(`200 ${new URL(origin).host}`))
    expect(proxy.asked).toEqual([{ target, login: 'me:p@ss/word' }])
  }
  expect(JSON.stringify([seen, received.map(({ headers }) => headers)])).not.toMatch(/proxy-|Basic/i)
})

test('a proxy may speak TLS itself', async () => {
  const certificate = createCertificate([HOST, 'localhost'])
  const to = await serveHttps(certificate, (_request, response) => response.end('fine'))
  const { url } = await startConnectProxy({ to, certificate })
  const { get } = pool(`https://${HOST}`, { proxies: through(url), ca: certificate.cert })
  expect(await get()).toBe('200 fine')
})

const FAULTS: [does: string, behaviour: Omit<ProxyBehaviour, 'to'>, user: string, says: string][] = [
  ['asks for a login', { login: 'me:right' }, '', 'asks for a user name and password (HTTP 407)'],
  ['refuses the login', { login: 'me:right' }, 'me:hush@', 'refuses the user name and password (HTTP 407)'],
  ['refuses the host', { answers: 403 }, 'me:hush@', 'refuses to connect (HTTP 403)'],
  ['does not find the host', { answers: 502 }, '', 'cannot connect (HTTP 502)'],
  ['never answers', { answers: 'nothing' }, 'me:hush@', 'did not connect within 0.05 s'],
]
test.each(FAULTS)(
  'a proxy that %s is named as the reason, without its login',
  async (_, behaviour, user, says) => {
    const { url } = await startConnectProxy({ to: 1, ...behaviour })
    const proxies = through(url.replace('//', `//${user}`))
    const error = await failure(pool(`https://${HOST}`, { proxies, connectMs: 50 }).get())
    expect(error).toBeInstanceOf(ProxyError)
    expect(error).toMatchObject({ message: `the proxy ${url} (HTTPS_PROXY) ${says}` })
  },
)

test.each([
  ['closes the connection', 'ECONNRESET', () => serveTcp(socket => socket.destroy())],
  ['is no proxy', 'HPE_INVALID_CONSTANT', () => serveTcp(socket => socket.end('SSH-2.0-OpenSSH_9.2\r\n'))],
])('a proxy that %s cannot be reached', async (_, code, start) => {
  const url = `http://127.0.0.1:${await start()}`
  const error = await failure(pool(`https://${HOST}`, { proxies: through(url) }).get())
  expect(error).toMatchObject({ message: `the proxy ${url} (HTTPS_PROXY) cannot be reached (${code})` })
})

test('a proxy that answers CONNECT with 200 and a web page is named as what connects to no TLS server', async () => {
  const page = 'HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n<html>Please log in</html>'
  const url = `http://127.0.0.1:${await serveTcp(socket => socket.once('data', () => socket.write(page)))}`
  const error = await failure(pool(`https://${HOST}`, { proxies: through(url) }).get())
  expect(error).toBeInstanceOf(ProxyError)
  expect(error).toMatchObject({
    message: expect.stringMatching(
      `^what the proxy ${url} \\(HTTPS_PROXY\\) connects to does not speak TLS \\(ERR_SSL`,
    ),
  })
})

test('the limits of connecting and of the headers hold for the server behind a proxy', async () => {
  const certificate = createCertificate([HOST])
  const silent = await serveTcp(() => undefined)
  const late = await startConnectProxy({ to: silent })
  const slow = pool(`https://${HOST}`, { proxies: through(late.url), connectMs: 50 })
  const code = errorCode(await failure(slow.get()))
  expect(code).toBe('ETIMEDOUT')
  const to = await serveHttps(certificate, () => undefined)
  const proxies = through((await startConnectProxy({ to })).url)
  const mute = pool(`https://${HOST}`, { proxies, ca: certificate.cert, headersTimeout: 50 })
  expect(errorCode(await failure(mute.get()))).toBe('UND_ERR_HEADERS_TIMEOUT')
})

test('requests end at once when the pool is destroyed while a proxy is still connecting', async () => {
  const { url, asked } = await startConnectProxy({ to: 1, answers: 'nothing' })
  const { get, destroy } = pool(`https://${HOST}`, { proxies: through(url) })
  const ended = failure(get())
  await until(
    () => asked.length,
    count => count === 1,
  )
  await destroy()
  expect(errorCode(await ended)).toBe('UND_ERR_DESTROYED')
})

test('an abort ends a request that a server behind a proxy does not answer', async () => {
  const certificate = createCertificate([HOST])
  const stop = new AbortController()
  const to = await serveHttps(certificate, () => stop.abort())
  const proxies = through((await startConnectProxy({ to })).url)
  const { get } = pool(`https://${HOST}`, { proxies, ca: certificate.cert })
  expect(await failure(get(stop.signal))).toMatchObject({ name: 'AbortError' })
})

test('a certificate that is not trusted is refused, whatever NODE_TLS_REJECT_UNAUTHORIZED says', async () => {
  const before = process.env['NODE_TLS_REJECT_UNAUTHORIZED']
  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
  onTestFinished(() => {
    if (before === undefined) delete process.env['NODE_TLS_REJECT_UNAUTHORIZED']
    else process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = before
  })
  const certificate = createCertificate([HOST, 'localhost'])
  let requests = 0
  const to = await serveHttps(certificate, (_request, response) => {
    requests += 1
    response.end()
  })
  const { url } = await startConnectProxy({ to })
  const secureProxy = await startConnectProxy({ to, certificate })
  const direct = await failure(pool(`https://localhost:${to}`, { proxies: {} }).get())
  const behind = await failure(pool(`https://${HOST}`, { proxies: through(url) }).get())
  const proxied = await failure(pool(`https://${HOST}`, { proxies: through(secureProxy.url) }).get())
  expect([errorCode(direct), errorCode(behind), requests]).toEqual([
    'DEPTH_ZERO_SELF_SIGNED_CERT',
    'DEPTH_ZERO_SELF_SIGNED_CERT',
    0,
  ])
  expect(proxied).toMatchObject({ message: expect.stringContaining('(DEPTH_ZERO_SELF_SIGNED_CERT)') })
})
