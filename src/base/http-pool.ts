import { request as httpRequest, type IncomingMessage } from 'node:http'
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { type buildConnector, Pool } from 'undici'
import { systemClock } from './clock.ts'
import { failureCode, meansNoTls, tlsReason } from './connection-faults.ts'
import { hostOf } from './loopback.ts'
import { type HttpProxy, ProxyError, type ProxyRules, proxyFor, shownProxy } from './proxies.ts'

/**
 * Connections to one server, direct or through a proxy. Certificates are always checked: the pool sets
 * `rejectUnauthorized`, which wins over `NODE_TLS_REJECT_UNAUTHORIZED`. `request` throws a ProxyError when the proxy does
 * not connect to the server.
 */
export type HttpPool = Pick<Pool, 'request' | 'destroy'>

export interface HttpPoolOptions extends Omit<Pool.Options, 'connect'> {
  proxies: ProxyRules
  /** How long connecting may take in ms, including TLS and the answer of a proxy. */
  connectMs: number
  /** A certificate to trust, as PEM. Default: those of Node and of `NODE_EXTRA_CA_CERTS` */
  ca?: string
}

export function createHttpPool(
  origin: string,
  { proxies, connectMs, ca, ...options }: HttpPoolOptions,
): HttpPool {
  const proxy = proxyFor(proxies, origin)
  const trust = { rejectUnauthorized: true, ...(ca !== undefined && { ca }) }
  const connect = proxy ? tunnelThrough(proxy, connectMs, trust) : { ...trust, timeout: connectMs }
  return new Pool(origin, { ...options, connect })
}

interface Trust {
  rejectUnauthorized: boolean
  ca?: string
}

/**
 * Connects through the proxy by `CONNECT`, also to servers without TLS, so that an answer of the proxy is never taken
 * for an answer of the server. The connector of undici is not used, since it waits five minutes for the answer of a
 * proxy.
 */
function tunnelThrough(proxy: HttpProxy, connectMs: number, trust: Trust): buildConnector.connector {
  return ({ hostname, protocol, port }, done) => {
    const host = hostname.replace(/^\[(.*)\]$/, '$1')
    const target = `${isIP(host) === 6 ? `[${host}]` : host}:${port || (protocol === 'https:' ? 443 : 80)}`
    const name = `the proxy ${shownProxy(proxy)} (${proxy.source})`
    let latest: Socket = connectToProxy(proxy.url, trust)
    const over = new AbortController()
    let hasTunnel = false
    const end = (result: Socket | Error): void => {
      if (over.signal.aborted) return
      over.abort()
      if (result instanceof Error) {
        latest.destroy()
        done(result, null)
      } else done(null, result)
    }
    // The time limit follows the system clock, as for a direct connection.
    void systemClock()
      .sleep(connectMs, over.signal)
      .then(() => {
        const late = `${name} did not connect within ${connectMs / 1000} s`
        end(
          hasTunnel
            ? Object.assign(new Error('TLS took too long'), { code: 'ETIMEDOUT' })
            : new ProxyError(late),
        )
      })
    const asking = httpRequest({
      method: 'CONNECT',
      path: target,
      headers: { host: target, 'user-agent': 'parley', ...proxyLogin(proxy.url) },
      createConnection: () => latest,
    })
    asking.on('error', error => end(new ProxyError(`${name} cannot be reached${causeOf(error)}`)))
    asking.once('connect', (answer: IncomingMessage, socket: Socket, head: Buffer) => {
      const refusal = refusalText(answer.statusCode ?? 0, proxy.url)
      if (refusal !== undefined) return end(new ProxyError(`${name} ${refusal}`))
      hasTunnel = true
      if (head.length > 0) socket.unshift(head)
      socket.setNoDelay(true).setKeepAlive(true, 60_000).on('error', end)
      if (protocol !== 'https:') return end(socket)
      const servername = isIP(host) === 0 ? { servername: host } : {}
      const secure = connectTls({ ...trust, ...servername, socket, host, ALPNProtocols: ['http/1.1'] })
      latest = secure
      secure.once('secureConnect', () => end(secure))
      secure.on('error', error => {
        const code = failureCode(error)
        // A login page of the proxy answers like this, as does a server without TLS.
        end(
          meansNoTls(code) ? new ProxyError(`what ${name} connects to does not speak TLS (${code})`) : error,
        )
      })
    })
    asking.end()
  }
}

function causeOf(error: Error): string {
  const code = failureCode(error)
  const reason = tlsReason(code)
  if (reason !== undefined) return `: ${reason}`
  return ` (${code === 'unknown' ? 'its answer is not HTTP' : code})`
}

function connectToProxy(url: string, trust: Trust): Socket {
  const { protocol, port } = new URL(url)
  const host = hostOf(url)
  if (protocol === 'http:') return connectTcp({ host, port: Number(port || 80) })
  const servername = isIP(host) === 0 ? { servername: host } : {}
  return connectTls({ ...trust, ...servername, host, port: Number(port || 443) })
}

function proxyLogin(url: string): Record<string, string> {
  const { username, password } = new URL(url)
  if (username === '' && password === '') return {}
  const login = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { 'proxy-authorization': `Basic ${Buffer.from(login).toString('base64')}` }
}

/** What the proxy did instead of connecting, as a phrase; undefined when the proxy connected. */
function refusalText(status: number, url: string): string | undefined {
  if (status >= 200 && status < 300) return undefined
  if (status === 407)
    return new URL(url).username === ''
      ? 'asks for a user name and password (HTTP 407)'
      : 'refuses the user name and password (HTTP 407)'
  return `${status >= 500 ? 'cannot' : 'refuses to'} connect (HTTP ${status})`
}
