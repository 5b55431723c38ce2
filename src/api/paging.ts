import { RetryError } from '../base/errors.ts'
import { exactNumber, isExactNumber, isJsonObject } from '../base/json.ts'
import type { ListPaging } from '../declare/resource.ts'
import type { Query } from './request.ts'
import { isSafeToken } from './server-text.ts'

/**
 * Reads the pages of lists (spec: Pagination styles): turns an answer and the query of its request into items and the
 * query parameters of the next page. Pure.
 */

/**
 * - `v2-cursor`, `v1-cursor`, `v1-page`: as in the spec;
 * - `any`: a list whose shape the spec does not state;
 * - `data-list`: the whole list in `data`, in one answer;
 * - `single`: one object, bare or in `data`.
 */
export type PagingStyle = ListPaging | 'data-list' | 'single'

/** The largest allowed `limit`; undefined where the API may not accept `limit`. */
export const MAX_LIMITS: Readonly<Record<PagingStyle, number | undefined>> = {
  'v2-cursor': 100,
  'v1-cursor': 50,
  'v1-page': 200,
  any: undefined,
  'data-list': undefined,
  single: undefined,
}

/** How many items a page of a list has, or where the API may not accept `limit`, probably has. */
export const pageSizeOf = (style: ListPaging): number => MAX_LIMITS[style] ?? 50

export interface Page {
  /** As sent by the API, not validated. */
  items: readonly unknown[]
  /** Query parameters to add for the next page; null when there is no next page. */
  next: Query | null
  /** Only for v1 pages: the API's count of all items. */
  totalSize?: number
  /** Only for v1 pages of which the totals say that this one is the last: the page after it, should they be too low. */
  beyond?: Query
  /** Only for style `any`: the shape that was found. */
  recognised?: 'v2-cursor' | 'v1-cursor' | 'v1-page' | 'bare'
}

type PagingFields = Record<string, unknown>

/**
 * Reads one page of a list.
 * @param sentQuery the whole query of the request for this page
 * @throws RetryError `broken-envelope` when the answer is not a page of that style, or has far more items than
 *   requested
 */
export function readPage(style: PagingStyle, value: unknown, sentQuery: Query): Page {
  const page = READERS[style](value, sentQuery)
  const most = mostItems(sentQuery)
  if (page.items.length > most) throw wrongForm(`at most ${most} items`, String(page.items.length))
  return page
}

/**
 * A server may ignore a `limit`, even a small one. An answer with more than ten times as many items, or with more than
 * 10,000 where no `limit` was sent, is not accepted as a page, since it would block the process.
 */
function mostItems({ limit }: Query): number {
  return limit === undefined ? 10_000 : 10 * Math.max(Number(limit), 100)
}

const READERS: Readonly<Record<PagingStyle, (value: unknown, sent: Query) => Page>> = {
  'v2-cursor': value => readV2Cursor(listUnderData(value), pagingUnder(value, 'page_info')),
  'v1-cursor': value => readV1Cursor(listUnderData(value), pagingUnder(value, 'pagination')),
  'v1-page': (value, sent) => readV1Page(listUnderData(value), pagingUnder(value, 'pagination'), sent),
  any: readAnyList,
  'data-list': value => ({ items: readDataList(value), next: null }),
  single: value => ({ items: isNullData(value) ? [] : [readSingle(value, 'either')], next: null }),
}

/** Only `has_next_page` says whether there is a next page. The final page has an `end_cursor` too (spec: PageInfo). */
function readV2Cursor(items: readonly unknown[], paging: PagingFields): Page {
  const more = own(paging, 'has_next_page')
  if (typeof more !== 'boolean') throw brokenEnvelope('has_next_page as true or false', more)
  const cursor = cursorText(own(paging, 'end_cursor'), 'end_cursor')
  if (more && cursor === undefined) {
    throw brokenEnvelope('an end_cursor, since has_next_page is true', own(paging, 'end_cursor'))
  }
  return { items, next: more && cursor !== undefined ? { cursor } : null }
}

