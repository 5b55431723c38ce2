import { PAGING, readPage, readSingle } from '../../../api/paging.ts'
import { type ApiRequest, fillPath, type Query } from '../../../api/request.ts'
import { canonicalId, isUuid } from '../../../base/uuid.ts'
import type { Evidence, Expected } from '../../../declare/resource.ts'
import type { Task } from '../../../store/sync/tasks/task.ts'
import { wrongIdentityError } from '../refusals.ts'

/** The two requests that name keys: a single read of one key, and a list of up to 100 `ids`. Pure. */

export type KeyEvidence = Extract<Evidence, { by: 'single' | 'ids' }>

/** The statuses of a single read of a record that is not published (spec: General rules 2 and 3). */
export const NOT_PUBLISHED: Expected = { 403: 'absent', 404: 'absent', 410: 'absent' }

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

export interface KeyRequest {
  /** The most tasks in one request. */
  most: number
  request(evidence: KeyEvidence, named: NamedKeys): ApiRequest
  read(
    evidence: KeyEvidence,
    value: unknown,
    named: NamedKeys,
  ): { records: readonly unknown[]; next: Query | null }
}

export const KEY_REQUESTS: Readonly<Record<KeyEvidence['by'], KeyRequest>> = {
  single: {
    most: 1,
    request: (evidence, { first: { scope, key } }) => {
      const path = pathOf(evidence)
      return { route: path, path: fillPath(path, { scope, key }) }
    },
    read(evidence, value, { first: { key } }) {
      const record =
        evidence.by === 'single' && readSingle(value, evidence.read.placement, evidence.read.identity)
      if (idOf(record) !== key) throw wrongIdentityError()
      return { records: [record], next: null }
    },
  },
  ids: {
    most: MOST_IDS,
    request(evidence, { tasks, first: { scope }, cursor }) {
      const path = pathOf(evidence)
      const ids = tasks.map(({ key }) => key).join(',')
      const query = { ids, limit: String(PAGING['v2-cursor'].maxLimit), ...cursor }
      return { route: path, path: fillPath(path, { scope }), query }
    },
    read(_evidence, value) {
      const { items, next } = readPage('v2-cursor', value, {})
      return { records: items, next }
    },
  },
}

export function pathOf(evidence: KeyEvidence): string {
  return evidence.by === 'single' ? evidence.read.path : evidence.path
}

/** The id of a record, as the warehouse has it. */
export function idOf(record: unknown): string | undefined {
  if (typeof record !== 'object' || record === null || !('id' in record)) return undefined
  return typeof record.id === 'string' ? canonicalId(record.id) : undefined
}
