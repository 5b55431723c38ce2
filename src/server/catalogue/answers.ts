import { StopError } from '../../base/errors.ts'

/**
 * The answers of a read-only Iceberg REST catalogue, by Apache Iceberg's `rest-catalog-open-api.yaml`. Its one namespace
 * has the published tables. Lists come in one answer, without page tokens, as the specification allows.
 */

/** What the catalogue shows. */
export interface ServedCatalogue {
  /** @throws StopError when the target has no publication or cannot be read in time */
  publication(): Promise<{ tables: readonly string[]; properties: Readonly<Record<string, string>> }>
  /** @returns undefined when there is no such table @throws StopError as `publication` */
  table(name: string): Promise<ServedTable | undefined>
}

export interface ServedTable {
  /** A text that differs for each content of the metadata. */
  tag: string
  /** The address of the metadata file, as readers find it. */
  address: string
  /** The text of the metadata file, which is JSON. */
  metadata: string
}

export interface CatalogueRequest {
  method: string
  /** The path with the query, such as `/iceberg/v1/namespaces`. */
  url: string
  ifNoneMatch: string | undefined
}

export interface CatalogueAnswer {
  status: number
  headers?: Readonly<Record<string, string>>
  /** JSON; undefined for an answer without a body. */
  body?: string
}

export const NAMESPACE = 'parley'

const ROOT = '/iceberg'
/** How long a client should wait after a 503. */
const RETRY_SECONDS = 5

export const isCataloguePath = (url: string): boolean => /^\/iceberg(?:[/?]|$)/.test(url)

export function errorAnswer(status: number, type: string, message: string): CatalogueAnswer {
  return { status, body: JSON.stringify({ error: { message, type, code: status } }) }
}

/** Whether a client that has an id and a secret asks for a token. Such a request has no token yet. */
export const isTokenRequest = ({ method, url }: Pick<CatalogueRequest, 'method' | 'url'>): boolean =>
  method === 'POST' && /^\/iceberg\/v1\/oauth\/tokens(?:\?|$)/.test(url)

/** The refusal by RFC 6749, section 5.2. Clients show the description. */
export const NO_TOKENS: CatalogueAnswer = {
  status: 400,
  body: JSON.stringify({
    error: 'unsupported_grant_type',
    error_description:
      'The catalogue issues no tokens: configure the value of http.catalogue_token as the token of the client',
  }),
}

/** @throws any error of the catalogue that is not a StopError */
export async function answerOf(
  catalogue: ServedCatalogue,
  request: CatalogueRequest,
): Promise<CatalogueAnswer> {
  const { method } = request
  try {
    const found = findRoute(request.url)
    if (method === 'POST' && found?.route.path.endsWith('/metrics')) return { status: 204 }
    if (method !== 'GET' && method !== 'HEAD') return READ_ONLY
    if (!found?.route.get) return errorAnswer(404, 'NotFoundException', 'The catalogue has no such path')
    const answer = await found.route.get({ ...found, catalogue, ifNoneMatch: request.ifNoneMatch })
    return method === 'HEAD' ? withoutBody(answer) : answer
  } catch (error) {
    if (!(error instanceof StopError)) throw error
    const answer = errorAnswer(503, 'ServiceUnavailableException', error.message)
    return { ...answer, headers: { 'retry-after': String(RETRY_SECONDS) } }
  }
}

const READ_ONLY = errorAnswer(403, 'ForbiddenException', 'The catalogue is read-only')

function withoutBody({ status, headers = {} }: CatalogueAnswer): CatalogueAnswer {
  return { status: status === 200 ? 204 : status, headers }
}

interface RoutedRequest {
  catalogue: ServedCatalogue
  /** The values of the variable parts of the path. */
  values: Readonly<Record<string, string>>
  query: URLSearchParams
  ifNoneMatch: string | undefined
}

interface CatalogueRoute {
  /** The path after `/v1/`. A part in braces is variable. */
  path: string
  get?(asked: RoutedRequest): Promise<CatalogueAnswer>
  /** The methods that the answer to `config` lists. */
  told: readonly string[]
}

const ROUTES: readonly CatalogueRoute[] = [
  { path: 'config', told: [], get: configuration },
  { path: 'namespaces', told: ['GET'], get: namespaces },
  { path: 'namespaces/{namespace}', told: ['GET', 'HEAD'], get: inNamespace(namespace) },
  { path: 'namespaces/{namespace}/tables', told: ['GET'], get: inNamespace(tables) },
  { path: 'namespaces/{namespace}/tables/{table}', told: ['GET', 'HEAD'], get: table },
  { path: 'namespaces/{namespace}/tables/{table}/metrics', told: ['POST'] },
  // Older clients ask for views whatever the configuration tells them.
  { path: 'namespaces/{namespace}/views', told: [], get: inNamespace(async () => ok({ identifiers: [] })) },
  { path: 'namespaces/{namespace}/views/{view}', told: [], get: view },
]