function readV1Cursor(items: readonly unknown[], paging: PagingFields): Page {
  const cursor = cursorText(own(paging, 'next_cursor'), 'next_cursor')
  return { items, next: cursor === undefined ? null : { cursor } }
}

/**
 * Counts up from the requested page number, not from the number in the answer. Otherwise a pass would never end on a
 * server that ignores `page` and always sends the first page.
 */
function readV1Page(items: readonly unknown[], paging: PagingFields, sent: Query): Page {
  const page = Number(sent['page'] ?? wholeNumber(own(paging, 'page')) ?? 1)
  const totalSize = wholeNumber(own(paging, 'total_size'))
  const limit = wholeNumber(own(paging, 'limit')) ?? Number(sent['limit'] ?? 0)
  const totalPages = wholeNumber(own(paging, 'total_pages'))
  const bySize = totalSize !== undefined && limit > 0 ? Math.ceil(totalSize / limit) : undefined
  const isUnknown = totalPages === undefined && bySize === undefined
  const hasItems = items.length > 0
  // The totals may contradict each other. An empty page ends the list unless `total_pages` says otherwise.
  const isWithinTotals = page < (totalPages ?? 0) || (hasItems && (isUnknown || page < (bySize ?? 0)))
  const following = { page: String(page + 1) }
  return {
    items,
    ...(isWithinTotals ? { next: following } : { next: null, beyond: following }),
    ...(totalSize !== undefined && { totalSize }),
  }
}

/**
 * Reads a list of unknown shape: a bare array, or an object with one list. The list is in `data`, in an object in
 * `data`, or under any other name. The object may have the paging fields of one of the three styles. An unknown paging
 * object is an error, since a part of a list must never count as the whole list.
 */
function readAnyList(value: unknown, sent: Query): Page {
  if (Array.isArray(value)) return { items: value, next: null, recognised: 'bare' }
  if (!isJsonObject(value)) throw brokenEnvelope('a list', value)
  const data = own(value, 'data')
  const places = isJsonObject(data) ? [value, data] : [value]
  const items = Array.isArray(data) ? data : onlyList(isJsonObject(data) ? data : value)
  const paging = findPaging(places)
  if (paging === undefined) return { items, next: null, recognised: 'bare' }
  const { recognised, read } = recognisePaging(paging)
  return { ...read(items, paging, sent), recognised }
}

interface RecognisedPaging {
  key: string
  recognised: 'v2-cursor' | 'v1-cursor' | 'v1-page'
  read(items: readonly unknown[], paging: PagingFields, sent: Query): Page
}

/** The key that identifies each style, the most specific first. */
const PAGING_KEYS: readonly RecognisedPaging[] = [
  { key: 'has_next_page', recognised: 'v2-cursor', read: readV2Cursor },
  { key: 'next_cursor', recognised: 'v1-cursor', read: readV1Cursor },
  { key: 'total_pages', recognised: 'v1-page', read: readV1Page },
  { key: 'total_size', recognised: 'v1-page', read: readV1Page },
]

function recognisePaging(paging: PagingFields): RecognisedPaging {
  const found = PAGING_KEYS.find(({ key }) => Object.hasOwn(paging, key))
  if (found === undefined)
    throw brokenEnvelope('has_next_page, next_cursor or total_pages in the paging object', paging)
  return found
}

/**
 * The object with the paging fields: a paging object in one of the places, or a place itself if it has a paging key. An
 * empty paging object does not count.
 * @param places the answer, and the object in its `data` if there is one
 */
function findPaging(places: readonly PagingFields[]): PagingFields | undefined {
  for (const place of places) {
    for (const name of PAGING_OBJECTS) {
      const paging = own(place, name)
      if (isJsonObject(paging) && Object.keys(paging).length > 0) return paging
    }
    if (PAGING_KEYS.some(({ key }) => Object.hasOwn(place, key))) return place
  }
  return undefined
}

