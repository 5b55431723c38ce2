import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Clock } from '../base/clock.ts'
import { StopError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import { createGate, type GateVerdict, tokenIn } from './access.ts'
import { refuse } from './routes.ts'

/**
 * A read-only Iceberg REST catalogue below `/iceberg`, by Apache Iceberg's `rest-catalog-open-api.yaml`. Its one
 * namespace has the published tables. Lists come in one answer, without page tokens, as the specification allows.
 */

/** What the catalogue shows. */
export interface ServedCatalogue {
  /** @throws StopError when the target has no publication or cannot be read in time */
  publication(): Promise<{ tables: readonly string[]; properties: Readonly<Record<string, string>> }>
  /** @returns undefined when there is no such table @throws StopError as `publication` */
  table(name: string): Promise<ServedTable | undefined>
}

interface ServedTable {
  /** A text that differs for each content of the metadata. */
  tag: string
  /** The address of the metadata file, as readers find it. */
  address: string
  /** The text of the metadata file, which is JSON. */
  metadata: string
}

export interface CatalogueAccess {
  catalogue: ServedCatalogue
  /** The value of `http.catalogue_token`. */
  token: string
}

/** Whether a path belongs to the catalogue, which checks its token itself. */
export const isCataloguePath = (url: string): boolean => /^\/iceberg(?:[/?]|$)/.test(url)

const NAMESPACE = 'parley'
const TOKENS = '/v1/oauth/tokens'
const NAMESPACES = '/v1/namespaces'
const TABLE = `${NAMESPACES}/:namespace/tables/:name`
const METRICS = `${TABLE}/metrics`

/** The requests that the answer to `config` lists. */
const ENDPOINTS = [
  'GET namespaces',
  'GET namespaces/{namespace}',
  'HEAD namespaces/{namespace}',
  'GET namespaces/{namespace}/tables',
  'GET namespaces/{namespace}/tables/{table}',
  'HEAD namespaces/{namespace}/tables/{table}',
  'POST namespaces/{namespace}/tables/{table}/metrics',
].map(endpoint => endpoint.replace(' ', ' /v1/{prefix}/'))

/** The refusal by RFC 6749, section 5.2, to a client that has an id and a secret. Clients show the description. */
const NO_TOKENS = {
  error_description:
    'The catalogue issues no tokens: configure the value of http.catalogue_token as the token of the client',
}

/** How long a client should wait after a 503. */
const RETRY_SECONDS = 5

interface CatalogueDeps {
  clock: Clock
  log: Log
}

export function addCatalogue(
  app: FastifyInstance,
  { catalogue, token }: CatalogueAccess,
  { clock, log }: CatalogueDeps,
): void {
  const verdictOn = createGate(token, clock)
  const add = async (scope: FastifyInstance) => {
    // A hook answers what must not be read: no request has a body of interest.
    scope.addHook('onRequest', async ({ method, headers, routeOptions: { url = '' } }, reply) => {
      if (url.endsWith(TOKENS)) return refuse(reply, 400, 'unsupported_grant_type', NO_TOKENS)
      const verdict = verdictOn(tokenIn(headers.authorization))
      if (verdict !== 'admitted') return refuseToken(reply, verdict)
      if (url.endsWith(METRICS)) return reply.code(204).send()
      if (method === 'GET' || method === 'HEAD') return undefined
      return refuseAs(reply, 403, 'ForbiddenException', 'The catalogue is read-only')
    })
    scope.setErrorHandler((error, _, reply) => {
      if (error instanceof StopError)
        return refuseAs(
          reply.header('retry-after', RETRY_SECONDS),
          503,
          'ServiceUnavailableException',
          error.message,
        )
      log.error('The status server failed to answer a request', { route: '/iceberg', error })
      const message = 'Internal error; see the log of the daemon'
      return refuseAs(reply, 500, 'InternalServerError', message)
    })
    scope.setNotFoundHandler((_, reply) =>
      refuseAs(reply, 404, 'NotFoundException', 'The catalogue has no such path'),
    )
    scope.post(TOKENS, async () => undefined)
    scope.post(METRICS, async () => undefined)
    addReads(scope, catalogue)
  }
  app.register(add, { prefix: '/iceberg' })
}

type CatalogueRequest = FastifyRequest<{ Params: { namespace: string; name: string } }>

function addReads(scope: FastifyInstance, catalogue: ServedCatalogue): void {
  /** Adds a path below a namespace. */
  const read = (path: string, get: () => Promise<object>) =>
    scope.get(`${NAMESPACES}/:namespace${path}`, async ({ params }: CatalogueRequest, reply) =>
      params.namespace === NAMESPACE ? answer(reply, await get()) : refuseNamespace(reply, params.namespace),
    )
  scope.get('/v1/config', async (_, reply) =>
    answer(reply, { defaults: {}, overrides: {}, endpoints: ENDPOINTS }),
  )
  scope.get(
    NAMESPACES,
    async ({ query }: FastifyRequest<{ Querystring: { parent?: string | string[] } }>, reply) => {
      const [parent = ''] = [query.parent].flat()
      if (parent === '') return answer(reply, { namespaces: [[NAMESPACE]] })
      return parent === NAMESPACE ? answer(reply, { namespaces: [] }) : refuseNamespace(reply, parent)
    },
  )
  read('', async () => {
    const { properties } = await catalogue.publication()
    return { namespace: [NAMESPACE], properties }
  })
  read('/tables', async () => {
    const { tables } = await catalogue.publication()
    return { identifiers: tables.map(name => ({ namespace: [NAMESPACE], name })) }
  })
  // Older clients ask for views whatever the configuration tells them.
  read('/views', async () => ({ identifiers: [] }))
  scope.get(`${NAMESPACES}/:namespace/views/:name`, async ({ params }: CatalogueRequest, reply) =>
    refuseAs(reply, 404, 'NoSuchViewException', `View does not exist: ${tableName(params)}`),
  )
  // Every snapshot of a published table has a tag, so `snapshots=refs` asks for the same as `snapshots=all`. For another
  // namespace the answer is NoSuchTableException too: clients ask for a metadata table such as `messages.snapshots` first
  // as a table of the namespace `messages`.
  scope.get(TABLE, async ({ params, headers }: CatalogueRequest, reply) => {
    const found = params.namespace === NAMESPACE ? await catalogue.table(params.name) : undefined
    if (!found)
      return refuseAs(reply, 404, 'NoSuchTableException', `Table does not exist: ${tableName(params)}`)
    const etag = `"${found.tag}"`
    reply.header('etag', etag)
    if (isMatch(headers['if-none-match'], etag)) return reply.code(304).send()
    // The file goes out as it is, so that `metadata` equals what is at `metadata-location`.
    const address = JSON.stringify(found.address)
    return answer(reply, `{"metadata-location":${address},"metadata":${found.metadata},"config":{}}`)
  })
}

const JSON_TYPE = 'application/json; charset=utf-8'

/** The answer to HEAD is 204 by the specification. */
function answer(reply: FastifyReply, body: object | string): FastifyReply {
  return reply.request.method === 'HEAD' ? reply.code(204).send() : reply.type(JSON_TYPE).send(body)
}

/** @param type the name of the error in the specification */
const refuseAs = (reply: FastifyReply, code: number, type: string, message: string): FastifyReply =>
  refuse(reply, code, { message, type, code })

function refuseToken(reply: FastifyReply, verdict: GateVerdict): FastifyReply {
  if (verdict === 'too-many')
    return refuseAs(reply, 429, 'TooManyRequestsException', 'Too many requests with a wrong token')
  const message = 'Expected the token of http.catalogue_token as a bearer token'
  reply.header('www-authenticate', 'Bearer realm="parley"')
  return refuseAs(reply, 401, 'NotAuthorizedException', message)
}

const refuseNamespace = (reply: FastifyReply, name: string): FastifyReply =>
  refuseAs(reply, 404, 'NoSuchNamespaceException', `Namespace does not exist: ${shownName(name)}`)

const tableName = ({ namespace, name }: CatalogueRequest['params']): string =>
  `${shownName(namespace)}.${shownName(name)}`

/** The parts of a namespace are separated by U+001F in requests. */
const shownName = (name: string): string => name.replaceAll('\u001f', '.').slice(0, 200)

function isMatch(ifNoneMatch: string | undefined, etag: string): boolean {
  const tags = ifNoneMatch?.split(',').map(tag => tag.trim().replace(/^W\//, '')) ?? []
  return tags.includes('*') || tags.includes(etag)
}
