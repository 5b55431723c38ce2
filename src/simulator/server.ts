import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type Clock, systemClock } from '../clock.ts'
import type { Change, ChangeResult } from './changes/change.ts'
import { answerControl, CONTROL_PREFIX } from './control.ts'
import { createFaultPlan, type Fault, type Faults } from './faults/faults.ts'
import { type Admission, createLimiter, type LimitModel, limitHeaders } from './faults/limits.ts'
import { createReplica, type Replica } from './faults/replica.ts'
import { type Answer, generalError, OperationRefusal } from './http/answers.ts'
import type { Variants } from './http/operation.ts'
import { plainCursors } from './http/paging.ts'
import { createQuery } from './http/query.ts'
import { createRequestLog, type RequestLog } from './http/requests.ts'
import { findRoute, ok, type Route } from './http/routes.ts'
import { type Delivery, deliver, FAULTY_DELIVERIES } from './http/send.ts'
import { DAY, parseInstant } from './instants.ts'
import { ACCESS_LOG_ROUTE } from './operations/workspace.ts'
import type { Scene, Sizes } from './world/scene.ts'
import { createWorld, sizesOf, type World } from './world/world.ts'

export interface SimulatorOptions extends Partial<Sizes> {
  /** Default 1. */
  seed?: number
  /** Default 0: any free port. */
  port?: number
  apiKey?: string
  workspaceId?: string
  /** The wait before each answer. Default 0. */
  latencyMs?: number
  limit?: LimitModel
  faults?: Faults
  envelopes?: Partial<Omit<Variants, 'accessLogEndParameter' | 'securityOption'>>
  /** Whether the workspace offers the access log. Default true. */
  securityOption?: boolean
  botConfigured?: boolean
  integrations?: boolean
  /** Default `to`. */
  accessLogEndParameter?: string
  /** Adds received requests to the access log. Default false, so that the truth does not change. */
  logRequests?: boolean
  /** End of the history and start of the service's clock: an instant, or `real`. Default 2026-06-30T12:00:00Z. */
  now?: string
  historyDays?: number
  /** Leaves out hostile names and values. Default false. */
  tidy?: boolean
  /** Pending overviews become COMPLETED this long after the start. Default: only by a change. */
  overviewsCompleteAfterMs?: number
  /** The status for a workspace id that does not belong to the key. Default 403. */
  foreignWorkspaceStatus?: 401 | 403 | 404
  /** Serves `/_simulator/…`. Default false. */
  control?: boolean
  clock?: Clock
}

export interface Simulator {
  /** Without a slash at the end. */
  url: string
  /** The valid key at the start. `setApiKey` does not change it here. */
  apiKey: string
  workspaceId: string
  world: World
  requests: RequestLog
  apply(change: Change): ChangeResult
  setFaults(faults: Faults): void
  /** The number of requests that each fault has hit, in the order of the faults. */
  hitCounts(): number[]
  setLimit(limit: LimitModel): void
  /** Replaces the valid key. */
  setApiKey(key: string): void
  /** Moves the service's clock forward. */
  passTime(ms: number): void
  /** Closes every connection. */
  close(): Promise<void>
}

const DEFAULT_KEY = 'demo-key'
const DEFAULT_NOW = '2026-06-30T12:00:00Z'

