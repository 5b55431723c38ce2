import { chmod, lstat, stat, unlink } from 'node:fs/promises'
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
} from 'node:http'
import { connect, type Socket } from 'node:net'
import { dirname } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { errorCode } from '../base/errors.ts'
import { isLoopback, isLoopbackHeader } from '../base/loopback.ts'
import { type Listen, listenText } from '../config/kinds.ts'
import { ASK_FOR_TOKEN, createGate, needsToken, tokenIn } from './access.ts'
import { addCatalogue, type CatalogueAccess, isCataloguePath } from './catalogue.ts'
import { type Answers, addRoutes, isContentPath, isOpenPath, refuse } from './routes.ts'

/** The status server: health, metrics and status over HTTP, and a route for webhooks. Only this file loads Fastify. */

export interface StatusServerDeps extends Answers {
  /** The value of `http.listen`. */
  listen: Listen
  /** The value of `http.token`. */
  token: string | undefined
  /** Undefined: there is no `/iceberg`. */
  catalogue?: CatalogueAccess | undefined
  /** How long a request may take to arrive, and an answer may wait for a client that does not read. Default 10 s. */
  requestMs?: number
}

export interface StatusServer {
  /** In the form of `http.listen`, with the actual port; undefined when the server does not listen. */
  address: string | undefined
  /** The address of the page; undefined when the server does not listen, or listens on a socket. */
  url: string | undefined
  /** Closes every connection. */
  close(): Promise<void>
}

const MAX_BODY_BYTES = 64 * 1024
const MAX_CONNECTIONS = 100
const PART_BYTES = 512
/** A secret has at most 200 characters, each of which may be percent-encoded. */
const MAX_ENCODED_SECRET_LENGTH = 600
const SOCKET_MODE = 0o660

/** Browsers load only the server's own files, store nothing, and tell other sites nothing. */
const SAFE_HEADERS = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
}

const NOT_LISTENING: StatusServer = { address: undefined, url: undefined, close: async () => undefined }

/** Reason and hint for the operator, by system error code. */
const ADVICE: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another process listens on this address: stop it, or set another address in http.listen',
  EADDRNOTAVAIL: 'this machine does not have this address: set one that it has in http.listen',
  ENOTFOUND: 'the host name does not resolve: correct http.listen',
  EAI_AGAIN: 'the host name does not resolve at the moment: set an IP address in http.listen',
  EACCES:
    'this user may not listen there, or another user owns the socket: set a port of 1024 or higher, or a path in a folder that it may write to',
  EPERM: 'this user may not listen there: set a port of 1024 or higher, or a folder that it may write to',
  ENOENT: "the socket's folder does not exist: create it, or set another path in http.listen",
  ENOTDIR: "the socket's folder is a file: set another path in http.listen",
  ENAMETOOLONG: 'the path of a socket may have 107 bytes at most: set a shorter one in http.listen',
  EEXIST: 'the path is taken by a file that is not a socket: move it, or set another path in http.listen',
}

type Listening = Exclude<Listen, { at: 'off' }>

/**
 * Serves until it is closed. When listening fails, it logs a warning and returns a server without an address. Routes:
 * `GET` `/` (the page), `/livez`, `/readyz`, `/metrics`, `/status` and `/report`; `POST` `/nudge` and `/nudge/SECRET`;
 * the catalogue of published tables below `/iceberg`.
 */
export async function startStatusServer(deps: StatusServerDeps): Promise<StatusServer> {
  const { listen, log } = deps
  if (listen.at === 'off') return NOT_LISTENING
  if (needsToken(listen) && deps.token === undefined) {
    log.warn('The status server does not run; the sync continues without it', {
      setting: 'http.token',
      address: listenText(listen),
      reason: 'other machines can reach this address: set http.token, or listen on 127.0.0.1 in http.listen',
    })
    return NOT_LISTENING
  }
  const app = await createApp(deps)
  const code = await startListening(app, listen)
  if (code !== undefined) {
    await app.close()
    log.warn('The status server does not run; the sync continues without it', {
      setting: 'http.listen',
      address: listenText(listen),
      code,
      reason: ADVICE[code] ?? 'set another address in http.listen',
    })
    return NOT_LISTENING
  }
  const address = boundAddress(app, listen)
  log.info('The status server listens', { address })
  const url = listen.at === 'port' ? `http://${address}/` : undefined
  return { address, url, close: () => app.close() }
}

/** @returns the system error code when listening fails */
async function startListening(app: FastifyInstance, listen: Listening): Promise<string | undefined> {
  await app.ready()
  try {
    if (listen.at === 'port') {
      await app.listen({ host: listen.host, port: listen.port })
      return undefined
    }
    const obstacle = await clearSocketPath(listen.path)
    if (obstacle !== undefined) return obstacle
    await app.listen({ path: listen.path })
    await chmod(listen.path, SOCKET_MODE)
    return undefined
  } catch (error) {
    return codeOf(error)
  }
}

function boundAddress(app: FastifyInstance, listen: Listening): string {
  const bound = app.server.address()
  return bound === null || typeof bound === 'string'
    ? listenText(listen)
    : listenText({ at: 'port', host: bound.address, port: bound.port })
}

function listensOnLoopback({ server }: FastifyInstance): boolean {
  const bound = server.address()
  return bound !== null && typeof bound !== 'string' && isLoopback(bound.address)
}

/**
 * A server that bounds what it holds for clients that do not read. A connection with a request before its last answer
 * is sent is closed: answers to pipelined requests would wait in memory. A connection beyond the hundredth replaces the
 * one with the oldest last request, so that no client keeps the others out.
 */
