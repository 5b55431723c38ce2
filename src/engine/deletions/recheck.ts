import { isoInstant } from '../../base/clock.ts'
import type { DeclaredFeed, ListFeed } from '../../catalog/feeds.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import type { Segment } from '../../store/sync/segments.ts'
import type { EngineContext } from '../context/context.ts'
import { scaled } from '../context/intervals.ts'
import { CONFIRM_MANY_AFTER_MS } from '../context/missed-rows.ts'
import { UUID_GLOB } from '../parse/uuid.ts'
import { tablesOf } from './apply.ts'
import { confirmAfterMs, confirmableAt, undecidedSince } from './denial.ts'

/** Decides when a list is read again before its interval is over, to confirm the rows that it has denied. */

/**
 * When to read the list again early, by the server's clock in ms; undefined when it waits for its interval. If all its
 * suspected rows can be requested by key, the list is read early only after a pass that missed many rows.
 */
export function recheckAt(
  context: EngineContext,
  { feed }: DeclaredFeed<ListFeed>,
  segment: Segment,
): number | undefined {
  const { missedRows, store, server, clock } = context
  const missedAt = missedRows.recheckAt(segment.id)
  if (missedAt !== undefined) return server.now() + missedAt - clock.elapsed()
  if (feed.mode !== 'snapshot' || !['second-pass', 'ids'].includes(feed.evidence.by)) return undefined
  const scope = feed.scope === undefined ? undefined : segment.scope
  // Each look for due work asks for each scope, so the database is asked only after a pass that missed something.
  if (feed.evidence.by === 'ids' && !missedRows.isSuspecting(segment.id)) return undefined
  // The others are requested by key.
  const butKeys = feed.evidence.by === 'ids' ? UUID_GLOB : undefined
  const since = store.suspicions.earliestUndecided(feed.table, undecidedSince(context), { scope, butKeys })
  return since === undefined ? undefined : confirmableAt(context, since, missedRows.waitFactor(segment.id))
}

/**
 * For a suspected single document: how long until the read that can confirm its deletion, in ms. The document is not
 * read before, since an earlier denial confirms nothing. Undefined for a document that is not suspected, and for all
 * other feeds.
 */
export function confirmingReadMs(
  context: EngineContext,
  { feed }: DeclaredFeed<ListFeed>,
): number | undefined {
  if (feed.mode !== 'singleton') return undefined
  const since = context.store.suspicions.earliestUndecided(feed.table, undecidedSince(context))
  return since === undefined ? undefined : Math.max(0, confirmableAt(context, since) - context.server.now())
}

export function isRecheckDue(
  context: EngineContext,
  list: DeclaredFeed<ListFeed>,
  segment: Segment,
): boolean {
  const at = recheckAt(context, list, segment)
  return at !== undefined && at <= context.server.now()
}

/**
 * How long a backfill with no other request left waits, in ms, until the suspicions of these resources can be
 * confirmed. Undefined when it need not wait.
 */
export function confirmationMs(
  context: EngineContext,
  resources: readonly ResourceName[],
): number | undefined {
  const { missedRows, clock, options } = context
  const recheckMs = missedRows.nextRecheckAt()
  const waits = [
    latestMs(context, resources, confirmAfterMs(context)),
    askedMs(context, resources),
    recheckMs === undefined ? undefined : recheckMs - clock.elapsed(),
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
 * Time until the youngest suspicion is `ageMs` old, in ms; undefined when all are that old. A suspicion with a time in
 * the future counts as old enough.
 */
function latestMs(
  { store, server }: EngineContext,
  resources: readonly ResourceName[],
  ageMs: number,
): number | undefined {
  const since = resources
    .flatMap(tablesOf)
    // The second denial of a part counts only after an hour. A run does not wait that long.
    .flatMap(({ name, kind }) => (kind === 'child' ? [] : (store.suspicions.latestUndecided(name) ?? [])))
    .filter(since => Date.parse(since) <= server.now())
    .sort()
    .at(-1)
  const ms = since === undefined ? 0 : Date.parse(since) + ageMs - server.now()
  return ms > 0 ? ms : undefined
}
