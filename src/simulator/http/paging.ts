import { mix } from '../base/random.ts'
import type { Position } from '../base/timeline.ts'
import type { RequestQuery } from './query.ts'

/** The shapes that a list can have. */
export const ENVELOPES = ['v2', 'v1-cursor', 'v1-page', 'bare', 'unlimited'] as const
export type Envelope = (typeof ENVELOPES)[number]

/** Encodes and checks cursors. Faults replace these functions, so that cursors expire or repeat. */
export interface Cursors {
  /** `scope` is the list with its filters: a cursor is valid only for the list that returned it. */
  encode(position: Position, scope: string): string
  decode(query: RequestQuery, scope: string): Position | undefined
}

/** Visits the items after the position `after`, in list order, until `visit` returns false. */
export type Scan = (after: Position | undefined, visit: (index: number) => boolean) => void

export interface Listing {
  scan: Scan
  positionOf: (index: number) => Position
  json: (index: number) => string
}

export function plainCursors(): Cursors {
  return {
    encode: ({ at, index }, scope) =>
      Buffer.from(`${at.toString(36)}.${index.toString(36)}.${scopeMark(scope)}`).toString('base64url'),
    decode: (query, scope) => {
      const cursor = query.nonEmptyText('cursor')
      if (cursor === undefined) return undefined
      const [at = '', index = '', mark = '', ...rest] = Buffer.from(cursor, 'base64url').toString().split('.')
      if (
        rest.length > 0 ||
        mark !== scopeMark(scope) ||
        !/^-?[0-9a-z]+$/.test(at) ||
        !/^-?[0-9a-z]+$/.test(index)
      ) {
        throw query.badRequest('cursor is not valid for this list')
      }
      return { at: Number.parseInt(at, 36), index: Number.parseInt(index, 36) }
    },
  }
}

function scopeMark(scope: string): string {
  let hash = 7
  for (let i = 0; i < scope.length; i++) hash = mix(hash, 3, scope.charCodeAt(i))
  return hash.toString(36)
}

interface ServedPage {
  rows: string[]
  last: Position | undefined
  hasNext: boolean
}

function takePage(listing: Listing, after: Position | undefined, limit: number): ServedPage {
  const page: ServedPage = { rows: [], last: undefined, hasNext: false }
  listing.scan(after, index => {
    if (page.rows.length === limit) {
      page.hasNext = true
      return false
    }
    page.rows.push(listing.json(index))
    page.last = listing.positionOf(index)
    return true
  })
  return page
}

export function v2Page(query: RequestQuery, cursors: Cursors, scope: string, listing: Listing): string {
  const limit = query.limit(100, 30)
  const page = takePage(listing, cursors.decode(query, scope), limit)
  const cursor = page.last === undefined ? 'null' : `"${cursors.encode(page.last, scope)}"`
  return `{"data":[${page.rows.join(',')}],"page_info":{"end_cursor":${cursor},"has_next_page":${page.hasNext}}}`
}

export function v1CursorPage(query: RequestQuery, cursors: Cursors, scope: string, listing: Listing): string {
  const limit = query.limit(50, 30)
  const page = takePage(listing, cursors.decode(query, scope), limit)
  const cursor = page.hasNext && page.last ? `"${cursors.encode(page.last, scope)}"` : 'null'
  return `{"data":[${page.rows.join(',')}],"pagination":{"next_cursor":${cursor}}}`
}

export function v1NumberedPage(query: RequestQuery, { scan, json }: Listing): string {
  const page = query.page()
  const limit = query.limit(200, 50)
  const all = scanAll(scan)
  const rows = all.slice((page - 1) * limit, page * limit).map(json)
  return (
    `{"data":[${rows.join(',')}],"pagination":{"page":${page},"limit":${limit}` +
    `,"total_size":${all.length},"total_pages":${Math.ceil(all.length / limit)}}}`
  )
}

function scanAll(scan: Scan): number[] {
  const all: number[] = []
  scan(undefined, index => all.push(index) > 0)
  return all
}

/** A page of a list whose paging the specification does not show, in the given envelope. */
export function shapedPage(
  envelope: Envelope,
  query: RequestQuery,
  cursors: Cursors,
  scope: string,
  listing: Listing,
): string {
  if (envelope === 'unlimited' && query.has('limit'))
    throw query.badRequest('query parameter limit is not accepted')
  const pages: Record<Envelope, () => string> = {
    v2: () => v2Page(query, cursors, scope, listing),
    'v1-cursor': () => v1CursorPage(query, cursors, scope, listing),
    'v1-page': () => v1NumberedPage(query, listing),
    bare: () => `[${scanAll(listing.scan).map(listing.json).join(',')}]`,
    unlimited: () => v1CursorPage(query, cursors, scope, listing),
  }
  return pages[envelope]()
}

/** A listing over an array that is already in list order; its cursor holds the index of the last item. */
export function arrayListing(
  order: readonly number[],
  json: (index: number) => string,
  isBehind: (index: number, last: number) => boolean,
): Listing {
  return {
    scan: (after, visit) => {
      for (const index of order) {
        if (after && !isBehind(index, after.index)) continue
        if (!visit(index)) return
      }
    },
    positionOf: index => ({ at: 0, index }),
    json,
  }
}