const PAGING_OBJECTS = ['page_info', 'pagination']

function onlyList(place: PagingFields): readonly unknown[] {
  const lists = Object.values(place).filter(Array.isArray)
  const [list] = lists
  if (list === undefined || lists.length > 1) throw brokenEnvelope('an object that holds one list', place)
  return list
}

/**
 * The object of a single read.
 * @param placement where the spec puts the object. `either`: the spec does not state the place. Then `data` is used if
 *   it is an object or an array, unless the answer itself has `idKey`. An answer that is only `{ "data": null }` has no
 *   object.
 * @throws RetryError `broken-envelope` when there is no object or array at that place
 */
export function readSingle(
  value: unknown,
  placement: 'bare' | 'data' | 'either',
  idKey?: string,
): Record<string, unknown> | unknown[] {
  const data = isJsonObject(value) ? own(value, 'data') : undefined
  const wrapped = isJsonObject(data) || Array.isArray(data)
  const carriesId = isJsonObject(value) && idKey !== undefined && Object.hasOwn(value, idKey)
  const isInData =
    placement === 'data' || (placement === 'either' && (wrapped || isNullData(value)) && !carriesId)
  const single = isInData ? data : value
  if (isJsonObject(single) || Array.isArray(single)) return single
  throw brokenEnvelope(placement === 'data' ? 'an object in data' : 'an object', value)
}

/** Whether the answer is only `{ "data": null }`: the API has no such document. */
export function isNullData(value: unknown): boolean {
  return isJsonObject(value) && own(value, 'data') === null && Object.keys(value).length === 1
}

/**
 * Reads the whole list of a read without paging, in `data` or as a bare array (transcripts, playbook results).
 * @throws RetryError `broken-envelope` when there is no list
 */
export function readDataList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : listUnderData(value)
}

function listUnderData(value: unknown): readonly unknown[] {
  const data = isJsonObject(value) ? own(value, 'data') : undefined
  if (!Array.isArray(data)) throw brokenEnvelope('an object with a list in data', value)
  return data
}

function pagingUnder(value: unknown, name: 'page_info' | 'pagination'): PagingFields {
  const paging = isJsonObject(value) ? own(value, name) : undefined
  if (!isJsonObject(paging)) throw brokenEnvelope(`an object with an object in ${name}`, value)
  return paging
}

/** A cursor as text; undefined when there is none. */
function cursorText(value: unknown, name: string): string | undefined {
  if (value === null || value === undefined || value === '') return undefined
  if (typeof value === 'string') return value
  if (typeof value === 'number') return String(value)
  const exact = exactNumber(value)
  if (exact === undefined) throw brokenEnvelope(`${name} as a string`, value)
  return exact.text
}

function wholeNumber(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : undefined
}

function own(fields: PagingFields, key: string): unknown {
  return Object.hasOwn(fields, key) ? fields[key] : undefined
}

/** The message names only the value's type and its safe field names, since other names may be personal content. */
function brokenEnvelope(expected: string, found: unknown): RetryError {
  return wrongForm(expected, describe(found))
}

function wrongForm(expected: string, found: string): RetryError {
  return new RetryError(`The answer has the wrong form: expected ${expected}, found ${found}`, {
    code: 'broken-envelope',
    hint: 'Check whether a proxy changes the answers of the API. If none does, the API does not follow its description.',
  })
}

function describe(value: unknown): string {
  if (value === null || value === undefined) return value === null ? 'null' : 'nothing'
  if (Array.isArray(value)) return 'a list'
  if (!isJsonObject(value)) return `a ${isExactNumber(value) ? 'number' : typeof value}`
  if (own(value, 'data') === null) return 'an object whose data is null'
  const names = Object.keys(value).filter(isSafeToken)
  return names.length === 0 ? 'an object' : `an object with ${names.slice(0, 8).join(', ')}`
}
