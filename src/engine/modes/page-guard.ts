import { createHash } from 'node:crypto'
import type { Page } from '../../api/paging.ts'
import type { Query } from '../../api/request.ts'
import { ResourceError } from '../../base/errors.ts'

/** `hasNew`: whether the page shows what no earlier page of the pass has shown. */
export type PageProgress = Pick<Page, 'next'> & { hasNew: boolean }

export type PageGuard = ReturnType<typeof createPageGuard>

/**
 * Detects that a list does not end: its cursors form a loop, or its pages bring nothing new. There is one guard for each
 * pass, in memory: after a restart, a loop is read at most once more. A page that is requested again because its answer
 * was lost is no loop.
 * @param capacity how many of the last cursors are known, by a short digest each (about 5 MB when full)
 */
export function createPageGuard(capacity = 100_000) {
  const asked = new Set<string>()
  let fruitless = 0
  let latest: { cursor: string; entries: string } | undefined
  return {
    /** Call it before a page is requested. */
    asking(cursor: Query | null): void {
      if (cursor !== null) asked.add(digestOf(cursor))
      // A set iterates in the order of insertion, so the first element is the oldest.
      const [oldest] = asked.size > capacity ? asked : []
      if (oldest !== undefined) asked.delete(oldest)
    },
    /** Whether this pass has already requested the next page. */
    repeats: (next: Query | null): boolean => next !== null && asked.has(digestOf(next)),
    /**
     * Counts the pages with a next page that have brought nothing new. True when the pass has to wait, because too many
     * came in a row.
     * @param isFailing true for a pass that has waited already: it then waits after each further page of that kind
     */
    isStuck(page: PageProgress, isFailing = false): boolean {
      fruitless = isFruitless(page) ? fruitless + 1 : 0
      const isTooMany = fruitless > 0 && fruitless >= (isFailing ? 1 : MOST_FRUITLESS_PAGES)
      if (isTooMany) fruitless = 0
      return isTooMany
    },
    /**
     * Whether the page before this one in the pass had the same entries. For lists whose entries have no id.
     * @param digests of the entries, in order
     */
    isSamePage(query: Query | null, digests: readonly string[]): boolean {
      const [cursor, entries] = [JSON.stringify(query), digests.join()]
      // A page that is requested again has the cursor that it had.
      const isSame = entries !== '' && latest?.entries === entries && latest.cursor !== cursor
      if (!isSame) latest = { cursor, entries }
      return isSame
    },
  }
}

const digestOf = (cursor: Query): string =>
  createHash('sha1').update(JSON.stringify(cursor)).digest('base64').slice(0, 12)

/** A page with a next page that has brought nothing new. It does not count as a success after failures. */
export const isFruitless = ({ next, hasNew }: PageProgress): boolean => next !== null && !hasNew

/**
 * A list that is filtered at the server may have this many empty pages in a row. More, or as many pages with items that
 * earlier ones had, look like a fault, and are read ever more slowly.
 */
const MOST_FRUITLESS_PAGES = 20

export const fruitlessPagesError = (): ResourceError =>
  new ResourceError(`The API returned ${MOST_FRUITLESS_PAGES} pages in a row without a new item`, {
    code: 'paging-empty',
    hint: 'parley goes on with the next page later. If the error persists, report it to the provider of the API.',
  })

/** For lists without a checkpoint. @throws ResourceError when the next page would lead nowhere */
export function requireProgress(guard: PageGuard, page: PageProgress): void {
  if (guard.repeats(page.next)) throw deadCursorError('repeated')
  if (guard.isStuck(page)) throw fruitlessPagesError()
}

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

export const isDeadCursor = (code: string): boolean =>
  Object.values(DEAD_CURSORS).some(dead => dead.code === code)
