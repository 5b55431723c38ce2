import { DAY, formatInstant } from '../base/instants.ts'
import { at, mix, mixBelow } from '../base/random.ts'
import { SALT, type Scene } from '../base/scene.ts'

export interface AccessLogEntry {
  at: number
  operation: string
  method: string
  route: string
  path: string
  status: number
  durationMs: number
  bytes: number
  keySuffix: string
}

/** Entries newest first: the requests that the simulator received, then the made-up history. */
export interface AccessLog {
  count(): number
  timeOf(position: number): number
  json(position: number): string
  append(entry: AccessLogEntry): void
  /** The stable number of the entry at a position. Positions move when entries are appended, numbers do not. */
  sequenceOf(position: number): number
  positionOf(sequence: number): number
}

/** How far the history reaches back from the end. */
const HISTORY = 160 * DAY

const CALLS = [
  ['List activities', '/v2/activities', ''],
  ['List messages', '/v2/messages', ''],
  ['Get message', '/v2/messages/{messageId}', '4f1c2a9e-0c55-4a37-9a43-0d6f4f6f2b11'],
  ['List records', '/v2/objects/{object}/records', 'deal'],
  ['Get meeting', '/v1/meetings/{meetingId}', '64d0f2a7c3b1e50012ab34cd'],
  ['Get transcript', '/v1/meetings/{meetingId}/transcript', '64d0f2a7c3b1e50012ab34cd'],
  ['List members', '/v1/members', ''],
  ['List teams', '/v1/teams', ''],
] as const
const STATUSES = [200, 200, 200, 200, 200, 200, 200, 404, 403, 400, 500] as const

export function createAccessLog(scene: Scene): AccessLog {
  const { seed, sizes, end } = scene
  const historyCount = sizes.accessLogs
  const own: AccessLogEntry[] = []

  /** One in forty entries is an exact duplicate of the entry before it. */
  const withDuplicates = (entry: number): number => (entry % 40 === 39 ? entry - 1 : entry)
  const historyTime = (entry: number): number => {
    const number = withDuplicates(entry)
    const part = (number + (mix(seed, SALT.accessLog, number) % 1_000) / 1_001) / historyCount
    const micros = Math.floor(end - part * HISTORY)
    return micros - (micros % 1_000)
  }
  const historyJson = (entry: number): string => {
    const number = withDuplicates(entry)
    const draw = mix(seed, SALT.accessLog + 1, number)
    const [operation, route, id] = at(CALLS, draw)
    const isOld = number > historyCount * 0.9
    return JSON.stringify({
      occurred_at: formatInstant(historyTime(entry), draw >>> 4),
      operation,
      method: 'GET',
      route,
      path: route.replace(/\{\w+\}/, id),
      status_code: at(STATUSES, draw >>> 8),
      duration_ms: isOld ? null : 3 + mixBelow(seed, SALT.accessLog + 2, number, 400),
      response_size_bytes: isOld ? null : 120 + mixBelow(seed, SALT.accessLog + 3, number, 60_000),
      api_key_suffix: draw % 50 === 0 ? null : 'a1b2',
      completion: draw % 37 === 0 ? 'CLIENT_CLOSED' : 'COMPLETED',
    })
  }

  return {
    count: () => own.length + historyCount,
    timeOf: position =>
      position < own.length ? (own[own.length - 1 - position]?.at ?? 0) : historyTime(position - own.length),
    json: position => {
      const entry = own[own.length - 1 - position]
      return position < own.length && entry ? ownJson(entry) : historyJson(position - own.length)
    },
    append: entry => {
      own.push(entry)
    },
    sequenceOf: position => historyCount + own.length - position,
    positionOf: sequence => historyCount + own.length - sequence,
  }
}

function ownJson(entry: AccessLogEntry): string {
  return JSON.stringify({
    occurred_at: formatInstant(entry.at, 0),
    operation: entry.operation,
    method: entry.method,
    route: entry.route,
    path: entry.path,
    status_code: entry.status,
    duration_ms: entry.durationMs,
    response_size_bytes: entry.bytes,
    api_key_suffix: entry.keySuffix,
    completion: 'COMPLETED',
  })
}
