import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { createTokenCheck } from '../access/access-token.ts'
import { createAllowance } from '../access/token-bucket.ts'
import {
  answerOf,
  type CatalogueAnswer,
  errorAnswer,
  isCataloguePath,
  isTokenRequest,
  NO_TOKENS,
  type ServedCatalogue,
} from './answers.ts'

/** Answers every request below `/iceberg`, before any other check of a token. */

export interface CatalogueAccess {
  catalogue: ServedCatalogue
  /** The value of `http.catalogue_token`. */
  token: string
}

interface CatalogueDeps {
  clock: Clock
  log: Log
}

export function addCatalogue(
  app: FastifyInstance,
  { catalogue, token }: CatalogueAccess,
  { clock, log }: CatalogueDeps,
): void {
  const hasToken = createTokenCheck(token)
  const mayGuess = createAllowance(clock)
  const answer = async ({ headers, method, url }: FastifyRequest): Promise<CatalogueAnswer> => {
    if (isTokenRequest({ method, url })) return NO_TOKENS
    if (!hasToken(headers.authorization)) return refusal(mayGuess())
    try {
      return await answerOf(catalogue, { method, url, ifNoneMatch: headers['if-none-match'] })
    } catch (error) {
      log.error('The status server failed to answer a request', { route: '/iceberg', error })
      return errorAnswer(500, 'InternalServerError', 'Internal error; see the log of the daemon')
    }
  }
  // A hook also answers paths and methods that have no route, and reads no body.
  app.addHook('onRequest', async (request, reply) =>
    isCataloguePath(request.url) ? send(reply, await answer(request)) : undefined,
  )
}

function refusal(isAllowed: boolean): CatalogueAnswer {
  if (!isAllowed) return errorAnswer(429, 'TooManyRequestsException', 'Too many requests with a wrong token')
  return {
    ...errorAnswer(
      401,
      'NotAuthorizedException',
      'Expected the token of http.catalogue_token as a bearer token',
    ),
    headers: { 'www-authenticate': 'Bearer realm="parley"' },
  }
}

function send(reply: FastifyReply, { status, headers = {}, body }: CatalogueAnswer): FastifyReply {
  const isUnreadBody = status >= 400 && reply.request.method !== 'GET' && reply.request.method !== 'HEAD'
  // The client then stops sending its body.
  if (isUnreadBody) reply.header('connection', 'close')
  reply.code(status).headers(headers)
  return body === undefined ? reply.send() : reply.type('application/json; charset=utf-8').send(body)
}