function findRoute(
  url: string,
): (Pick<RoutedRequest, 'values' | 'query'> & { route: CatalogueRoute }) | undefined {
  const { pathname, searchParams: query } = new URL(url, 'http://localhost')
  const parts = decodedParts(pathname)
  if (parts?.[0] !== ROOT.slice(1) || parts[1] !== 'v1') return undefined
  for (const route of ROUTES) {
    const values = valuesOf(route.path, parts.slice(2))
    if (values) return { route, values, query }
  }
  return undefined
}

function decodedParts(path: string): string[] | undefined {
  try {
    return path.slice(1).split('/').map(decodeURIComponent)
  } catch {
    return undefined
  }
}

function valuesOf(path: string, parts: readonly string[]): Record<string, string> | undefined {
  const wanted = path.split('/')
  if (wanted.length !== parts.length) return undefined
  const values: Record<string, string> = {}
  for (const [place, part] of wanted.entries()) {
    const given = parts[place] ?? ''
    const name = /^\{(.+)\}$/.exec(part)?.[1]
    if (name !== undefined) values[name] = given
    else if (part !== given) return undefined
  }
  return values
}

const ok = (body: object): CatalogueAnswer => ({ status: 200, body: JSON.stringify(body) })

async function configuration(): Promise<CatalogueAnswer> {
  const endpoints = ROUTES.flatMap(({ path, told }) => told.map(method => `${method} /v1/{prefix}/${path}`))
  return ok({ defaults: {}, overrides: {}, endpoints })
}

async function namespaces({ query }: RoutedRequest): Promise<CatalogueAnswer> {
  const parent = query.get('parent') ?? ''
  if (parent === '') return ok({ namespaces: [[NAMESPACE]] })
  return parent === NAMESPACE ? ok({ namespaces: [] }) : noNamespace(parent)
}

function inNamespace(
  get: (asked: RoutedRequest) => Promise<CatalogueAnswer>,
): (asked: RoutedRequest) => Promise<CatalogueAnswer> {
  return async asked => {
    const { namespace: name = '' } = asked.values
    return name === NAMESPACE ? get(asked) : noNamespace(name)
  }
}

async function namespace({ catalogue }: RoutedRequest): Promise<CatalogueAnswer> {
  const { properties } = await catalogue.publication()
  return ok({ namespace: [NAMESPACE], properties })
}

async function tables({ catalogue }: RoutedRequest): Promise<CatalogueAnswer> {
  const { tables: names } = await catalogue.publication()
  return ok({ identifiers: names.map(name => ({ namespace: [NAMESPACE], name })) })
}

/**
 * Every snapshot of a published table has a tag, so `snapshots=refs` asks for the same as `snapshots=all`. For another
 * namespace the answer is NoSuchTableException too: clients ask for a metadata table such as `messages.snapshots` first
 * as a table of the namespace `messages`.
 */
async function table({ catalogue, values, ifNoneMatch }: RoutedRequest): Promise<CatalogueAnswer> {
  const { namespace: space = '', table: name = '' } = values
  const found = space === NAMESPACE ? await catalogue.table(name) : undefined
  if (!found)
    return errorAnswer(
      404,
      'NoSuchTableException',
      `Table does not exist: ${shownName(space)}.${shownName(name)}`,
    )
  const etag = `"${found.tag}"`
  const headers = { etag }
  if (isMatch(ifNoneMatch, etag)) return { status: 304, headers }
  // The file goes out as it is, so that `metadata` equals what is at `metadata-location`.
  const address = JSON.stringify(found.address)
  return {
    status: 200,
    headers,
    body: `{"metadata-location":${address},"metadata":${found.metadata},"config":{}}`,
  }
}

async function view({ values }: RoutedRequest): Promise<CatalogueAnswer> {
  const { namespace: space = '', view: name = '' } = values
  return errorAnswer(
    404,
    'NoSuchViewException',
    `View does not exist: ${shownName(space)}.${shownName(name)}`,
  )
}

const noNamespace = (name: string): CatalogueAnswer =>
  errorAnswer(404, 'NoSuchNamespaceException', `Namespace does not exist: ${shownName(name)}`)

/** The parts of a namespace are separated by U+001F in requests. */
const shownName = (name: string): string => name.replaceAll('\u001f', '.').slice(0, 200)

function isMatch(ifNoneMatch: string | undefined, etag: string): boolean {
  const tags = ifNoneMatch?.split(',').map(tag => tag.trim().replace(/^W\//, '')) ?? []
  return tags.includes('*') || tags.includes(etag)
}