/** Listens on 127.0.0.1. Throws a RangeError when `now` is not an instant. */
export async function startSimulator(options: SimulatorOptions = {}): Promise<Simulator> {
  const { scene, passTime } = createScene(options)
  const create = (of: Scene): World =>
    createWorld(of, {
      overviewsCompleteAfterMs: options.overviewsCompleteAfterMs,
      botConfigured: options.botConfigured ?? true,
      integrations: options.integrations ?? true,
    })
  const replica = createReplica({ scene, create })
  const service = createService({ scene, replica, passTime }, options)
  const server = createServer((request, response) => {
    service.handle(request, response).catch((fault: unknown) => {
      // A defect of the simulator must not look like a requested fault.
      if (response.headersSent) response.destroy()
      else response.writeHead(500).end(`simulator: ${fault instanceof Error ? fault.stack : 'fault'}`)
    })
  })
  server.keepAliveTimeout = 60_000
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port ?? 0, '127.0.0.1', resolve)
  })
  const address = server.address()
  const port = address !== null && typeof address === 'object' ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}`,
    apiKey: options.apiKey ?? DEFAULT_KEY,
    workspaceId: scene.workspaceId,
    world: replica.world,
    ...service.controls,
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function createScene(options: SimulatorOptions): { scene: Scene; passTime(ms: number): void } {
  const clock = options.clock ?? systemClock()
  const startedAt = clock.now()
  let passed = 0
  const now = options.now ?? DEFAULT_NOW
  const end = now === 'real' ? startedAt * 1_000 : parseInstant(now)
  if (end === undefined)
    throw new RangeError(`now must be an RFC 3339 date-time or "real", not ${JSON.stringify(now)}`)
  const scene = {
    seed: options.seed ?? 1,
    start: end - (options.historyDays ?? 730) * DAY,
    end,
    sizes: sizesOf(options),
    workspaceId: options.workspaceId ?? 'demo-workspace',
    isTidy: options.tidy ?? false,
    now: () => end + (clock.now() - startedAt + passed) * 1_000,
  }
  return {
    scene,
    passTime: ms => {
      passed += ms
    },
  }
}

interface SimulatedService {
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>
  controls: Pick<
    Simulator,
    'requests' | 'apply' | 'setFaults' | 'hitCounts' | 'setLimit' | 'setApiKey' | 'passTime'
  >
}

const UNLIMITED: LimitModel = { kind: 'none' }

interface ServiceParts {
  scene: Scene
  replica: Replica
  passTime(ms: number): void
}

function createService(
  { scene, replica, passTime }: ServiceParts,
  options: SimulatorOptions,
): SimulatedService {
  const { world } = replica
  const clock = options.clock ?? systemClock()
  const variants: Variants = {
    meetingList: 'v1-cursor',
    playbookList: 'v1-cursor',
    objectList: 'v2',
    meetingListId: 'meeting_id',
    unstatedSingle: 'data',
    unreadyResults: 'empty',
    ...options.envelopes,
    accessLogEndParameter: options.accessLogEndParameter ?? 'to',
    securityOption: options.securityOption ?? true,
  }
  let apiKey = options.apiKey ?? DEFAULT_KEY
  let model = options.limit ?? UNLIMITED
  let limiter = createLimiter(model)
  let faultPlan = createFaultPlan(options.faults ?? [], scene.seed)
  const requests = createRequestLog()
  const plain = plainCursors()
  const nowMs = (): number => Math.floor(scene.now() / 1_000)
  const date = createDateHeader()

  const controls: SimulatedService['controls'] = {
    requests,
    apply: replica.apply,
    setFaults: faults => {
      faultPlan = createFaultPlan(faults, scene.seed)
    },
    hitCounts: () => faultPlan.hitCounts(),
    setLimit: limit => {
      model = limit
      limiter = createLimiter(limit)
    },
    setApiKey: key => {
      apiKey = key
    },
    passTime,
  }

  function refusalOf(request: IncomingMessage, admission: Admission): Answer | undefined {
    if (!admission.isAllowed) return generalError(429, 'Too Many Requests')
    const key = request.headers['x-api-key']
    if (key === undefined || key === '') return generalError(401, 'Missing X-Api-Key header')
    if (key !== apiKey) return generalError(401, 'Invalid API key')
    const workspace = request.headers['x-workspace-id']
    if (workspace === undefined || workspace === '') return generalError(400, 'Missing X-Workspace-Id header')
    if (workspace !== scene.workspaceId)
      return generalError(options.foreignWorkspaceStatus ?? 403, 'Forbidden')
    return undefined
  }

  function perform(target: RequestTarget, method: string, faults: readonly Fault[]): Answer {
    const { route, query: raw } = target
    if (!route || method !== 'GET') return generalError(404, `Cannot ${method} ${target.path}`)
    const { operation } = route
    try {
      const query = createQuery(raw, operation.template.startsWith('/v2') ? 'v2' : 'v1')
      const given = faults.length === 0 ? undefined : query.text('cursor')
      const cursors = faultPlan.cursors(plain, faults, given, nowMs())
      const lag = faults.find(({ kind }) => kind === 'lag')
      const seen = lag ? replica.laggingWorld(lag.delayMs ?? LAG_MS) : world
      return ok(operation.handle({ parameters: route.parameters, query, world: seen, variants, cursors }))
    } catch (error) {
      if (error instanceof OperationRefusal) return error.answer
      throw error
    }
  }

  function logAccess(target: RequestTarget, method: string, answer: Answer, startedAt: number): void {
    const { route } = target
    if (!options.logRequests) return
    if (method === 'GET' && route?.operation.template === ACCESS_LOG_ROUTE) return
    world.accessLog.append({
      at: Math.floor(scene.now()),
      operation: route?.operation.name ?? 'Unknown',
      method,
      route: route?.operation.template ?? target.path,
      path: target.path,
      status: answer.status,
      durationMs: Math.round(clock.elapsed() - startedAt),
      bytes: Buffer.byteLength(answer.body),
      keySuffix: apiKey.slice(-4),
    })
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const startedAt = clock.elapsed()
    const method = request.method ?? 'GET'
    const target = createTarget(request.url ?? '/')
    if (options.control && target.path.startsWith(CONTROL_PREFIX)) {
      await answerControl(request, response, target.path, { world, ...controls })
      return
    }
    // The request's body has no meaning, but the connection can only be reused after the body was read.
    request.resume()
    if (options.latencyMs) await clock.sleep(options.latencyMs)
    const template = target.route?.operation.template ?? target.path
    const admission = limiter.admit(clock.elapsed())
    const admittedBy = limiter
    // A client that disconnected during the latency has already closed the response, and `close` comes only once.
    if (admission.isAllowed && response.closed) admittedBy.release()
    else if (admission.isAllowed) response.once('close', () => admittedBy.release())
    const refusal = refusalOf(request, admission)
    const asked = { template, path: target.path, query: target.query }
    const requestFaults = admission.isAllowed ? faultPlan.faultsFor(asked) : []
    const answer = refusal ?? perform(target, method, requestFaults)
    const faults = refusal
      ? requestFaults
      : [...requestFaults, ...faultPlan.faultsFor({ ...asked, body: answer.body })]
    const headers = { ...limitHeaders(model, admission, nowMs()), Date: date(nowMs()) }
    const delivery: Delivery = {
      answer,
      headers,
      acceptsGzip: String(request.headers['accept-encoding'] ?? '').includes('gzip'),
    }
    if (!refusal) logAccess(target, method, answer, startedAt)
    const late = faults.find(({ kind }) => kind === 'late')
    if (late) await clock.sleep(late.delayMs ?? LATE_MS)
    const status = await dispatch(response, delivery, faults)
    requests.record(
      { route: template, path: target.path, query: target.query, status },
      Buffer.byteLength(answer.body),
    )
  }

  return { handle, controls }
}

const LATE_MS = 50
const LAG_MS = 1_000

async function dispatch(
  response: ServerResponse,
  delivery: Delivery,
  faults: readonly Fault[],
): Promise<number> {
  for (const fault of faults) {
    const spoil = FAULTY_DELIVERIES[fault.kind]
    if (spoil) return spoil(response, delivery, fault)
  }
  await deliver(response, delivery)
  return delivery.answer.status
}

interface RequestTarget {
  path: string
  query: string
  route: Route | undefined
}

function createTarget(url: string): RequestTarget {
  const mark = url.indexOf('?')
  const raw = mark < 0 ? url : url.slice(0, mark)
  const query = mark < 0 ? '' : url.slice(mark + 1)
  const route = findRoute(raw)
  return { path: raw, query, route: route && { ...route, parameters: route.parameters.map(decodeParameter) } }
}

/** A path parameter with a malformed escape stays unchanged. It then matches no item. */
function decodeParameter(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function createDateHeader(): (ms: number) => string {
  let second = -1
  let text = ''
  return ms => {
    const now = Math.floor(ms / 1_000)
    if (now !== second) {
      second = now
      text = new Date(ms).toUTCString()
    }
    return text
  }
}
