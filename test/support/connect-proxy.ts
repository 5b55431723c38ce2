import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer as createHttpServer, type RequestListener } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import {
  type AddressInfo,
  connect,
  createServer as createTcpServer,
  isIP,
  type Server,
  type Socket,
} from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import { onTestFinished } from 'vitest'

/**
 * A proxy that reaches hosts of any name at ports of this machine, and servers that answer behind it, until the test
 * ends. Tests that run at the same time hand in the end of their context.
 */

type AtEnd = (end: () => void) => void

export interface ConnectProxy {
  url: string
  /** What it was asked for, each with the login that was sent. */
  asked: { target: string; login: string | undefined }[]
}

export interface ProxyBehaviour {
  /** The port of this machine at which every host is, or the one that is asked for, such as `bucket.test:443`. */
  to: number | ((target: string) => number)
  /** Accepts only this `NAME:PASSWORD`. */
  login?: string
  /** Answers with this status, or not at all. */
  answers?: number | 'nothing'
  /** Speaks TLS itself. */
  certificate?: Certificate
}

export async function startConnectProxy(
  behaviour: ProxyBehaviour,
  atEnd: AtEnd = onTestFinished,
): Promise<ConnectProxy> {
  const { to, login, answers, certificate } = behaviour
  const asked: ConnectProxy['asked'] = []
  const server = certificate ? createHttpsServer(certificate) : createHttpServer()
  server.on('connect', ({ url = '', headers }, client: Socket) => {
    const [, encoded] = /^Basic (.+)$/.exec(headers['proxy-authorization'] ?? '') ?? []
    const sent = encoded === undefined ? undefined : Buffer.from(encoded, 'base64').toString()
    asked.push({ target: url, login: sent })
    client.on('error', () => undefined)
    const refusal = login !== undefined && sent !== login ? 407 : answers
    if (refusal === 'nothing') return
    if (refusal !== undefined) return void client.end(`HTTP/1.1 ${refusal} No\r\n\r\n`)
    const onward = connect(typeof to === 'number' ? to : to(url), '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n')
      client.pipe(onward).pipe(client)
    })
    onward.on('error', () => client.destroy()).on('close', () => client.destroy())
    client.on('close', () => onward.destroy())
  })
  const port = await listen(server, atEnd)
  return { url: `${certificate ? 'https://localhost' : 'http://127.0.0.1'}:${port}`, asked }
}

/** The port of a server that answers over TLS. */
export const serveHttps = (certificate: Certificate, listener: RequestListener): Promise<number> =>
  listen(createHttpsServer(certificate, listener))

/** The port of a server that speaks TLS and passes everything on to another port of this machine. */
export const serveTlsTo = (
  certificate: Certificate,
  port: number,
  atEnd: AtEnd = onTestFinished,
): Promise<number> =>
  listen(
    createTlsServer(certificate, client => {
      const onward = connect(port, '127.0.0.1')
      client.on('error', () => onward.destroy()).on('close', () => onward.destroy())
      onward.on('error', () => client.destroy())
      client.pipe(onward).pipe(client)
    }),
    atEnd,
  )

/** The port of a server that does this with each connection. */
export const serveTcp = (use: (socket: Socket) => void): Promise<number> =>
  listen(createTcpServer(socket => use(socket.on('error', () => undefined))))

async function listen(server: Server, atEnd: AtEnd = onTestFinished): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  atEnd(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

export interface Certificate {
  cert: string
  key: string
  /** Where the certificate is. */
  file: string
}

/** A certificate for these host names and addresses that it signed itself. */
export function createCertificate(hosts: readonly string[], atEnd: AtEnd = onTestFinished): Certificate {
  const folder = mkdtempSync(join(tmpdir(), 'parley-certificate-'))
  atEnd(() => rmSync(folder, { recursive: true, force: true }))
  const [file, keyFile] = [join(folder, 'certificate.pem'), join(folder, 'key.pem')]
  const names = hosts.map(host => `${isIP(host) === 0 ? 'DNS' : 'IP'}:${host}`).join(',')
  const { status, stderr } = spawnSync(
    'openssl',
    [
      ...[
        'req',
        '-x509',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:prime256v1',
        '-nodes',
        '-days',
        '2',
      ],
      ...['-subj', '/CN=parley', '-addext', `subjectAltName=${names}`, '-keyout', keyFile, '-out', file],
    ],
    { encoding: 'utf8' },
  )
  if (status !== 0) throw new Error(`openssl ended with ${status}: ${stderr}`)
  return { cert: readFileSync(file, 'utf8'), key: readFileSync(keyFile, 'utf8'), file }
}
