import { mix } from '../draw.ts'
import type { Cursors } from '../http/paging.ts'
import { SALT } from '../world/scene.ts'

export const FAULT_KINDS = [
  /** An error status with an HTML or JSON body. */
  'status',
  /** The connection is reset before any byte of an answer. */
  'reset',
  /** The connection is reset in the middle of the body. */
  'reset-in-body',
  /** A 200 that ends in the middle of its JSON, with a content-length to match. */
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
  /** A page names the cursor that asked for it as its end. */
  'repeat-cursor',
  /** A cursor is refused with 400 after `uses` requests with it, or `ageMs` after it was given out. */
  'expire-cursor',
  /** A 302 to another path of this server. */
  'redirect',
  /** The right answer, as it was at once, `delayMs` later: those to later requests overtake it. */
  'late',
  /** The answer of a replica: how the workspace was `delayMs` ago. */
  'lag',
  /** A list without any item, at its end. Other answers stay as they are. */
  'empty',
  /** `null` in place of the data. */
  'null-data',
  /** A list that has `bytesOfItem` more bytes for each of its items, and no other content. */
  'bloat',
  /** The right answer with its text changed: each match of `from` becomes `to`. */
  'rewrite',
] as const

export interface Fault {
  kind: (typeof FAULT_KINDS)[number]
  /** Share of the matching requests, 0 to 1. Default 1. */
  probability?: number
  /** Only requests of this route template. */
  route?: string
  /** Only requests of this path. */
  path?: string
  /** Only requests whose path or query has this text, such as an id. */
  naming?: string
  /** Only requests whose right answer has this text, such as the id of one item. Not for faults of cursors or `lag`. */
  showing?: string
  /** Leaves so many matching requests alone first. */
  afterRequests?: number
  /** Happens at most so many times. */
  first?: number
  /** Of `status`: which one, 500 when not given. */
  status?: number
  /** Of `status` 503 and the like: a Retry-After header, in seconds. */
  retryAfter?: number
  uses?: number
  ageMs?: number
  /** Of `late`: 50 when not given. Of `lag`: 1000 when not given. */
  delayMs?: number
  /** Of `bloat`: 100,000 when not given. */
  bytesOfItem?: number
  /** Of `rewrite`: a regular expression. */
  from?: string
  /** Of `rewrite`: `$1` is the first group, `{n}` the number of the rewritten answer, from 0. */
  to?: string
}

export type Faults = readonly Fault[]

/** One request, with the right answer to it once that is known. */
export interface Struck {
  template: string
  path: string
  query: string
  body?: string
}

export interface FaultPlan {
  /** The faults that strike this request. Those that go by the answer are found when it is given, the others before. */
  strike(request: Struck): Fault[]
  /** How many requests each fault has struck so far, in the order of the faults. */
  struck(): number[]
  /** Cursors as the faults let them be, for one request that sent `given`. */
  cursors(plain: Cursors, struck: readonly Fault[], given: string | undefined, nowMs: number): Cursors
}

/** The n-th matching request is struck or not by seed alone. */
export function createFaultPlan(faults: Faults, seed: number): FaultPlan {
  const counts = faults.map(() => ({ seen: 0, struck: 0 }))
  const issued = new Map<string, { at: number; uses: number }>()

  return {
    strike: request =>
      faults.flatMap((fault, number) => {
        const count = counts[number]
        if (!count || !isAimedAt(fault, request)) return []
        const turn = count.seen++
        if (turn < (fault.afterRequests ?? 0) || count.struck >= (fault.first ?? Number.POSITIVE_INFINITY))
          return []
        const isStruck = mix(seed, SALT.fault + number, turn) / 0x1_0000_0000 < (fault.probability ?? 1)
        return isStruck ? [numbered(fault, count.struck++)] : []
      }),
    struck: () => counts.map(({ struck }) => struck),
    cursors: (plain, struck, given, nowMs) => {
      const isRepeated = struck.some(fault => fault.kind === 'repeat-cursor') && given !== undefined
      const expiry = struck.find(fault => fault.kind === 'expire-cursor')
      if (!isRepeated && !expiry) return plain
      return {
        encode: (position, scope) => {
          const cursor = isRepeated ? given : plain.encode(position, scope)
          if (expiry && !issued.has(cursor)) remember(issued, cursor, nowMs)
          return cursor
        },
        decode: (query, scope) => {
          const known = given === undefined ? undefined : issued.get(given)
          if (expiry && known) {
            known.uses++
            const isOld = expiry.ageMs !== undefined && nowMs - known.at >= expiry.ageMs
            const isWorn = expiry.uses !== undefined && known.uses > expiry.uses
            if (isOld || isWorn) throw query.refuse('cursor has expired')
          }
          return plain.decode(query, scope)
        },
      }
    },
  }
}

const numbered = (fault: Fault, number: number): Fault =>
  fault.to === undefined ? fault : { ...fault, to: fault.to.replaceAll('{n}', String(number)) }

function isAimedAt({ route, path, naming, showing }: Fault, request: Struck): boolean {
  return (
    (route === undefined || route === request.template) &&
    (path === undefined || path === request.path) &&
    (naming === undefined || `${request.path}?${request.query}`.includes(naming)) &&
    (showing === undefined ? request.body === undefined : request.body?.includes(showing) === true)
  )
}

const MOST_REMEMBERED = 100_000

function remember(issued: Map<string, { at: number; uses: number }>, cursor: string, at: number): void {
  const oldest = issued.keys().next()
  if (issued.size >= MOST_REMEMBERED && !oldest.done) issued.delete(oldest.value)
  issued.set(cursor, { at, uses: 0 })
}