function createBoundedServer(answer: RequestListener, options: ServerOptions): Server {
  const byLastRequest = new Set<Socket>()
  const answering = new Set<Socket>()
  const server = createServer(options, (request, response) => {
    const { socket } = request
    if (answering.has(socket)) {
      socket.destroy()
      return
    }
    answering.add(socket)
    response.once('close', () => answering.delete(socket))
    if (byLastRequest.delete(socket)) byLastRequest.add(socket)
    answer(request, response)
  })
  server.on('connection', (socket: Socket) => {
    readInParts(socket)
    byLastRequest.add(socket)
    socket.once('close', () => byLastRequest.delete(socket))
    const [oldest] = byLastRequest
    if (byLastRequest.size > MAX_CONNECTIONS) oldest?.destroy()
  })
  return server
}

/**
 * Node creates all requests of a chunk at once, even if the first of them closes the connection, and a chunk of 64 KiB
 * may hold a thousand. So Node gets each chunk in small pieces, and no piece once the connection is closed.
 */
function readInParts(socket: Socket): void {
  const push = socket.push.bind(socket)
  // Without a listener, Node's HTTP parser reads past the stream.
  socket.on('data', () => undefined)
  socket.push = (chunk: Buffer | null) => {
    let canTakeMore = chunk === null && push(null)
    for (let at = 0; chunk !== null && at < chunk.length && !socket.destroyed; at += PART_BYTES)
      canTakeMore = push(chunk.subarray(at, at + PART_BYTES))
    return canTakeMore
  }
}

/**
 * Whether a page of another site sent a request other than a link to the page or the report. An answer would show that
 * parley runs here.
 */
function isFromAnotherSite({ url, headers }: IncomingMessage): boolean {
  const isLink = (url === '/' || url === '/report') && headers['sec-fetch-mode'] === 'navigate'
  return headers['sec-fetch-site'] === 'cross-site' && !isLink
}

async function createApp(deps: StatusServerDeps): Promise<FastifyInstance> {
  const { requestMs = 10_000, listen, token, catalogue } = deps
  const { default: fastify } = await import('fastify')
  const app: FastifyInstance = fastify({
    // Fastify's logger would log paths, and the path of a webhook may contain the secret.
    logger: false,
    bodyLimit: MAX_BODY_BYTES,
    serverFactory: answer =>
      createBoundedServer(answer, {
        requestTimeout: requestMs,
        headersTimeout: requestMs,
        keepAliveTimeout: requestMs,
        connectionsCheckingInterval: Math.ceil(requestMs / 4),
      }),
    forceCloseConnections: true,
    routerOptions: { maxParamLength: MAX_ENCODED_SECRET_LENGTH },
    // Fastify's own response to an invalid path would repeat the path.
    frameworkErrors: (_error, _request, reply) => {
      refuse(reply, 400, 'Invalid path')
    },
  })
  // Ends a connection whose client reads nothing for `requestMs`; each part that it reads restarts this limit. After the
  // answer, Node sets another limit.
  app.addHook('onSend', async ({ raw: { socket } }) => void socket.setTimeout(requestMs))
  app.addHook('onRequest', async (request, reply) => {
    reply.headers(SAFE_HEADERS)
    if (isFromAnotherSite(request.raw)) return refuse(reply, 403, 'Expected no request of another site')
    if (!listensOnLoopback(app) || isLoopbackHeader(request.headers.host)) return undefined
    return refuse(reply, 403, 'Expected localhost, 127.0.0.1 or [::1] as the host')
  })
  if (catalogue) addCatalogue(app, catalogue, deps)
  if (token !== undefined) {
    const verdictOn = createGate(token, deps.clock)
    // The permissions of a socket already protect the paths without content.
    const isOpen = listen.at === 'port' ? isOpenPath : (url: string) => !isContentPath(url)
    app.addHook('onRequest', async ({ url, headers }, reply) => {
      if (isOpen(url) || (catalogue && isCataloguePath(url))) return undefined
      const verdict = verdictOn(tokenIn(headers.authorization))
      if (verdict === 'admitted') return undefined
      if (verdict === 'too-many') return refuse(reply, 429, 'Too many requests without the token')
      return refuse(reply.headers(ASK_FOR_TOKEN), 401, 'Expected the token of http.token')
    })
  }
  addRoutes(app, deps)
  return app
}

/** The limit of Linux for a socket's path. Node would cut a longer path without an error. */
const MAX_PATH_BYTES = 107

/**
 * Removes a socket file that a dead process left at the path.
 * @returns the system error code when no process can listen there; undefined when the path is free
 */
async function clearSocketPath(path: string): Promise<string | undefined> {
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) return 'ENAMETOOLONG'
  // The folder is checked first, since Node reports EACCES for a missing folder.
  const folder = await stat(dirname(path)).catch(codeOf)
  if (typeof folder === 'string') return folder
  const found = await lstat(path).catch(codeOf)
  if (typeof found === 'string') return found === 'ENOENT' ? undefined : found
  if (!found.isSocket()) return 'EEXIST'
  const answer = await connectError(path)
  if (answer === undefined) return 'EADDRINUSE'
  if (answer !== 'ECONNREFUSED') return answer
  return unlink(path).then(() => undefined, codeOf)
}

/** The error code of a connection attempt; undefined when a process accepts the connection. */
function connectError(path: string): Promise<string | undefined> {
  return new Promise(resolve => {
    const socket = connect(path)
    socket.once('connect', () => {
      socket.destroy()
      resolve(undefined)
    })
    socket.once('error', error => resolve(codeOf(error)))
  })
}

/** @throws the error itself when it is not a system error */
function codeOf(error: unknown): string {
  const code = errorCode(error)
  if (code === undefined) throw error
  return code
}
