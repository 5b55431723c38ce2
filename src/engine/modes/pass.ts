import { type CursorGuard, createCursorGuard, type Page } from '../../api/paging.ts'
import type { Query } from '../../api/request.ts'
import { type ParleyError, ResourceError } from '../../base/errors.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import { NO_PASS, type Segment, type Segments } from '../../store/sync/segments.ts'
import type { EngineContext } from '../context/context.ts'
import type { Reply } from '../context/job.ts'

/** What all passes over a list share: their start, their end, and the recovery from a dead cursor. */

/**
 * Adds the start of the pass, by the server's clock, its round, and the want that it meets. Only the first page sets
 * them.
 * @param segment as it was when the page was requested, at least its `wantedAt`
 */
export function segmentInPass(
  segment: Segment,
  context: EngineContext,
  resource: ResourceName,
  reply: Reply,
): Segment {
  return {
    ...segment,
    unavailableSince: null,
    passStartedAt: segment.passStartedAt ?? reply.serverSentAt,
    passRound: segment.passRound ?? context.rounds.number(resource),
    // Later pages do not show the records that were published since the pass began.
    passWantedAt: segment.cursor === null ? segment.wantedAt : segment.passWantedAt,
  }
}

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
 * The segment after its pass has failed. It keeps its checkpoint, unless the cursor is dead: every later run would fail
 * with the same cursor.
 */
export function segmentAfterFailure(segment: Segment, error: ParleyError): Segment {
  const isDead = Object.values(DEAD_CURSORS).some(({ code }) => code === error.code)
  return isDead ? { ...segment, ...NO_PASS, restarts: 0 } : segment
}

export interface LoopGuards {
  /** Call it before a page is requested. The first page of a pass discards the cursors of the previous pass. */
  asking(segment: Segment): void
  /** Whether this pass has already requested the next page. */
  repeats(segment: Segment, next: Query | null): boolean
  /**
   * Counts the pages with a next page that have brought nothing new. True when the pass has to wait, because too many
   * came in a row. In the daemon, the pass then waits after each further page of that kind.
   */
  isStuck(segment: Segment, page: Pick<Page, 'next'> & { hasNew: boolean }): boolean
  /**
   * Whether the page before this one in the pass had the same entries. For lists whose entries have no id.
   * @param digests of the entries, in order
   */
  isSamePage(segment: Segment, digests: readonly string[]): boolean
  ended(segment: Segment): void
}

/**
 * Detects passes whose cursors form a loop. The cursors are kept in memory: after a restart, a loop is read at most
 * once more. A page that is requested again because its answer was lost is no loop.
 */
export function createLoopGuards({ isTimed }: { isTimed: boolean }): LoopGuards {
  const guards = new Map<number, CursorGuard>()
  const fruitless = new Map<number, number>()
  const latestPages = new Map<number, { cursor: string; entries: string }>()
  const forget = (id: number) => {
    guards.delete(id)
    latestPages.delete(id)
  }
  return {
    asking({ id, cursor }) {
      if (cursor === null) forget(id)
      const guard = guards.get(id) ?? createCursorGuard()
      guards.set(id, guard)
      if (cursor !== null) guard.sent(JSON.stringify(cursor))
    },
    ended: ({ id }) => {
      forget(id)
      fruitless.delete(id)
    },
    isSamePage({ id, cursor: query }, digests) {
      const [cursor, entries] = [JSON.stringify(query), digests.join()]
      const latest = latestPages.get(id)
      // A page that is requested again has the cursor that it had.
      const isSame = entries !== '' && latest?.entries === entries && latest.cursor !== cursor
      if (!isSame) latestPages.set(id, { cursor, entries })
      return isSame
    },
    isStuck({ id, attempts }, page) {
      const inARow = isFruitless(page) ? (fruitless.get(id) ?? 0) + 1 : 0
      const isTooMany = inARow > 0 && inARow >= (isTimed && attempts > 0 ? 1 : MOST_FRUITLESS_PAGES)
      fruitless.set(id, isTooMany ? 0 : inARow)
      return isTooMany
    },
    repeats: ({ id }, next) => next !== null && guards.get(id)?.wasSent(JSON.stringify(next)) === true,
  }
}

/** A page with a next page that has brought nothing new. It does not count as a success after failures. */
export const isFruitless = ({ next, hasNew }: Pick<Page, 'next'> & { hasNew: boolean }): boolean =>
  next !== null && !hasNew

/**
 * A list that is filtered at the server may have this many empty pages in a row. More, or as many pages with items that
 * earlier ones had, look like a fault, and are read ever more slowly.
 */
export const MOST_FRUITLESS_PAGES = 20

export const fruitlessPagesError = (): ResourceError =>
  new ResourceError(`The API returned ${MOST_FRUITLESS_PAGES} pages in a row without a new item`, {
    code: 'paging-empty',
    hint: 'parley goes on with the next page later. If the error persists, report it to the provider of the API.',
  })

/**
 * Whether the API may have forgotten the cursor of a refused request. If it refuses the whole list, the request without
 * a cursor shows that. Other statuses may be due to a row of the page.
 */
export const isCursorRefusal = (status: number, cursor: Query | null): boolean =>
  cursor !== null && [400, 403, 404].includes(status)

/** Why a cursor leads to no new page. */
export type DeadCursor = 'refused' | 'repeated'

const DEAD_CURSORS: Readonly<Record<DeadCursor, { code: string; message: string }>> = {
  refused: {
    code: 'cursor-refused',
    message: 'The API refused a cursor that it had returned, and again after the list was read from the top',
  },
  repeated: {
    code: 'paging-stuck',
    message: 'The API returned the same cursor twice, so the list cannot be read to its end',
  },
}

export function deadCursorError(cause: DeadCursor): ResourceError {
  const { code, message } = DEAD_CURSORS[cause]
  return new ResourceError(message, {
    code,
    hint: 'parley tries again later. If the error persists, report it to the provider of the API.',
  })
}

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
