import type { Query } from '../../api/request.ts'
import { NO_PASS, type Segment, type Segments } from '../../store/sync/segments.ts'
import { type DeadCursor, deadCursorError } from './page-guard.ts'

/** What all passes over a list share: their start, their end, and the recovery from a dead cursor. */

/** State of a segment whose last request was answered. */
export const NOT_FAILED = { attempts: 0, retryAt: null } satisfies Partial<Segment>

/** Saves the segment after its pass has reached the end. Returns it. @param more changes to it */
export function endPassOf(segments: Segments, segment: Segment, more: Partial<Segment> = {}): Segment {
  const ended = {
    ...segment,
    ...NO_PASS,
    ...NOT_FAILED,
    rows: segment.rows,
    restarts: 0,
    listedAt: segment.passStartedAt,
    listedRound: segment.passRound ?? 0,
    ...more,
  }
  segments.save(ended)
  segments.met(segment)
  return ended
}

/** The segment with no pass, so that the next request begins again from the top. Stored rows stay. */
export function segmentToRestart(segment: Segment): Segment {
  return { ...segment, ...NO_PASS, restarts: segment.restarts + 1 }
}

/**
 * Whether the API may have forgotten the cursor of a refused request. If it refuses the whole list, the request without
 * a cursor shows that. Other statuses may be due to a row of the page.
 */
export const isCursorRefusal = (status: number, cursor: Query | null): boolean =>
  cursor !== null && [400, 403, 404].includes(status)

/**
 * Cuts a segment at an instant. If a pass of the segment has read rows, the newer part counts as listed by that pass.
 * Returns the older part.
 */
export function cutOff(segments: Segments, segment: Segment, at: string): Segment {
  const older = segments.cut(segment, at)
  if (segment.edgeAt !== null) endPassOf(segments, segment, { from: at })
  return older
}

/**
 * Moves the part of a pass before an instant to a separate pass. The original keeps its query and cursor, even while a
 * request for its next page is in flight, and ends when it reaches that instant.
 */
export function splitPass(segments: Segments, segment: Segment, at: string): void {
  segments.save({ ...segments.cut(segment, at), ...passOfRest(segment) })
}

/** The pass of a part cut from a segment. If the part was listed before, only a current pass makes it due at once. */
export function passOfRest({ listedAt, passStartedAt, passRound }: Segment): Partial<Segment> {
  return listedAt === null ? {} : { passStartedAt, passRound }
}

/** Cuts a segment in which a page failed. Both parts keep its pass. */
export function cutFailed(segments: Segments, segment: Segment, at: string): Segment[] {
  const { passStartedAt, passRound } = segment
  return [
    { ...segment, from: at },
    { ...segments.cut(segment, at), passStartedAt, passRound },
  ]
}

/** Whether the pass has come to an instant strictly inside its segment, where the segment can be cut. */
export function canCutAtEdge({ edgeAt, from, to }: Segment): boolean {
  return edgeAt !== null && (to === null || edgeAt < to) && (from === null || edgeAt > from)
}

/**
 * Continues a timeline after a dead cursor. The pass has left no gap, so the segment is cut at the pass's last row. The
 * newer part counts as listed. The older part is read by a separate pass, which begins without a cursor. A pass that
 * has made no progress restarts once.
 * @throws ResourceError when the pass was already restarted
 */
export function recoverFromDeadCursor(segments: Segments, segment: Segment, cause: DeadCursor): void {
  const { edgeAt } = segment
  if (edgeAt !== null && canCutAtEdge(segment)) {
    cutOff(segments, segment, edgeAt)
    return
  }
  restartPass(segments, segment, cause)
}

/**
 * Restarts a pass once from the top, after a dead cursor. `kept`: state that the restart does not reset.
 * @throws ResourceError when the pass was already restarted
 */
export function restartPass(
  segments: Segments,
  segment: Segment,
  cause: DeadCursor,
  kept: Partial<Segment> = {},
): void {
  if (segment.restarts > 0) throw deadCursorError(cause)
  segments.save({ ...segmentToRestart(segment), ...kept })
}
