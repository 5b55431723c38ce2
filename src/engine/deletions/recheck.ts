import { isoInstant } from '../../base/clock.ts'
import { UUID_GLOB } from '../../base/uuid.ts'
import { resourceNamed } from '../../catalog/catalog.ts'
import { type DeclaredFeed, type ListFeed, listsOf } from '../../catalog/feeds.ts'
import type { SnapshotFeed } from '../../declare/resource.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import type { Segment } from '../../store/sync/segments.ts'
import type { EngineContext } from '../context/context.ts'
import { scaled } from '../context/intervals.ts'
import { CONFIRM_MANY_AFTER_MS } from '../context/missed-rows.ts'
import { tablesOfResource } from './apply.ts'
import { confirmAfterMs, secondDenialCountsAt, undecidedSince } from './denial.ts'

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

/**
 * How long a backfill with no other request left waits, in ms, until the suspicions of these resources can be
 * confirmed. Undefined when it need not wait.
 */
export function confirmationMs(
  context: EngineContext,
  resources: readonly ResourceName[],
): number | undefined {
  const { options } = context
  const waits = [
    latestMs(context, resources, confirmAfterMs(context)),
    askedMs(context, resources),
    wantedMs(context, resources),
  ].filter(wait => wait !== undefined)
  const ms =
    waits.length > 0
      ? Math.max(...waits)
      : latestMs(context, resources, scaled(CONFIRM_MANY_AFTER_MS, options))
  return ms === undefined ? undefined : Math.max(ms, 1)
}

/**
 * Time until the last confirming single read is due, in ms. It may differ from the result of `latestMs`: reads are due
 * by this machine's clock, but the age of a suspicion is measured by the server's clock, which an answer may correct by
 * up to a second.
 */
function askedMs(
  { store: { tasks, dueClock }, options }: EngineContext,
  resources: readonly ResourceName[],
): number | undefined {
  const after = dueClock.now()
  const upTo = isoInstant(Date.parse(after) + confirmAfterMs({ options }))
  const dueAt = tasks.latestAsked(resources, { after, upTo })
  return dueAt === undefined ? undefined : dueClock.waitMs(dueAt)
}

/**
 * Time in ms until the first of the lists is read again to confirm. Undefined when no list is, or when it can be read
 * now.
 */
function wantedMs(context: EngineContext, resources: readonly ResourceName[]): number | undefined {
  const { store } = context
  const waits = resources
    .flatMap(name => listsOf(resourceNamed(name)))
    .flatMap(({ id }) => store.segments.of(id))
    .flatMap(({ wantedAt }) => (wantedAt === null ? [] : [store.dueClock.waitMs(wantedAt)]))
    .filter(ms => ms > 0 && ms <= confirmAfterMs(context))
  return waits.length === 0 ? undefined : Math.min(...waits)
}

/**
 * Time until the youngest suspicion is `ageMs` old, in ms; undefined when all are that old. A suspicion with a time in
 * the future counts as old enough.
 */
function latestMs(
  { store, server }: EngineContext,
  resources: readonly ResourceName[],
  ageMs: number,
): number | undefined {
  const since = resources
    .flatMap(tablesOfResource)
    // The second denial of a part counts only after an hour. A run does not wait that long.
    .flatMap(({ name, kind }) => (kind === 'child' ? [] : (store.suspicions.latestUndecided(name) ?? [])))
    .filter(since => Date.parse(since) <= server.now())
    .sort()
    .at(-1)
  const ms = since === undefined ? 0 : Date.parse(since) + ageMs - server.now()
  return ms > 0 ? ms : undefined
}
