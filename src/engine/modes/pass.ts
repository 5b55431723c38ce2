import { type CursorGuard, createCursorGuard } from '../../api/paging.ts'
import { type ParleyError, ResourceError } from '../../errors.ts'
import { NO_PASS, type Segment, type Segments } from '../../store/sync/segments.ts'
import type { EngineContext } from '../context.ts'
import type { FeedName } from '../feeds.ts'
import type { Reply } from '../scheduler/job.ts'

/** What all passes over a list share: their begin, their end, and what to do when a cursor leads nowhere. */

export type Query = Readonly<Record<string, string>>

/** The pass's begin by the server's clock and its round, kept from the first page on. */
export function withPassBegun(
  segment: Segment,
  context: EngineContext,
  feed: FeedName,
  reply: Reply,
): Segment {
  context.wishes.delete(feed.feed)
  return {
    ...segment,
    unavailableSince: null,
    passStartedAt: segment.passStartedAt ?? reply.serverSentAt,
    passRound: segment.passRound ?? context.round(feed.resource),
  }
}

/** The state of a segment whose last request was answered. */
export const NOT_FAILED = { attempts: 0, retryAt: null } satisfies Partial<Segment>

/** The pass reached the end. */
export function withPassEnded(segment: Segment): Segment {
  return {
    ...segment,
    ...NO_PASS,
    ...NOT_FAILED,
    rows: segment.rows,
    restarts: 0,
    listedAt: segment.passStartedAt,
    listedRound: segment.passRound ?? 0,
  }
}

/** The pass is to begin again at the top; what it stored stays. */
export function restartedPass(segment: Segment): Segment {
  return { ...segment, ...NO_PASS, restarts: segment.restarts + 1 }
}

/**
 * What is kept of a pass that failed: its checkpoint, unless that is what failed, or every later run would ask with
 * the same dead cursor.
 */
export function abandonedPass(segment: Segment, error: ParleyError): Segment {
  const isDead = Object.values(SETBACKS).some(({ code }) => code === error.code)
  return isDead ? { ...segment, ...NO_PASS, restarts: 0 } : segment
}

export interface LoopGuards {
  /** Notes what is about to be asked for; a pass that begins again is forgotten first. */
  asking(segment: Segment): void
  /** Whether the next page is one that this pass has asked for before. */
  repeats(segment: Segment, next: Query | null): boolean
  ended(segment: Segment): void
}

/**
 * Notices passes that turn in circles. Kept in memory: after a restart a circle is read once more at most. Asking
 * again for the same page, because its answer was lost, is no circle.
 */
export function createLoopGuards(): LoopGuards {
  const guards = new Map<number, CursorGuard>()
  return {
    asking({ id, cursor }) {
      if (cursor === null) guards.delete(id)
      const guard = guards.get(id) ?? createCursorGuard()
      guards.set(id, guard)
      if (cursor !== null) guard.sent(JSON.stringify(cursor))
    },
    ended: ({ id }) => {
      guards.delete(id)
    },
    repeats: ({ id }, next) => next !== null && guards.get(id)?.wasSent(JSON.stringify(next)) === true,
  }
}

export type Setback = 'refused' | 'repeated'

const SETBACKS: Readonly<Record<Setback, { code: string; says: string }>> = {
  refused: {
    code: 'cursor-refused',
    says: 'The API refused a cursor that it had given, also after a new start',
  },
  repeated: { code: 'paging-stuck', says: 'The API gave the same cursor twice, also after a new start' },
}

export function setbackError(setback: Setback): ResourceError {
  const { code, says } = SETBACKS[setback]
  return new ResourceError(says, {
    code,
    hint: 'Run it again later; when it stays so, the list cannot be read to its end at present.',
  })
}

/** Cuts a segment and returns the older part, which was last listed when the whole was. */
export function cutOff(segments: Segments, segment: Segment, at: string): Segment {
  const { listedAt, listedRound } = segment
  const older = { ...segments.cut(segment, at), listedAt, listedRound }
  segments.save(older)
  if (segment.edgeAt !== null) segments.save({ ...withPassEnded(segment), from: at })
  return older
}

/**
 * Leaves what a pass has still before it, from an instant on, to a separate pass. The pass itself keeps its query
 * and cursor, also while its next page is asked for, and ends when it has passed that instant.
 */
export function leaveRest(segments: Segments, segment: Segment, at: string): void {
  const { listedAt, listedRound, passStartedAt, passRound } = segment
  const rest = segments.cut(segment, at)
  // What was listed before is due at once only as a part of the pass under way.
  segments.save({ ...rest, listedAt, listedRound, ...(listedAt !== null && { passStartedAt, passRound }) })
}

/** Whether the pass has left its segment's top and not reached its end. */
export function canCutAtEdge({ edgeAt, from, to }: Segment): boolean {
  return edgeAt !== null && (to === null || edgeAt < to) && (from === null || edgeAt > from)
}

/**
 * A timeline's cursor leads nowhere. Everything so far has been read without a gap, so the segment is cut
 * there: the part above counts as listed, and the rest gets a query of its own, which no cursor is needed for. Where
 * the pass had not got anywhere yet, it begins again, once.
 * @throws ResourceError when it had begun again already
 */
export function cutWhereItStands(segments: Segments, segment: Segment, setback: Setback): void {
  const { edgeAt } = segment
  if (edgeAt !== null && canCutAtEdge(segment)) {
    cutOff(segments, segment, edgeAt)
    return
  }
  if (segment.restarts > 0) throw setbackError(setback)
  segments.save(restartedPass(segment))
}
