import { MAX_LIMITS, readPage, readSingle } from '../../../api/paging.ts'
import { type ApiRequest, fillPath, type Query } from '../../../api/request.ts'
import { canonicalId, isUuid } from '../../../base/uuid.ts'
import type { Evidence, StatusMeanings } from '../../../declare/resource.ts'
import type { Task } from '../../../store/sync/tasks/task.ts'
import { wrongIdentityError } from '../refusals.ts'

/** The two requests that name keys: a single read of one key, and a list of up to 100 `ids`. Pure. */

export type KeyEvidence = Extract<Evidence, { by: 'single' | 'ids' }>

/** The statuses of a single read of a record that is not published (spec: General rules 2 and 3). */
export const NOT_PUBLISHED: StatusMeanings = { 403: 'absent', 404: 'absent', 410: 'absent' }

/** The most ids that one request may name (spec: Limits). */
export const MOST_IDS = 100

/** Whether a key can be requested: one id that is no UUID makes the API refuse a whole request by `ids`. */
export function isAskable(evidence: Evidence, key: string): boolean {
  return evidence.by !== 'ids' || isUuid(key)
}

/** What a request names: its tasks, all of one scope, and the page that it asks for. */
export interface NamedKeys {
  tasks: readonly Task[]
  first: Task
  cursor: Query | null
}

export interface KeyRequests {
  route: string
  /** The most tasks in one request. */
  most: number
  /** Which kind of read shows a found record. A request by `ids` goes to the endpoint of the list. */
  shownBy: 'list' | 'single'
  request(named: NamedKeys): ApiRequest
  read(value: unknown, named: NamedKeys): { records: readonly unknown[]; next: Query | null }
}

export function keyRequestsOf(evidence: KeyEvidence): KeyRequests {
  if (evidence.by === 'ids') return requestsByIds(evidence.path)
  const { path: route, placement, identity } = evidence.read
  return {
    route,
    most: 1,
    shownBy: 'single',
    request: ({ first: { scope, key } }) => ({ route, path: fillPath(route, { scope, key }) }),
    read(value, { first: { key } }) {
      const record = readSingle(value, placement, identity)
      if (idOf(record) !== key) throw wrongIdentityError()
      return { records: [record], next: null }
    },
  }
}

function requestsByIds(route: string): KeyRequests {
  return {
    route,
    most: MOST_IDS,
    shownBy: 'list',
    request({ tasks, first: { scope }, cursor }) {
      const ids = tasks.map(({ key }) => key).join(',')
      const query = { ids, limit: String(MAX_LIMITS['v2-cursor']), ...cursor }
      return { route, path: fillPath(route, { scope }), query }
    },
    read(value) {
      const { items, next } = readPage('v2-cursor', value, {})
      return { records: items, next }
    },
  }
}

/** The id of a record, in the form that the warehouse stores. */
export function idOf(record: unknown): string | undefined {
  if (typeof record !== 'object' || record === null || !('id' in record)) return undefined
  return typeof record.id === 'string' ? canonicalId(record.id) : undefined
}
