import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Clock } from '../clock.ts'
import { StopError } from '../errors.ts'
import { jsonLine } from '../harmless.ts'
import type { Log } from '../log.ts'
import type { Metrics } from './metrics.ts'
import { type Nudge, readNudge } from './nudge.ts'
import { createNudgeGate } from './nudge-gate.ts'

/** What the status server answers, and to whom. */
export interface Answers {
  /** Without it there is no `/nudge`. */
  nudgeSecret: string | undefined
  log: Log
  clock: Clock
  metrics: Pick<Metrics, 'text' | 'contentType' | 'nudged' | 'refused'>
  /** True while the process gets on with its work, else why not, in words for an operator. */
  live(): true | string
  /** Undefined while the warehouse is true to the API, else why not. */
  ready(): string | undefined
  /** What `parley status --json` prints, or a promise of it. */
  status(): unknown
  /** Called for every webhook that was taken. It is to return at once, and do later what follows. */
  nudge(nudge: Nudge): void
}

type ReadPath = '/livez' | '/readyz' | '/metrics' | '/status'
type Read = (reply: FastifyReply) => Promise<FastifyReply>

const NUDGE_PATH = /^\/nudge(\/[^/]*)?$/
const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json(?:;|$)/

/** What is wrong with a webhook, by the status that says so. */
const BAD_BODIES: Readonly<Record<number, string>> = {
  400: 'Expected a body of valid JSON',
  413: 'Expected a body of at most 64 KiB',
  415: 'Expected a body of the content type application/json',
}

/** The log and the answers never repeat a path, since a path may hold the secret. */
export function addRoutes(app: FastifyInstance, answers: Answers): void {
  const reads = readsOf(answers)
  // Bodies are read where nudges are taken and nowhere else.
  app.removeAllContentTypeParsers()
  app.setErrorHandler((error, request, reply) => {
    // Says what keeps the daemon from its database, as /readyz does, and is in the log already.
    if (error instanceof StopError) return refuse(reply, 503, error.message)
    answers.log.error('The status server could not answer', { route: request.routeOptions.url, error })
    return refuse(reply, 500, 'The daemon could not answer; its log says why')
  })
  for (const [path, read] of Object.entries(reads)) app.get(path, (_, reply) => read(reply))
  const { nudgeSecret } = answers
  if (nudgeSecret !== undefined) app.register(async scope => addNudge(scope, answers, nudgeSecret))
  app.setNotFoundHandler((request, reply) => {
    const path = request.url.replace(/\?.*$/s, '')
    const isNudge = nudgeSecret !== undefined && NUDGE_PATH.test(path)
    const allow = isNudge ? 'POST' : Object.hasOwn(reads, path) ? 'GET, HEAD' : undefined
    if (allow === undefined) return refuse(reply, 404, 'There is nothing at this path')
    return refuse(reply.header('allow', allow), 405, `Expected ${allow}`)
  })
}

function readsOf({ live, ready, status, metrics }: Answers): Readonly<Record<ReadPath, Read>> {
  const probe = async (reply: FastifyReply, reason: string | undefined) =>
    reply
      .code(reason === undefined ? 200 : 503)
      .type('text/plain; charset=utf-8')
      .send(`${reason ?? 'ok'}\n`)
  return {
    '/livez': async reply => {
      const state = live()
      return probe(reply, state === true ? undefined : state)
    },
    '/readyz': async reply => probe(reply, ready()),
    '/metrics': async reply => reply.type(metrics.contentType).send(await metrics.text()),
    '/status': async reply => reply.type('application/json; charset=utf-8').send(jsonLine(await status())),
  }
}

/** In a scope of its own. The secret is looked at before the body is. */
function addNudge(scope: FastifyInstance, answers: Answers, secret: string): void {
  const { clock, metrics } = answers
  const gate = createNudgeGate(secret, clock)
  const badBody = (reply: FastifyReply, status: number) => {
    metrics.refused('bad-body')
    return refuse(reply, status, BAD_BODIES[status] ?? 'Bad request')
  }
  scope.addHook('onRequest', async (request, reply) => {
    const verdict = gate.admit(givenSecret(request))
    if (verdict === 'admitted') return undefined
    metrics.refused(verdict)
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
      answers.nudge(nudge)
      metrics.nudged(nudge.kind)
      return reply.code(202).send({})
    })
  }
}

function givenSecret({ headers, params }: FastifyRequest): string | undefined {
  const header = headers['x-nudge-secret']
  if (typeof header === 'string') return header
  return (params as { secret?: string }).secret
}

/** Undefined, which no JSON gives, when it is none; the parser's own error would quote the body. */
function parseBody(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}

/** Whoever sends a body and is refused may not go on sending it: the connection ends. */
export function refuse(reply: FastifyReply, status: number, error: string): FastifyReply {
  const { method } = reply.request
  if (method !== 'GET' && method !== 'HEAD') reply.header('connection', 'close')
  return reply.code(status).type('application/json; charset=utf-8').send({ error })
}
