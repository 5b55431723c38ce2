import { readFile } from 'node:fs/promises'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { createCachedReading } from '../base/cached-reading.ts'
import type { Clock } from '../base/clock.ts'
import { StopError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import { jsonLine } from '../base/safe-text.ts'
import { createAllowance, createGate } from './access.ts'
import type { Metrics } from './metrics.ts'
import { type Nudge, readNudge } from './nudge.ts'

export interface PageAnswer {
  /** 503: the database is not available, and the page says so. */
  status: 200 | 503
  html: string
}

export interface Answers {
  /** Undefined: there is no `/nudge`. */
  nudgeSecret?: string | undefined
  log: Log
  clock: Clock
  /** Undefined: there is no `/metrics`. */
  metrics?: ServedMetrics | undefined
  /** Undefined while the process makes progress, else what is stuck, for the operator. */
  stuck?(): string | undefined
  /** Undefined while the warehouse follows the API, else the reason for the operator. */
  ready(): string | undefined
  /** What `parley status --json` prints, or a promise of that. */
  status(): unknown
  page(): Promise<PageAnswer>
  /** The report for people; undefined: there is no `/report`. */
  report?: ServedReport | undefined
  /** Called for every accepted webhook. Must return at once and do its work later. */
  nudge?(nudge: Nudge): void
}

export interface ServedReport {
  html(): Promise<string>
  /** The Content-Security-Policy of the report. */
  policy: string
}

type ServedMetrics = Pick<Metrics, 'text' | 'contentType' | 'recordNudge' | 'recordRefusedNudge'>
type ReadHandler = (reply: FastifyReply) => Promise<FastifyReply>

const NUDGE_PATH = /^\/nudge(\/[^/]*)?$/
const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json(?:;|$)/

/** Error messages for a webhook's body, by HTTP status. */
const BAD_BODIES: Readonly<Record<number, string>> = {
  400: 'Expected a body of valid JSON',
  413: 'Expected a body of at most 64 KiB',
  415: 'Expected a body of the content type application/json',
}

/** Whether a path needs no token: probes of other programs, and webhooks, which have a separate secret. */
export function isOpenPath(url: string): boolean {
  const path = pathOf(url)
  return path === '/livez' || path === '/readyz' || NUDGE_PATH.test(path)
}

/** Whether a path has content. Such a path needs the token also where the server listens on a socket. */
export const isContentPath = (url: string): boolean => pathOf(url) === '/report'

const pathOf = (url: string): string => url.replace(/\?.*$/s, '')

/** Neither the log nor a response repeats the path of a request: it may contain the secret. */
export function addRoutes(app: FastifyInstance, answers: Answers): void {
  const reads = readHandlers(answers)
  // Only the nudge routes read a body.
  app.removeAllContentTypeParsers()
  app.setErrorHandler((error, request, reply) => {
    // A StopError: the database is not available. The daemon may know why, for example that its file was moved.
    if (error instanceof StopError) return refuse(reply, 503, answers.ready() ?? error.message)
    answers.log.error('The status server failed to answer a request', {
      route: request.routeOptions.url,
      error,
    })
    return refuse(reply, 500, 'Internal error; see the log of the daemon')
  })
  for (const [path, read] of Object.entries(reads)) app.get(path, (_, reply) => read(reply))
  const { nudgeSecret } = answers
  if (nudgeSecret !== undefined) app.register(async scope => addNudgeRoutes(scope, answers, nudgeSecret))
  app.setNotFoundHandler((request, reply) => {
    const path = pathOf(request.url)
    const isNudge = nudgeSecret !== undefined && NUDGE_PATH.test(path)
    const allow = isNudge ? 'POST' : Object.hasOwn(reads, path) ? 'GET, HEAD' : undefined
    if (allow === undefined) return refuse(reply, 404, 'Unknown path')
    return refuse(reply.header('allow', allow), 405, `Expected ${allow}`)
  })
}

function readHandlers({
  stuck,
  ready,
  metrics,
  clock,
  report,
  ...answers
}: Answers): Readonly<Record<string, ReadHandler>> {
  // Many requests at once must not make the same text many times.
  const page = createCachedReading(() => answers.page(), clock)
  const status = createCachedReading(async () => jsonLine(await answers.status()), clock)
  const metricsText = createCachedReading(async () => metrics?.text(), clock)
  const probe = async (reply: FastifyReply, reason: string | undefined) =>
    reply
      .code(reason === undefined ? 200 : 503)
      .type('text/plain; charset=utf-8')
      .send(`${reason ?? 'ok'}\n`)
  return {
    '/': async reply => {
      const { status: code, html } = await page('')
      return reply.code(code).type('text/html; charset=utf-8').send(html)
    },
    '/style.css': async reply => reply.type('text/css; charset=utf-8').send(await pageFile('style.css')),
    '/live.js': async reply => reply.type('text/javascript; charset=utf-8').send(await pageFile('live.js')),
    '/livez': async reply => probe(reply, stuck?.()),
    '/readyz': async reply => probe(reply, ready()),
    ...(metrics && {
      '/metrics': async reply => reply.type(metrics.contentType).send(await metricsText('')),
    }),
    ...(report && {
      '/report': async reply => {
        const made = await report.html()
        return reply
          .header('content-security-policy', report.policy)
          .type('text/html; charset=utf-8')
          .send(made)
      },
    }),
    '/status': async reply => reply.type('application/json; charset=utf-8').send(await status('')),
  }
}

const pageFile = (name: string) => readFile(new URL(`./page/${name}`, import.meta.url))

/**
 * Needs a separate Fastify scope: its hook, body parser and error handler apply to every route of the scope. The secret
 * is checked before the body is read.
 */
function addNudgeRoutes(scope: FastifyInstance, answers: Answers, secret: string): void {
  const { clock, metrics } = answers
  const verdictOn = createGate(secret, clock)
  const mayCall = createAllowance(clock)
  const badBody = (reply: FastifyReply, status: number) => {
    metrics?.recordRefusedNudge('bad-body')
    return refuse(reply, status, BAD_BODIES[status] ?? 'Bad request')
  }
  scope.addHook('onRequest', async (request, reply) => {
    const given = verdictOn(givenSecret(request))
    const verdict = given !== 'admitted' || mayCall() ? given : 'too-many'
    if (verdict === 'admitted') return undefined
    metrics?.recordRefusedNudge(verdict)
    return verdict === 'too-many'
      ? refuse(reply, 429, 'Too many requests')
      : refuse(reply, 403, 'The secret is missing or wrong')
  })
  scope.addContentTypeParser(
    JSON_TYPE,
    { parseAs: 'string' },
    async (_request: FastifyRequest, body: string) => parseBody(body),
  )
  scope.setErrorHandler((error: FastifyError, _request, reply) => {
    const { statusCode = 500 } = error
    if (!Object.hasOwn(BAD_BODIES, statusCode)) throw error
    return badBody(reply, statusCode)
  })
  for (const path of ['/nudge', '/nudge/:secret']) {
    scope.post(path, async (request, reply) => {
      if (request.body === undefined) return badBody(reply, 400)
      const nudge = readNudge(request.body)
      answers.nudge?.(nudge)
      metrics?.recordNudge(nudge.kind)
      return reply.code(202).send({})
    })
  }
}

function givenSecret({ headers, params }: FastifyRequest): string | undefined {
  const header = headers['x-nudge-secret']
  if (typeof header === 'string') return header
  return (params as { secret?: string }).secret
}

/**
 * @returns undefined when the body is not JSON. The error of `JSON.parse` is dropped, since it would quote the body.
 */
function parseBody(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}

/**
 * Closes the connection when the request may have a body, so that the client stops sending it.
 * @param more further fields of the answer
 */
export function refuse(
  reply: FastifyReply,
  status: number,
  error: string | object,
  more: object = {},
): FastifyReply {
  const { method } = reply.request
  if (method !== 'GET' && method !== 'HEAD') reply.header('connection', 'close')
  return reply
    .code(status)
    .type('application/json; charset=utf-8')
    .send({ error, ...more })
}
