import type { ResourceName } from '../../catalog/resource.ts'
import { isoInstant } from '../../clock.ts'
import type { Segment } from '../../store/sync/segments.ts'
import type { EngineContext } from '../context.ts'
import { scaled } from '../schedule/intervals.ts'
import type { ListOf } from '../schedule/schedule.ts'
import { confirmAfterMs, confirmableAt, undecidedSince } from './denial.ts'
import { CONFIRM_MANY_AFTER_MS } from './doubts.ts'
import { tablesOf } from './settle.ts'

/** When a list is read again ahead of its interval, since what it has denied is to be confirmed. */

/**
 * By the server's clock, in ms; undefined when there is no such reason. Lists whose rows have a single read are read
 * again only after a pass that missed many.
 */
export function recheckAt(context: EngineContext, { feed }: ListOf, segment: Segment): number | undefined {
  const { doubts, store, server, clock } = context
  const doubtedAt = doubts.readAgainAt(segment.id)
  if (doubtedAt !== undefined) return server.now() + doubtedAt - clock.elapsed()
  const isOwnEvidence =
    feed.mode === 'snapshot' && (feed.evidence.by === 'second-pass' || feed.evidence.by === 'list')
  if (!isOwnEvidence) return undefined
  const scope = feed.scope === undefined ? undefined : segment.scope
  const since = store.suspicions.earliestUndecided(feed.table, undecidedSince(context), scope)
  return since === undefined ? undefined : confirmableAt(context, since, doubts.patience(segment.id))
}

export function isRecheckDue(context: EngineContext, list: ListOf, segment: Segment): boolean {
  const at = recheckAt(context, list, segment)
  return at !== undefined && at <= context.server.now()
}

/**
 * For a backfill that has nothing left to ask: how long until every suspicion of these resources can be confirmed, in
 * ms. Undefined when no such answer is to be waited for.
 */
export function confirmationMs(
  context: EngineContext,
  resources: readonly ResourceName[],
): number | undefined {
  const { doubts, clock, options } = context
  const doubted = doubts.nextAt()
  const waits = [
    latestMs(context, resources, confirmAfterMs(context)),
    askedMs(context, resources),
    doubted === undefined ? undefined : doubted - clock.elapsed(),
  ].filter(wait => wait !== undefined)
  const ms =
    waits.length > 0
      ? Math.max(...waits)
      : latestMs(context, resources, scaled(CONFIRM_MANY_AFTER_MS, options))
  return ms === undefined ? undefined : Math.max(ms, 1)
}

/**
 * Until the last of the reads that are to confirm is due. These go by this machine's clock, and the server's, by which
 * a suspicion is old enough, may gain a second when an answer tells it more exactly.
 */
function askedMs(
  { store, clock, options }: EngineContext,
  resources: readonly ResourceName[],
): number | undefined {
  const now = clock.now()
  const soon = { after: isoInstant(now), upTo: isoInstant(now + confirmAfterMs({ options })) }
  const dueAt = store.tasks.latestAsked(resources, soon)
  return dueAt === undefined ? undefined : Date.parse(dueAt) - now
}

/** Until the youngest suspicion is so old; undefined when each is. One from the future is as old as any other. */
function latestMs(
  { store, server }: EngineContext,
  resources: readonly ResourceName[],
  ageMs: number,
): number | undefined {
  const since = resources
    .flatMap(tablesOf)
    // Parts are confirmed an hour later, which no run waits for.
    .flatMap(({ name, kind }) => (kind === 'child' ? [] : (store.suspicions.latestUndecided(name) ?? [])))
    .filter(since => Date.parse(since) <= server.now())
    .sort()
    .at(-1)
  const ms = since === undefined ? 0 : Date.parse(since) + ageMs - server.now()
  return ms > 0 ? ms : undefined
}
