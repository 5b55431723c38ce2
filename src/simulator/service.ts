import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Clock, systemClock } from '../base/clock.ts'
import type { Scene } from './base/scene.ts'
import { answerControl, CONTROL_PREFIX, type Controls } from './control.ts'
import { createAccess } from './faults/access.ts'
import { createFaultPlan, type Fault, type FaultHit, type FaultPlan, type Faults } from './faults/faults.ts'
import type { LimitModel } from './faults/limits.ts'
import type { Replica } from './faults/replica.ts'
import { createDateHeader, type Delivery, deliver, FAULTY_DELIVERIES } from './faults/send.ts'
import { type Answer, generalError, OperationRefusal } from './http/answers.ts'
import type { Variants } from './http/operation.ts'
import { plainCursors } from './http/paging.ts'
import { createQuery } from './http/query.ts'
import { createRequestLog } from './http/requests.ts'
import { ok } from './operations/routes.ts'
import { type RequestTarget, targetOf } from './operations/target.ts'
import { ACCESS_LOG_ROUTE } from './operations/workspace.ts'
import type { AccessLogEntry } from './world/access-log.ts'

export interface ServiceOptions {
  apiKey?: string
  /** The wait before each answer. Default 0. */
  latencyMs?: number
  limit?: LimitModel
  faults?: Faults
  envelopes?: Partial<Omit<Variants, 'accessLogEndParameter' | 'securityOption'>>
  /** Whether the workspace offers the access log. Default true. */
  securityOption?: boolean
  /** Default `to`. */
  accessLogEndParameter?: string
  /** Adds received requests to the access log. Default false, so that the truth does not change. */
  logRequests?: boolean
  /** The status for a workspace id that does not belong to the key. Default 403. */
  foreignWorkspaceStatus?: 401 | 403 | 404
  /** Compresses large answers for clients that accept it. Default true. */
  compress?: boolean
  /** Serves `/_simulator/…`. Default false. */
  control?: boolean
  clock?: Clock
}

export const DEFAULT_KEY = 'demo-key'

interface ServiceParts {
  scene: Scene
  replica: Replica
  passTime(ms: number): void
}

/** The API over HTTP: limits, faults and the answers of the operations. */
export interface Service {
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>
  controls: Controls
}

const LATE_MS = 50
const LAG_MS = 1_000
const AHEAD_MS = 3_600_000

function aheadMs(faults: readonly Fault[]): number {
  const ahead = faults.find(({ kind }) => kind === 'ahead')
  return ahead ? (ahead.delayMs ?? AHEAD_MS) : 0
}

