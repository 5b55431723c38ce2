import { chmod } from 'node:fs/promises'
import type { FastifyInstance } from 'fastify'
import type { Listen } from '../config-kinds.ts'
import { isLoopback, namesLoopback } from './loopback.ts'
import { type Answers, addRoutes, refuse } from './routes.ts'
import { clearSocketPath, codeOf } from './socket-file.ts'

/** Tells over HTTP how the daemon is, and takes the product's webhooks as nudges: the only user of Fastify. */

export interface StatusServerDeps extends Answers {
  /** What `http.listen` says. */
  listen: Listen
  /** How long a request may take to arrive. Default 10 s. */
  requestMs?: number
}

export interface StatusServer {
  /** As `http.listen` would say it, with the port that was had; undefined when nothing listens. */
  address: string | undefined
  /** Ends every connection. */
  close(): Promise<void>
}

const MOST_BODY_BYTES = 64 * 1024
const MOST_CONNECTIONS = 100
/** A secret has at most 200 characters, each of which may be percent-encoded. */
const MOST_SECRET_LENGTH = 600
const SOCKET_MODE = 0o660

const NOT_LISTENING: StatusServer = { address: undefined, close: async () => undefined }

/** What can be done, by the system's code. */
const ADVICE: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another process listens there: end it, or choose another place with http.listen',
  EADDRNOTAVAIL: 'this machine has no such address: choose one of its own with http.listen',
  ENOTFOUND: 'the name leads to no address: correct http.listen',
  EAI_AGAIN: 'the name leads to no address at the moment: give the address itself in http.listen',
  EACCES: 'this user may not listen there: choose a port from 1024 up, or a folder that it may write to',
  EPERM: 'this user may not listen there: choose a port from 1024 up, or a folder that it may write to',
  ENOENT: "the socket's folder is not there: make it, or choose another with http.listen",
  ENOTDIR: "the socket's folder is a file: choose another with http.listen",
  ENAMETOOLONG: 'the path of a socket may have 107 bytes at most: choose a shorter one with http.listen',
  EEXIST: 'a file that is no socket is there: move it away, or choose another path with http.listen',
}

type Place = Exclude<Listen, { at: 'off' }>

/**
 * Serves until it is closed. Where nobody can listen the log says so, and what is returned has no address.
 * Answers to `GET`: `/livez`, `/readyz`, `/metrics`, `/status`; to `POST`: `/nudge` and `/nudge/SECRET`.
 */
export async function startStatusServer(deps: StatusServerDeps): Promise<StatusServer> {
  const { listen, log } = deps
  if (listen.at === 'off') return NOT_LISTENING
  const app = await createApp(deps)
  const code = await startListening(app, listen)
  if (code !== undefined) {
    await app.close()
    log.warn('The status server does not run; the sync goes on without it', {
      setting: 'http.listen',
      address: asked(listen),
      code,
      reason: ADVICE[code] ?? 'choose another place with http.listen',
    })
    return NOT_LISTENING
  }
  const address = had(app, listen)
  log.info('The status server listens', { address })
  if (listen.at === 'port' && !listensOnLoopback(app))
    log.warn('Other machines can reach the status server, which asks nobody who they are', {
      setting: 'http.listen',
      address,
    })
  return { address, close: () => app.close() }
}

/** @returns the system's code for why it cannot */
async function startListening(app: FastifyInstance, listen: Place): Promise<string | undefined> {
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

const asked = (listen: Place): string =>
  listen.at === 'socket' ? `unix:${listen.path}` : hostAndPort(listen.host, listen.port)

function had(app: FastifyInstance, listen: Place): string {
  const bound = app.server.address()
  return bound === null || typeof bound === 'string' ? asked(listen) : hostAndPort(bound.address, bound.port)
}

const hostAndPort = (host: string, port: number): string =>
  host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`

function listensOnLoopback({ server }: FastifyInstance): boolean {
  const bound = server.address()
  return bound !== null && typeof bound !== 'string' && isLoopback(bound.address)
}

async function createApp(deps: StatusServerDeps): Promise<FastifyInstance> {
  const { requestMs = 10_000 } = deps
  const { default: fastify } = await import('fastify')
  const app: FastifyInstance = fastify({
    // It would log paths.
    logger: false,
    bodyLimit: MOST_BODY_BYTES,
    requestTimeout: requestMs,
    keepAliveTimeout: requestMs,
    http: { headersTimeout: requestMs, connectionsCheckingInterval: Math.ceil(requestMs / 4) },
    forceCloseConnections: true,
    routerOptions: { maxParamLength: MOST_SECRET_LENGTH },
    // Its own answers to what is no path would repeat it.
    frameworkErrors: (_error, _request, reply) => {
      refuse(reply, 400, 'This is no path')
    },
  })
  app.server.maxConnections = MOST_CONNECTIONS
  app.addHook('onRequest', async (request, reply) => {
    reply.headers({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' })
    if (!listensOnLoopback(app) || namesLoopback(request.headers.host)) return undefined
    return refuse(reply, 403, 'Expected localhost, 127.0.0.1 or [::1] as the host')
  })
  addRoutes(app, deps)
  return app
}
