import { UUID_GLOB } from '../../base/uuid.ts'
import type { DeclaredFeed, ListFeed } from '../../catalog/feeds.ts'
import type { SnapshotFeed } from '../../declare/resource.ts'
import type { Segment } from '../../store/sync/segments.ts'
import type { EngineContext } from '../context/context.ts'
import { secondDenialCountsAt, undecidedSince } from './denial.ts'

/** Decides when a list is read again before its interval is over, to confirm the rows that it has denied. */

/**
 * @returns how long after a pass, in ms, another pass can confirm the rows that this pass has denied. Undefined when
 *   this pass has denied no row, or when all denied rows can be requested by key.
 */
export function confirmingPassMs(
  context: EngineContext,
  { feed, pass }: { feed: SnapshotFeed; pass: Segment },
): number | undefined {
  const { missedRows, store, server } = context
  if (!['second-pass', 'ids'].includes(feed.evidence.by)) return undefined
  const scope = feed.scope === undefined ? undefined : pass.scope
  // Rows whose key is a UUID are requested by key instead.
  const butKeys = feed.evidence.by === 'ids' ? UUID_GLOB : undefined
  const since = store.suspicions.earliestUndecided(feed.table, undecidedSince(context), { scope, butKeys })
  if (since === undefined) return undefined
  return Math.max(0, secondDenialCountsAt(context, since, missedRows.waitFactor(pass.id)) - server.now())
}

/**
 * For a suspected single document: how long until the read that can confirm its deletion, in ms. The document is not
 * read before that, since an earlier denial confirms nothing. Undefined for a document that is not suspected, and for
 * all other feeds.
 */
export function confirmingReadMs(
  context: EngineContext,
  { feed }: DeclaredFeed<ListFeed>,
): number | undefined {
  if (feed.mode !== 'singleton') return undefined
  const since = context.store.suspicions.earliestUndecided(feed.table, undecidedSince(context))
  return since === undefined
    ? undefined
    : Math.max(0, secondDenialCountsAt(context, since) - context.server.now())
}
