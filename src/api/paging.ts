import { createHash } from 'node:crypto'
import { RetryError } from '../errors.ts'
import { exactNumber, isExactNumber } from '../json.ts'
import { isTellable } from './server-text.ts'

/**
 * How lists come in pages (spec: Pagination styles). Pure: an answer and the query that gave it become items and
 * the query parameters of the next page. Who asks for that page, and when, is the scheduler's business.
 */

/**
 * `any`: a list whose shape the spec does not show. `data-list`: a whole list in `data`, in one answer.
 * `single`: one object, bare or in `data`.
 */
export type PagingStyle = 'v2-cursor' | 'v1-cursor' | 'v1-page' | 'any' | 'data-list' | 'single'

export interface PagingRules {
  /** The largest `limit` allowed; undefined where `limit` is not known to be accepted. */
  maxLimit: number | undefined
  /** The query parameter that chooses a page; undefined where it depends on the answer or there is none. */
  parameter: 'cursor' | 'page' | undefined
}

export const PAGING: Readonly<Record<PagingStyle, PagingRules>> = {
  'v2-cursor': { maxLimit: 100, parameter: 'cursor' },
  'v1-cursor': { maxLimit: 50, parameter: 'cursor' },
  'v1-page': { maxLimit: 200, parameter: 'page' },
  any: { maxLimit: undefined, parameter: undefined },
  'data-list': { maxLimit: undefined, parameter: undefined },
  single: { maxLimit: undefined, parameter: undefined },
}

export interface Page {
  /** As the API sent them, whatever they are. */
  items: readonly unknown[]
  /** Query parameters to add to the list's own for the next page; null at the end. */
  next: Readonly<Record<string, string>> | null
  /** v2's `end_cursor`, present even on the last page; absent when the API gave none. */
  checkpoint?: string
  /** v1 pages only: the API's count of all items. */
  totalSize?: number
  /** Style `any` only: which shape was found. */
  recognised?: 'v2-cursor' | 'v1-cursor' | 'v1-page' | 'bare'
}

type Query = Readonly<Record<string, string>>
type Fields = Record<string, unknown>

/**
 * Reads one page of a list.
 * @param sentQuery the whole query of the request that was answered
 * @throws RetryError `broken-envelope` when the answer is no page of that style
 */
export function readPage(style: PagingStyle, value: unknown, sentQuery: Query): Page {
  return READERS[style](value, sentQuery)
}

const READERS: Readonly<Record<PagingStyle, (value: unknown, sent: Query) => Page>> = {
  'v2-cursor': value => readV2Cursor(listUnderData(value), pagingUnder(value, 'page_info')),
  'v1-cursor': value => readV1Cursor(listUnderData(value), pagingUnder(value, 'pagination')),
  'v1-page': (value, sent) => readV1Page(listUnderData(value), pagingUnder(value, 'pagination'), sent),
  any: readAnyList,
  'data-list': value => ({ items: readDataList(value), next: null }),
  single: value => ({ items: [readSingle(value, 'either')], next: null }),
}

/** `has_next_page` alone decides; `end_cursor` is there on the last page too (spec: PageInfo). */
function readV2Cursor(items: readonly unknown[], paging: Fields): Page {
  const more = own(paging, 'has_next_page')
  if (typeof more !== 'boolean') throw broken('has_next_page as true or false', more)
  const cursor = cursorText(own(paging, 'end_cursor'), 'end_cursor')
  if (more && cursor === undefined) {
    throw broken('an end_cursor, since has_next_page is true', own(paging, 'end_cursor'))
  }
  return {
    items,
    next: more && cursor !== undefined ? { cursor } : null,
    ...(cursor !== undefined && { checkpoint: cursor }),
  }
}

function readV1Cursor(items: readonly unknown[], paging: Fields): Page {
  const cursor = cursorText(own(paging, 'next_cursor'), 'next_cursor')
  return { items, next: cursor === undefined ? null : { cursor } }
}

/** The page that was asked for counts, not the one the answer claims: so a server that ignores `page` ends too. */
function readV1Page(items: readonly unknown[], paging: Fields, sent: Query): Page {
  const page = Number(sent['page'] ?? count(own(paging, 'page')) ?? 1)
  const totalSize = count(own(paging, 'total_size'))
  const limit = count(own(paging, 'limit')) ?? Number(sent['limit'] ?? 0)
  const bySize = totalSize !== undefined && limit > 0 ? Math.ceil(totalSize / limit) : undefined
  const totalPages = count(own(paging, 'total_pages')) ?? bySize
  const more = totalPages === undefined ? items.length > 0 : page < totalPages
  return {
    items,
    next: more ? { page: String(page + 1) } : null,
    ...(totalSize !== undefined && { totalSize }),
  }
}

/**
 * A list of unknown shape: a bare array, or an object that holds one list (in `data`, in an object in `data`, or
 * under a name of its own) and perhaps one of the three paging objects. Paging that is there but not understood
 * is an error, since half a list must never pass for the whole.
 */
function readAnyList(value: unknown, sent: Query): Page {
  if (Array.isArray(value)) return { items: value, next: null, recognised: 'bare' }
  if (!isFields(value)) throw broken('a list', value)
  const data = own(value, 'data')
  const places = isFields(data) ? [value, data] : [value]
  const items = Array.isArray(data) ? data : onlyList(isFields(data) ? data : value)
  const paging = findPaging(places)
  if (paging === undefined) return { items, next: null, recognised: 'bare' }
  const { recognised, read } = recognisePaging(paging)
  return { ...read(items, paging, sent), recognised }
}

