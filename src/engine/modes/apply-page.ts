import { type Page, readPage } from '../../api/paging.ts'
import type { Query } from '../../api/request.ts'
import { ResourceError } from '../../base/errors.ts'
import type { DeclaredFeed, ListFeed } from '../../catalog/feeds.ts'
import type { ListRequest } from '../../declare/resource.ts'
import type { Segment } from '../../store/sync/segments.ts'
import type { EngineContext } from '../context/context.ts'
import type { Reply } from '../context/job.ts'
import { fruitlessPagesError, isFruitless, type PageGuard } from './page-guard.ts'
import { NOT_FAILED } from './pass.ts'
import { putOffList } from './put-off.ts'

/**
 * What the list modes share when they store a page, in the transaction of its answer (`requests/outcome.ts`). Each mode
 * does that in five steps, in the `page.ts` of its folder. Their order matters:
 *
 * 1. Parse. An item that cannot be stored is rejected; the rest of the page still commits. A page of only such items,
 *    if there are more than 20, fails as a whole: the API has probably changed, and the list must not count as read.
 * 2. Store rows. A stored row is no longer suspected, so this comes before the search for missing rows.
 * 3. Write follow-ups of the rows that were stored. They commit with their rows, so a crash loses none.
 * 4. Find missing rows: those that the page should have shown. The checkpoint still says where the previous page ended.
 * 5. Advance the checkpoint, which saves the segment. This comes last, since the new checkpoint depends on the rows that
 *    the page showed.
 */
export interface ListPage {
  page: Page
  reply: Reply
  /** The segment as it was before this page, with the start and the round of its pass. */
  segment: Segment
}

/**
 * The page of an answer. The first page of a pass sets the start of the pass, by the server's clock, its round, and the
 * want that it meets.
 * @param asked `segment`: as it was when the page was requested, at least its `wantedAt`
 */
export function listPage(
  context: EngineContext,
  { resource, feed }: DeclaredFeed<Extract<ListFeed, { list: ListRequest }>>,
  { query, segment }: { query: Query; segment: Segment },
  { value, reply }: { value: unknown; reply: Reply },
): ListPage {
  return {
    page: readPage(feed.list.paging, value, query),
    reply,
    segment: {
      ...segment,
      unavailableSince: null,
      passStartedAt: segment.passStartedAt ?? reply.serverSentAt,
      passRound: segment.passRound ?? context.rounds.number(resource),
      // Later pages do not show the records that were published since the pass began.
      passWantedAt: segment.cursor === null ? segment.wantedAt : segment.passWantedAt,
    },
  }
}

/** A page of at most this many items may consist of rejects only, while the rest of the list is well-formed. */
const MOST_REJECTS_ALONE = 20

/** @throws ResourceError when none of many items could be parsed */
export function requireParsed({ items }: Page, parsed: readonly unknown[]): void {
  if (items.length <= MOST_REJECTS_ALONE || parsed.length > 0) return
  throw new ResourceError(`None of the ${items.length} items of a page could be stored`, {
    code: 'all-rejected',
    hint: 'The API has probably changed the form of this list. Update parley, or report it with the log, which names the fields.',
  })
}

/**
 * The checkpoint after a page.
 * @param shown `rows`: how many rows of the page count for the segment; `hasNew`: whether it shows what no earlier page
 *   of the pass has shown
 */
export function segmentAfterPage(
  segment: Segment,
  { next }: Page,
  { rows, hasNew }: { rows: number; hasNew: boolean },
): Segment {
  return {
    ...segment,
    ...(isFruitless({ next, hasNew }) ? {} : NOT_FAILED),
    cursor: next,
    pages: segment.pages + 1,
    rows: (segment.pages === 0 ? 0 : segment.rows) + rows,
  }
}

/**
 * Saves the checkpoint after a page that is not the last one of its pass. A pass that does not get further waits.
 * @param restart called instead when the API has returned the cursor of an earlier page
 */
export function continuePass(
  context: EngineContext,
  list: DeclaredFeed<ListFeed>,
  { reached, guard, hasNew }: { reached: Segment; guard: PageGuard; hasNew: boolean },
  restart: () => void,
): void {
  const isFailing = context.schedule.isTimed && reached.attempts > 0
  if (guard.repeats(reached.cursor)) restart()
  else if (guard.isStuck({ next: reached.cursor, hasNew }, isFailing))
    putOffList(context, list, reached, fruitlessPagesError())
  else context.store.segments.save(reached)
}
