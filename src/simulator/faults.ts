import { mix } from './draw.ts'
import type { Cursors } from './paging.ts'
import { SALT } from './world/scene.ts'

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
] as const

export interface Fault {
  kind: (typeof FAULT_KINDS)[number]
  /** Share of the matching requests, 0 to 1. Default 1. */
  probability?: number
  /** Only requests of this route template. */
  route?: string
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
  /** Of `late`: 50 when not given. */
  delayMs?: number
}

export type Faults = readonly Fault[]

export interface FaultPlan {
  /** The faults that strike this request. */
  strike(template: string): Fault[]
  /** Cursors as the faults let them be, for one request that sent `given`. */
  cursors(plain: Cursors, struck: readonly Fault[], given: string | undefined, nowMs: number): Cursors
}

/** The n-th matching request is struck or not by seed alone. */
export function createFaultPlan(faults: Faults, seed: number): FaultPlan {
  const counts = faults.map(() => ({ seen: 0, struck: 0 }))
  const issued = new Map<string, { at: number; uses: number }>()

  return {
    strike: template =>
      faults.filter((fault, number) => {
        const count = counts[number]
        if (!count || (fault.route !== undefined && fault.route !== template)) return false
        const turn = count.seen++
        if (turn < (fault.afterRequests ?? 0) || count.struck >= (fault.first ?? Number.POSITIVE_INFINITY))
          return false
        const isStruck = mix(seed, SALT.fault + number, turn) / 0x1_0000_0000 < (fault.probability ?? 1)
        if (isStruck) count.struck++
        return isStruck
      }),
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

const MOST_REMEMBERED = 100_000

function remember(issued: Map<string, { at: number; uses: number }>, cursor: string, at: number): void {
  const oldest = issued.keys().next()
  if (issued.size >= MOST_REMEMBERED && !oldest.done) issued.delete(oldest.value)
  issued.set(cursor, { at, uses: 0 })
}
