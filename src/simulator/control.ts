import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Change, ChangeResult } from './changes/change.ts'
import type { Fault, Faults } from './faults/faults.ts'
import type { LimitModel } from './faults/limits.ts'
import type { RequestLog } from './http/requests.ts'
import { isTruthKind, TRUTH_KINDS, type TruthKind } from './world/truth.ts'
import type { World } from './world/world.ts'

/** Control paths are not part of the API and need no key. */
export const CONTROL_PREFIX = '/_simulator/'

export interface Controls {
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
}

type Handler = (controls: Controls, body: string) => unknown

/** Each handler returns the value to send as JSON. The JSON body of a POST is the argument, or contains it. */
const HANDLERS: Record<string, Handler> = {
  'GET /_simulator/requests': ({ requests }) => ({
    total: requests.total(),
    bytes: requests.bytes(),
    counts: requests.counts(),
    recent: requests.recent().slice(-100),
  }),
  'DELETE /_simulator/requests': ({ requests }) => requests.clear(),
  'GET /_simulator/truth': ({ world }) => {
    const truth = world.truth()
    return Object.fromEntries(TRUTH_KINDS.map(kind => [kind, truth.count(kind)]))
  },
  'POST /_simulator/changes': ({ apply }, body) => {
    const given: Change | Change[] = JSON.parse(body)
    return Array.isArray(given) ? given.map(apply) : apply(given)
  },
  'GET /_simulator/faults': ({ hitCounts }) => ({ hitCounts: hitCounts() }),
  'POST /_simulator/faults': ({ setFaults }, body) => {
    const given: Fault | Fault[] = JSON.parse(body)
    setFaults(Array.isArray(given) ? given : [given])
  },
  'POST /_simulator/limit': ({ setLimit }, body) => setLimit(JSON.parse(body)),
  'POST /_simulator/time': ({ passTime }, body) => passTime(JSON.parse(body).ms),
  'POST /_simulator/key': ({ setApiKey }, body) => setApiKey(JSON.parse(body).key),
}

const TRUTH = /^\/_simulator\/truth\/(\w+)$/

export async function answerControl(
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
  controls: Controls,
): Promise<void> {
  const kind = TRUTH.exec(path)?.[1]
  if (request.method === 'GET' && kind !== undefined && isTruthKind(kind)) {
    await sendTruth(response, controls.world, kind)
    return
  }
  const handler = HANDLERS[`${request.method} ${path}`]
  if (!handler) {
    sendJson(response, 404, { message: `There is no control endpoint ${request.method} ${path}` })
    return
  }
  try {
    sendJson(response, 200, handler(controls, await readBody(request)) ?? {})
  } catch (error) {
    sendJson(response, 400, { message: error instanceof Error ? error.message : 'invalid body' })
  }
}

function sendJson(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'Content-Type': 'application/json; charset=utf-8' })
  response.end(JSON.stringify(value))
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

const LINES_PER_WRITE = 200

/** Sends newline-delimited JSON, generated at the pace of the reader. */
async function sendTruth(response: ServerResponse, world: World, kind: TruthKind): Promise<void> {
  response.writeHead(200, { 'Content-Type': 'application/x-ndjson; charset=utf-8' })
  let lines: string[] = []
  const flush = async (): Promise<void> => {
    if (lines.length === 0 || response.destroyed) return
    const hasRoom = response.write(`${lines.join('\n')}\n`)
    lines = []
    if (!hasRoom) await new Promise(resolve => response.once('drain', resolve).once('close', resolve))
  }
  for (const line of world.truth().lines(kind)) {
    lines.push(line)
    if (lines.length >= LINES_PER_WRITE) await flush()
    if (response.destroyed) return
  }
  await flush()
  response.end()
}
