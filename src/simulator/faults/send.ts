import type { ServerResponse } from 'node:http'
import { promisify } from 'node:util'
import { constants, gzip } from 'node:zlib'
import { mix } from '../base/random.ts'
import { SALT } from '../base/scene.ts'
import { type Answer, generalError } from '../http/answers.ts'
import {
  withoutData,
  withoutItems,
  withoutSomeItems,
  withPadding,
  withReplacedText,
  withUpperCaseIds,
} from './altered-bodies.ts'
import type { Fault, FaultHit } from './faults.ts'

const compress = promisify(gzip)
/** A smaller body is sent uncompressed: gzip would cost more than it saves. */
const MIN_COMPRESSED_BYTES = 1_400

const HTML =
  '<!doctype html><html><head><title>Service temporarily unavailable</title></head><body><h1>502</h1></body></html>'

export interface Delivery {
  answer: Answer
  headers: Record<string, string>
  acceptsGzip: boolean
}

/** Sends the answer unchanged. */
export async function deliver(
  response: ServerResponse,
  { answer, headers, acceptsGzip }: Delivery,
): Promise<void> {
  const all: Record<string, string | number> = {
    'Content-Type': 'application/json; charset=utf-8',
    ...headers,
  }
  let body = Buffer.from(answer.body)
  if (acceptsGzip) all['Vary'] = 'Accept-Encoding'
  if (acceptsGzip && body.length >= MIN_COMPRESSED_BYTES) {
    body = await compress(body, { level: constants.Z_BEST_SPEED })
    all['Content-Encoding'] = 'gzip'
  }
  all['Content-Length'] = body.length
  response.writeHead(answer.status, all)
  response.end(body)
}

type FaultyDelivery = (
  response: ServerResponse,
  delivery: Delivery,
  fault: FaultHit,
) => Promise<number> | number

const JSON_TYPE = { 'Content-Type': 'application/json; charset=utf-8' }

/** Each sends the answer with its fault, and returns the status that the client saw, 0 for none. */
export const FAULTY_DELIVERIES: Partial<Record<Fault['kind'], FaultyDelivery>> = {
  status: (response, { headers }, fault) => {
    const status = fault.status ?? 500
    const isHtml = status === 502 || status === 504
    const retry = fault.retryAfter === undefined ? {} : { 'Retry-After': String(fault.retryAfter) }
    response.writeHead(status, {
      ...headers,
      ...(isHtml ? { 'Content-Type': 'text/html' } : JSON_TYPE),
      ...retry,
    })
    response.end(isHtml ? HTML : generalError(status, 'Fault').body)
    return status
  },
  reset: response => {
    response.socket?.resetAndDestroy()
    return 0
  },
  'reset-in-body': (response, { answer, headers }) => {
    const body = Buffer.from(answer.body)
    response.writeHead(answer.status, { ...headers, ...JSON_TYPE, 'Content-Length': body.length })
    response.write(body.subarray(0, body.length >>> 1), () => response.socket?.resetAndDestroy())
    return answer.status
  },
  truncate: async (response, delivery) => {
    const body = delivery.answer.body.slice(0, delivery.answer.body.length >>> 1)
    await deliver(response, { ...delivery, answer: { status: 200, body } })
    return 200
  },
  stall: () => 0,
  'stall-in-body': (response, { answer, headers }) => {
    const body = Buffer.from(answer.body)
    response.writeHead(answer.status, { ...headers, ...JSON_TYPE, 'Content-Length': body.length })
    response.write(body.subarray(0, body.length >>> 1))
    return answer.status
  },
  html: (response, { headers }) => {
    response.writeHead(200, { ...headers, 'Content-Type': 'text/html; charset=utf-8' })
    response.end(HTML)
    return 200
  },
  'wrong-type': async (response, delivery) => {
    await deliver(response, { ...delivery, headers: { ...delivery.headers, 'Content-Type': 'text/plain' } })
    return delivery.answer.status
  },
  endless: (response, { headers }) => {
    response.writeHead(200, { ...headers, ...JSON_TYPE })
    response.write('{"data":[')
    writeForever(response)
    return 200
  },
  empty: withAlteredBody(withoutItems),
  'null-data': withAlteredBody(withoutData),
  rewrite: withAlteredBody((body, { from = '', to = '' }) => withReplacedText(body, from, to)),
  bloat: withAlteredBody((body, { bytesPerItem = 100_000 }) => withPadding(body, bytesPerItem)),
  partial: withAlteredBody((body, { number }) =>
    withoutSomeItems(body, item => mix(number, SALT.fault, item)),
  ),
  'upper-case': withAlteredBody(withUpperCaseIds),
  body: async (response, delivery, { to = '' }) => {
    await deliver(response, { ...delivery, answer: { status: 200, body: to } })
    return 200
  },
  redirect: (response, { headers }) => {
    response.writeHead(302, { ...headers, Location: '/elsewhere' })
    response.end()
    return 302
  },
}

/** Alters the body of a 200; other answers are sent unchanged. */
function withAlteredBody(alter: (body: string, fault: FaultHit) => string): FaultyDelivery {
  return async (response, delivery, fault) => {
    const { status, body } = delivery.answer
    const answer = status === 200 ? { status, body: alter(body, fault) } : delivery.answer
    await deliver(response, { ...delivery, answer })
    return status
  }
}

const CHUNK = '{"id":"00000000-0000-4000-8000-000000000000","subject":"more and more"},'.repeat(800)

function writeForever(response: ServerResponse): void {
  const more = (): void => {
    if (response.destroyed || response.socket?.destroyed) return
    if (response.write(CHUNK)) setImmediate(more)
  }
  response.on('drain', more)
  more()
}

/** Returns a function that gives the `Date` header for a time in milliseconds. */
export function createDateHeader(): (ms: number) => string {
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