interface RecognisedPaging {
  key: string
  recognised: 'v2-cursor' | 'v1-cursor' | 'v1-page'
  read(items: readonly unknown[], paging: Fields, sent: Query): Page
}

/** Which key shows which style, the most telling first. */
const PAGING_KEYS: readonly RecognisedPaging[] = [
  { key: 'has_next_page', recognised: 'v2-cursor', read: readV2Cursor },
  { key: 'next_cursor', recognised: 'v1-cursor', read: readV1Cursor },
  { key: 'total_pages', recognised: 'v1-page', read: readV1Page },
  { key: 'total_size', recognised: 'v1-page', read: readV1Page },
]

function recognisePaging(paging: Fields): RecognisedPaging {
  const found = PAGING_KEYS.find(({ key }) => Object.hasOwn(paging, key))
  if (found === undefined)
    throw broken('has_next_page, next_cursor or total_pages in the paging object', paging)
  return found
}

/** A paging object, or the place itself when the paging keys stand in it; an empty one is none. */
function findPaging(places: readonly Fields[]): Fields | undefined {
  for (const place of places) {
    for (const name of PAGING_OBJECTS) {
      const paging = own(place, name)
      if (isFields(paging) && Object.keys(paging).length > 0) return paging
    }
    if (PAGING_KEYS.some(({ key }) => Object.hasOwn(place, key))) return place
  }
  return undefined
}

const PAGING_OBJECTS = ['page_info', 'pagination']

function onlyList(place: Fields): readonly unknown[] {
  const lists = Object.values(place).filter(Array.isArray)
  const [list] = lists
  if (list === undefined || lists.length > 1) throw broken('an object that holds one list', place)
  return list
}

/**
 * The object of a single read.
 * @param placement where the spec puts it; `either`: not shown, so a `data` that is an object or array is
 * unwrapped, unless the value itself carries `idKey`; an envelope whose `data` is null holds nothing
 * @throws RetryError `broken-envelope` when there is no object or array at that place
 */
export function readSingle(
  value: unknown,
  placement: 'bare' | 'data' | 'either',
  idKey?: string,
): Record<string, unknown> | unknown[] {
  const data = isFields(value) ? own(value, 'data') : undefined
  const wrapped = isFields(data) || Array.isArray(data)
  const carriesId = isFields(value) && idKey !== undefined && Object.hasOwn(value, idKey)
  const isEmptyEnvelope = data === null && isFields(value) && Object.keys(value).length === 1
  const isInData =
    placement === 'data' || (placement === 'either' && (wrapped || isEmptyEnvelope) && !carriesId)
  const single = isInData ? data : value
  if (isFields(single) || Array.isArray(single)) return single
  throw broken(placement === 'data' ? 'an object in data' : 'an object', value)
}

/**
 * The list of a read that answers with all of it in `data` (transcripts, playbook results).
 * @throws RetryError `broken-envelope` when there is none
 */
export function readDataList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : listUnderData(value)
}

export interface CursorGuard {
  /** Notes a cursor that is about to be sent. */
  sent(cursor: string): void
  /** Whether this pass has sent a cursor before. */
  wasSent(cursor: string): boolean
}

/**
 * Notices a cursor that comes twice in a pass, which would be a loop. Remembers the last `capacity` cursors by a
 * short digest each (about 5 MB when full).
 */
export function createCursorGuard(capacity = 100_000): CursorGuard {
  const seen = new Set<string>()
  const digest = (cursor: string) => createHash('sha1').update(cursor).digest('base64').slice(0, 12)
  return {
    sent(cursor) {
      seen.add(digest(cursor))
      // A set keeps the order of insertion: its first is the oldest.
      const [oldest] = seen.size > capacity ? seen : []
      if (oldest !== undefined) seen.delete(oldest)
    },
    wasSent: cursor => seen.has(digest(cursor)),
  }
}

function listUnderData(value: unknown): readonly unknown[] {
  const data = isFields(value) ? own(value, 'data') : undefined
  if (!Array.isArray(data)) throw broken('a list in data', value)
  return data
}

function pagingUnder(value: unknown, name: 'page_info' | 'pagination'): Fields {
  const paging = isFields(value) ? own(value, name) : undefined
  if (!isFields(paging)) throw broken(`an object ${name}`, value)
  return paging
}

/** A cursor as text; undefined when there is none. */
function cursorText(value: unknown, name: string): string | undefined {
  if (value === null || value === undefined || value === '') return undefined
  if (typeof value === 'string') return value
  if (typeof value === 'number') return String(value)
  const exact = exactNumber(value)
  if (exact === undefined) throw broken(`${name} as a string`, value)
  return exact.text
}

function count(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : undefined
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isExactNumber(value)
}

function own(fields: Fields, key: string): unknown {
  return Object.hasOwn(fields, key) ? fields[key] : undefined
}

/** Says the kind of what came and the known names among its fields: any other name could be anyone's words. */
function broken(expected: string, found: unknown): RetryError {
  return new RetryError(`The answer lacks its envelope: expected ${expected}, found ${describe(found)}`, {
    code: 'broken-envelope',
    hint: 'The API or something in front of it answered with something else than its description says.',
  })
}

function describe(value: unknown): string {
  if (value === null || value === undefined) return value === null ? 'null' : 'nothing'
  if (Array.isArray(value)) return 'a list'
  if (!isFields(value)) return `a ${isExactNumber(value) ? 'number' : typeof value}`
  const names = Object.keys(value).filter(isTellable)
  return names.length === 0 ? 'an object' : `an object with ${names.slice(0, 8).join(', ')}`
}
