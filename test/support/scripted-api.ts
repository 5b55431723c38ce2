import { createServer, type ServerResponse } from 'node:http'
import { onTestFinished } from 'vitest'
import { listenUntilTestEnds } from './http-server.ts'

/** A real HTTP server with an empty workspace. A test scripts the routes that answer otherwise. */
export interface ScriptedApi {
  url: string
  /** How far the server's `Date` is ahead of this machine's clock, in ms. A test may change it. */
  aheadMs: number
  /** All requests so far, in order of arrival. */
  requests: ScriptedRequest[]
  /** Scripts a route, such as `/v2/messages/{id}`. A later script replaces an earlier one. */
  on(route: string, handler: Handler): void
  /** The requests of one route. */
  asked(route: string): ScriptedRequest[]
  /** Closes at the end of the test what uses the server. */
  atEnd(close: () => void | Promise<void>): void
}

export interface ScriptedRequest {
  route: string
  path: string
  query: Readonly<Record<string, string>>
  /** The values of the route's parameters. */
  params: readonly string[]
  headers: Readonly<Record<string, string | string[] | undefined>>
}

export type Handler = (request: ScriptedRequest) => ScriptedAnswer | Promise<ScriptedAnswer>

export interface ScriptedAnswer {
  /** Default 200. */
  status?: number
  /** Sent as JSON. */
  body?: unknown
  /** Sent unchanged, in place of `body`. */
  text?: string
  headers?: Readonly<Record<string, string>>
  /** Cuts the connection instead of answering. */
  cut?: boolean
}

/** One page of a v2 list. Without `next` it is the last page, which has a cursor too. */
export function v2Page(data: readonly unknown[], next?: string): ScriptedAnswer {
  const last = data.length === 0 ? null : 'end'
  return { body: { data, page_info: { end_cursor: next ?? last, has_next_page: next !== undefined } } }
}

export function v1Page(data: readonly unknown[], next: string | null = null): ScriptedAnswer {
  return { body: { data, pagination: { next_cursor: next } } }
}

/** The only page of a page-numbered list. */
export function numberedPage(data: readonly unknown[]): ScriptedAnswer {
  const pagination = { page: 1, limit: 200, total_size: data.length, total_pages: 1 }
  return { body: { data, pagination } }
}

export function refused(status: number, message = 'as the test says'): ScriptedAnswer {
  return { status, body: { statusCode: status, message, error: 'Scripted' } }
}

const EMPTY_WORKSPACE: Readonly<Record<string, ScriptedAnswer>> = {
  '/v1/members': numberedPage([]),
  '/v1/teams': numberedPage([]),
  '/v1/collections': v1Page([]),
  '/v1/meetings': v1Page([]),
  '/v1/playbooks': v1Page([]),
  '/v1/public-api-access-logs': v1Page([]),
  '/v2/activities': v2Page([]),
  '/v2/messages': v2Page([]),
  '/v2/objects': { body: { data: [] } },
  '/v2/objects/{object}/records': v2Page([]),
}

/** @param atEnd the one of the test's context, in tests that run at the same time */
export async function startScriptedApi(atEnd: ScriptedApi['atEnd'] = onTestFinished): Promise<ScriptedApi> {
  const handlers = new Map<string, Handler>(
    Object.entries(EMPTY_WORKSPACE).map(([route, answer]) => [route, () => answer]),
  )
  const requests: ScriptedRequest[] = []
  const server = createServer((incoming, response) => {
    // The raw path, since a URL object would resolve dot segments, encoded ones too.
    const [path = '', search] = (incoming.url ?? '/').split('?', 2)
    const { route, params, handler } = routeOf(handlers, path)
    const query = Object.fromEntries(new URLSearchParams(search))
    const request = { route, path, query, params, headers: incoming.headers }
    requests.push(request)
    void Promise.resolve(handler(request)).then(answer => {
      response.setHeader('date', new Date(Date.now() + api.aheadMs).toUTCString())
      send(response, answer)
    })
  })
  const api: ScriptedApi = {
    url: await listenUntilTestEnds(server, atEnd),
    aheadMs: 0,
    requests,
    atEnd,
    on: (route, handler) => {
      handlers.set(route, handler)
    },
    asked: route => requests.filter(request => request.route === route),
  }
  return api
}

interface Found {
  route: string
  params: string[]
  handler: Handler
}

/** A literal route matches before a route with parameters. */
function routeOf(handlers: ReadonlyMap<string, Handler>, path: string): Found {
  const literal = handlers.get(path)
  if (literal) return { route: path, params: [], handler: literal }
  for (const [route, handler] of handlers) {
    const pattern = new RegExp(`^${route.replace(/\{\w+\}/g, '([^/]+)')}$`)
    const match = pattern.exec(path)
    if (match) return { route, params: match.slice(1).map(decodeURIComponent), handler }
  }
  return { route: path, params: [], handler: () => refused(404) }
}

function send(response: ServerResponse, answer: ScriptedAnswer): void {
  if (answer.cut) {
    response.destroy()
    return
  }
  response.writeHead(answer.status ?? 200, { 'content-type': 'application/json', ...answer.headers })
  response.end(answer.text ?? JSON.stringify(answer.body ?? {}))
}

/** A promise that a test resolves. */
export function signal(): { promise: Promise<void>; give(): void } {
  let give: () => void = () => undefined
  const promise = new Promise<void>(resolve => {
    give = resolve
  })
  return { promise, give }
}