export function createService(parts: ServiceParts, options: ServiceOptions): Service {
  const { scene, replica, passTime } = parts
  const clock = options.clock ?? systemClock()
  const variants = variantsOf(options)
  const access = createAccess({
    apiKey: options.apiKey ?? DEFAULT_KEY,
    limit: options.limit ?? { kind: 'none' },
    workspaceId: scene.workspaceId,
    foreignWorkspaceStatus: options.foreignWorkspaceStatus ?? 403,
  })
  let faultPlan = createFaultPlan(options.faults ?? [], scene.seed)
  const requests = createRequestLog()
  const nowMs = (): number => Math.floor(scene.now() / 1_000)
  const date = createDateHeader()
  const controls: Controls = {
    world: replica.world,
    requests,
    apply: replica.apply,
    setFaults: faults => {
      faultPlan = createFaultPlan(faults, scene.seed)
    },
    hitCounts: () => faultPlan.hitCounts(),
    setLimit: access.setLimit,
    setApiKey: access.setApiKey,
    passTime,
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const startedAt = clock.elapsed()
    const method = request.method ?? 'GET'
    const target = targetOf(request.url ?? '/')
    const { template, path, query } = target
    if (options.control && path.startsWith(CONTROL_PREFIX)) {
      await answerControl(request, response, path, controls)
      return
    }
    // The request's body has no meaning, but the connection can only be reused after the body was read.
    request.resume()
    if (options.latencyMs) await clock.sleep(options.latencyMs)
    const admission = access.admit(response, clock.elapsed())
    const refusal = access.refusalOf(request, admission)
    const asked = { template, path, query }
    const faults = admission.isAllowed ? faultPlan.faultsFor(asked) : []
    const answer =
      refusal ?? operationAnswer({ replica, variants, faultPlan, nowMs: nowMs() }, target, method, faults)
    if (!refusal) faults.push(...faultPlan.faultsFor({ ...asked, body: answer.body }))
    const delivery: Delivery = {
      answer,
      headers: { ...access.headers(admission, nowMs()), Date: date(nowMs() + aheadMs(faults)) },
      acceptsGzip:
        options.compress !== false && String(request.headers['accept-encoding'] ?? '').includes('gzip'),
    }
    if (options.logRequests && !refusal && !(method === 'GET' && template === ACCESS_LOG_ROUTE)) {
      replica.world.accessLog.append({
        ...accessLogEntry(target, method, answer),
        at: Math.floor(scene.now()),
        durationMs: Math.round(clock.elapsed() - startedAt),
        keySuffix: access.apiKey().slice(-4),
      })
    }
    const late = faults.find(({ kind }) => kind === 'late')
    if (late) await clock.sleep(late.delayMs ?? LATE_MS)
    const status = await dispatch(response, delivery, faults)
    requests.record({ route: template, path, query, status }, Buffer.byteLength(answer.body))
  }

  return { handle, controls }
}

function variantsOf({ envelopes, accessLogEndParameter, securityOption }: ServiceOptions): Variants {
  return {
    meetingList: 'v1-cursor',
    playbookList: 'v1-cursor',
    objectList: 'v2',
    meetingListId: 'meeting_id',
    unstatedSingle: 'data',
    unreadyResults: 'empty',
    ...envelopes,
    accessLogEndParameter: accessLogEndParameter ?? 'to',
    securityOption: securityOption ?? true,
  }
}

const PLAIN_CURSORS = plainCursors()

interface AnswerContext {
  replica: Replica
  variants: Variants
  faultPlan: FaultPlan
  nowMs: number
}

function operationAnswer(
  { replica, variants, faultPlan, nowMs }: AnswerContext,
  { route, path, query: raw }: RequestTarget,
  method: string,
  faults: readonly Fault[],
): Answer {
  if (!route || method !== 'GET') return generalError(404, `Cannot ${method} ${path}`)
  const { operation, parameters } = route
  try {
    const query = createQuery(raw, operation.template.startsWith('/v2') ? 'v2' : 'v1')
    const given = faults.length === 0 ? undefined : query.text('cursor')
    const cursors = faultPlan.cursors(PLAIN_CURSORS, faults, given, nowMs)
    const lag = faults.find(({ kind }) => kind === 'lag')
    const world = lag ? replica.laggingWorld(lag.delayMs ?? LAG_MS) : replica.world
    return ok(operation.handle({ parameters, query, world, variants, cursors }))
  } catch (error) {
    if (error instanceof OperationRefusal) return error.answer
    throw error
  }
}

function accessLogEntry(
  { route, template, path }: RequestTarget,
  method: string,
  { status, body }: Answer,
): Omit<AccessLogEntry, 'at' | 'durationMs' | 'keySuffix'> {
  const operation = route?.operation.name ?? 'Unknown'
  return { operation, method, route: template, path, status, bytes: Buffer.byteLength(body) }
}

async function dispatch(
  response: ServerResponse,
  delivery: Delivery,
  faults: readonly FaultHit[],
): Promise<number> {
  for (const fault of faults) {
    const spoil = FAULTY_DELIVERIES[fault.kind]
    if (spoil) return spoil(response, delivery, fault)
  }
  await deliver(response, delivery)
  return delivery.answer.status
}
