import { mix } from '../base/random.ts'
import { SALT } from '../base/scene.ts'
import type { Cursors } from '../http/paging.ts'

export const FAULT_KINDS = [
  /** An error status with an HTML or JSON body. */
  'status',
  /** The connection is reset before any byte of an answer. */
  'reset',
  /** The connection is reset in the middle of the body. */
  'reset-in-body',
  /** A 200 whose JSON ends in the middle. Its content-length is that of the shortened body. */
  'truncate',
  /** Headers never come. */
  'stall',
  /** The body stops in the middle and never ends. */
  'stall-in-body',
  /** A 200 with an HTML page. */
  'html',
  /** The right body under the content type text/plain. */
  'wrong-type',
  /** A body that never ends. */
  'endless',
  /** The end cursor of a page is the cursor of its request. */
  'repeat-cursor',
  /** A cursor is refused with 400 after `uses` requests with it, or `ageMs` after it was last issued. */
  'expire-cursor',
  /** A 302 to another path of this server. */
  'redirect',
  /** The right answer as of the request, sent `delayMs` later, so that answers to later requests overtake it. */
  'late',
  /** The answer of a replica: the state of the workspace `delayMs` ago. */
  'lag',
  /** An empty page without a next page in place of a list. Other answers are unchanged. */
  'empty',
  /** `null` in place of the data. */
  'null-data',
  /** A list with `bytesPerItem` more bytes for each item and the same content. */
  'bloat',
  /** The right answer with each match of `from` replaced by `to`. */
  'rewrite',
  /** A 200 with the body `to`, whatever was asked. */
  'body',
  /** A list without about half of its items, and each time without others. */
  'partial',
  /** The right answer with every id that is a UUID in upper case. */
  'upper-case',
  /** The right answer with a `Date` header that is `delayMs` ahead. */
  'ahead',
] as const

export interface Fault {
  kind: (typeof FAULT_KINDS)[number]
  /** The share of matching requests that are hit, 0 to 1. Default 1. */
  probability?: number
  /** Matches only requests of this route template. */
  route?: string
  /** Matches only requests of this path. */
  path?: string
  /** Matches only requests whose path or query has this text, such as an id. */
  requestHas?: string
  /** Matches only requests whose right answer has this text, such as an id. Cursor faults and `lag` cannot have it. */
  answerHas?: string
  /** The number of matching requests before the first that can be hit. */
  afterRequests?: number
  /** The largest number of requests to hit. */
  atMost?: number
  /** For `status`. Default 500. */
  status?: number
  /** For `status`: a Retry-After header, in seconds. */
  retryAfter?: number
  uses?: number
  ageMs?: number
  /** Default 50 for `late`, 1000 for `lag`, an hour for `ahead`. */
  delayMs?: number
  /** For `bloat`. Default 100,000. */
  bytesPerItem?: number
  /** For `rewrite`: a regular expression. */
  from?: string
  /** For `rewrite` and `body`: `$1` is the first group, `{n}` the number of the answer, from 0. */
  to?: string
}

export type Faults = readonly Fault[]

/** A fault that hits a request, and how many it has hit before. */
export interface FaultHit extends Fault {
  number: number
}

/** One request, with its right answer once that is known. */
export interface FaultedRequest {
  template: string
  path: string
  query: string
  body?: string
}

export interface FaultPlan {
  /**
   * Counts the request and returns the faults that hit it. A request is passed twice: without `body` for faults
   * that do not depend on the answer, then with `body` for those with `answerHas`.
   */
  faultsFor(request: FaultedRequest): FaultHit[]
  /** The number of requests that each fault has hit, in the order of the faults. */
  hitCounts(): number[]
  /** The cursors for one request that was sent with the cursor `given`, altered by the faults that hit it. */
  cursors(
    plain: Cursors,
    faultsOfRequest: readonly Fault[],
    given: string | undefined,
    nowMs: number,
  ): Cursors
}

/** The seed alone decides whether the n-th matching request is hit. */
export function createFaultPlan(faults: Faults, seed: number): FaultPlan {
  const counts = faults.map(() => ({ seen: 0, hits: 0 }))
  const issued = new Map<string, { at: number; uses: number }>()

  return {
    faultsFor: request =>
      faults.flatMap((fault, number) => {
        const count = counts[number]
        if (!count || !isMatch(fault, request)) return []
        const turn = count.seen++
        if (turn < (fault.afterRequests ?? 0) || count.hits >= (fault.atMost ?? Number.POSITIVE_INFINITY))
          return []
        const isHit = mix(seed, SALT.fault + number, turn) / 0x1_0000_0000 < (fault.probability ?? 1)
        return isHit ? [withNumber(fault, count.hits++)] : []
      }),
    hitCounts: () => counts.map(({ hits }) => hits),
    cursors: (plain, faultsOfRequest, given, nowMs) => {
      const isRepeated = faultsOfRequest.some(fault => fault.kind === 'repeat-cursor') && given !== undefined
      const expiry = faultsOfRequest.find(fault => fault.kind === 'expire-cursor')
      if (!isRepeated && !expiry) return plain
      return {
        encode: (position, scope) => {
          const cursor = isRepeated ? given : plain.encode(position, scope)
          if (expiry) remember(issued, cursor, nowMs)
          return cursor
        },
        decode: (query, scope) => {
          const known = given === undefined ? undefined : issued.get(given)
          if (expiry && known) {
            known.uses++
            const isOld = expiry.ageMs !== undefined && nowMs - known.at >= expiry.ageMs
            const isUsedUp = expiry.uses !== undefined && known.uses > expiry.uses
            if (isOld || isUsedUp) throw query.badRequest('cursor has expired')
          }
          return plain.decode(query, scope)
        },
      }
    },
  }
}

const withNumber = (fault: Fault, number: number): FaultHit => ({
  ...fault,
  number,
  ...(fault.to !== undefined && { to: fault.to.replaceAll('{n}', String(number)) }),
})

function isMatch({ route, path, requestHas, answerHas }: Fault, request: FaultedRequest): boolean {
  return (
    (route === undefined || route === request.template) &&
    (path === undefined || path === request.path) &&
    (requestHas === undefined || `${request.path}?${request.query}`.includes(requestHas)) &&
    (answerHas === undefined ? request.body === undefined : request.body?.includes(answerHas) === true)
  )
}

const MAX_REMEMBERED = 100_000

/** When a cursor is issued again, its age starts from 0, but its number of uses stays. */
function remember(issued: Map<string, { at: number; uses: number }>, cursor: string, at: number): void {
  const uses = issued.get(cursor)?.uses ?? 0
  // Deleted first, so that the map stays in the order of the times.
  issued.delete(cursor)
  const oldest = issued.keys().next()
  if (issued.size >= MAX_REMEMBERED && !oldest.done) issued.delete(oldest.value)
  issued.set(cursor, { at, uses })
}
