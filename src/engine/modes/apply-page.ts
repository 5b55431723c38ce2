import { type Page, readPage } from '../../api/paging.ts'
import type { Query } from '../../api/request.ts'
import { ResourceError } from '../../base/errors.ts'
import type { DeclaredFeed, ListFeed } from '../../catalog/feeds.ts'
import type { ListRequest } from '../../declare/resource.ts'
import type { StoredItem } from '../../store/rows/write-items.ts'
import type { Segment } from '../../store/sync/segments.ts'
import type { EngineContext } from '../context/context.ts'
import type { Reply } from '../context/job.ts'
import { segmentInPass } from './pass.ts'

/**
 * How every list mode stores a page, in the transaction of its answer (`requests/outcome.ts`). A mode says what happens
 * in each of five steps. Their order matters:
 *
 * 1. Parse. An item that cannot be stored is rejected; the rest of the page still commits. A page of only such items,
 *    if there are more than 20, fails as a whole: the API has probably changed, and the list must not count as read.
 * 2. Store rows. A stored row is no longer suspected, so this comes before the search for missing rows.
 * 3. Write follow-ups of the rows that were stored. They commit with their rows, so a crash loses none.
 * 4. Find missing rows: those that the page should have shown. The checkpoint still says where the previous page ended.
 * 5. Advance the checkpoint: the `page.ts` of the mode saves the segment. This comes last, since the new checkpoint
 *    depends on the rows that the page showed.
 */
export interface PageSteps<Parsed, Found, Outcome> extends StoringSteps<Parsed> {
  findMissingRows(page: ParsedPage<Parsed>): Found
  advance(page: ParsedPage<Parsed>, found: Found): Outcome
}

/** The first three steps. A page that is no part of a pass needs only these. */
export interface StoringSteps<Parsed> {
  /** Undefined when nothing of the page may be stored. */
  parse(page: ListPage): Parsed | undefined
  /** The number of items that can be stored. */
  countOf(parsed: Parsed): number
  storeRows(page: ParsedPage<Parsed>): readonly StoredItem[]
  writeFollowUps(page: ParsedPage<Parsed>, stored: readonly StoredItem[]): void
}

/** A page that the API returned. */
export interface ListPage {
  page: Page
  reply: Reply
  /** The segment as it was before this page, with the start and the round of its pass. */
  segment: Segment
}

export interface ParsedPage<Parsed> extends ListPage {
  parsed: Parsed
}

export interface PageRequest {
  list: DeclaredFeed<Extract<ListFeed, { list: ListRequest }>>
  query: Query
  segment: Segment
}

/** Returns what `advance` returns; undefined when the page must not be stored. */
export function applyPage<Parsed, Found, Outcome>(
  context: EngineContext,
  { list, query, segment: before }: PageRequest,
  { value, reply }: { value: unknown; reply: Reply },
  steps: PageSteps<Parsed, Found, Outcome>,
): Outcome | undefined {
  const page = readPage(list.feed.list.paging, value, query)
  const segment = segmentInPass(before, context, list.resource, reply)
  const parsed = storePage({ page, reply, segment }, steps)
  return parsed && steps.advance(parsed, steps.findMissingRows(parsed))
}

export function storePage<Parsed>(
  page: ListPage,
  { parse, countOf, storeRows, writeFollowUps }: StoringSteps<Parsed>,
): ParsedPage<Parsed> | undefined {
  const parsed = parse(page)
  if (parsed === undefined) return undefined
  const { length } = page.page.items
  if (length > MOST_REJECTS_ALONE && countOf(parsed) === 0) throw allRejectedError(length)
  const read = { ...page, parsed }
  writeFollowUps(read, storeRows(read))
  return read
}

/** A page of at most this many items may consist of rejects only, while the rest of the list is well-formed. */
const MOST_REJECTS_ALONE = 20

function allRejectedError(items: number): ResourceError {
  return new ResourceError(`None of the ${items} items of a page could be stored`, {
    code: 'all-rejected',
    hint: 'The API has probably changed the form of this list. Update parley, or report it with the log, which names the fields.',
  })
}

/** The checkpoint after a page. @param rows how many rows of the page count for the segment */
export function segmentAfterPage(segment: Segment, { next }: Page, rows: number): Segment {
  return {
    ...segment,
    cursor: next,
    pages: segment.pages + 1,
    rows: (segment.pages === 0 ? 0 : segment.rows) + rows,
  }
}
