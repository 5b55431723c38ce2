import { isoInstant } from '../../base/clock.ts'
import { reasonWithHint, StopError } from '../../base/errors.ts'
import { feedsOf } from '../../catalog/feeds.ts'
import type { Resource } from '../../declare/resource.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import type { RunCounts, RunOutcome } from '../../store/sync/runs.ts'
import type { EngineContext } from '../context/context.ts'
import { applyDeletions, isHoldOver } from '../deletions/apply.ts'
import { confirmationMs } from '../deletions/recheck.ts'
import { interruptedSince, isContinued } from '../due/rounds.ts'
import { suspectAgain } from './confirming-round.ts'
import { areListsRead, feedsReadWhole, noteHealthy } from './round-end.ts'

/** Begins and ends the rounds of a backfill, and its runs in `sync_runs`. */

export interface ResourceResult extends RunCounts {
  resource: ResourceName
  outcome: RunOutcome
  reason?: string
}

/** Begins a round for each resource, unless an interrupted backfill has begun it. Returns the ids of the new runs. */
export function beginRounds(
  context: EngineContext,
  chosen: readonly Resource[],
): ReadonlyMap<ResourceName, number> {
  const { state, runs } = context.store
  const now = context.now()
  const states = chosen.map(({ name }) => state.get(name))
  const since = interruptedSince(states)
  for (const round of states) {
    const { resource } = round
    // The interrupted backfill has begun this round. If it has ended the round too, the resource is not read again.
    if (isContinued(round, since)) continue
    const confirming = isHoldOver(context, resource)
    if (confirming) suspectAgain(context, resource)
    context.rounds.begin(resource, 'resumable', { at: now, confirming })
  }
  return new Map(
    states.map(({ resource, firstCompleteAt }) => [
      resource,
      runs.begin(resource, firstCompleteAt === null ? 'history' : 'audit', now),
    ]),
  )
}

interface Ending {
  interrupted: boolean
  /** The resources of which every due request is done. */
  read: readonly Resource[]
}

export function endRound(
  context: EngineContext,
  resource: Resource,
  { interrupted, read }: Ending,
): ResourceResult {
  const { name } = resource
  const isWaiting = interrupted && confirmationMs(context, [name]) !== undefined
  const { state, rejects } = context.store
  const now = context.now()
  const roundStartedAt = state.get(name).roundStartedAt ?? now
  const asOf = isoInstant(context.server.from(Date.parse(roundStartedAt)))
  const result = (outcome: RunOutcome, reason?: string): ResourceResult => ({
    resource: name,
    outcome,
    ...context.runs.counts(name),
    ...(reason === undefined ? {} : { reason }),
  })
  if (!read.includes(resource) || isWaiting) return result('stopped')
  applyDeletionsOf(context, resource)
  const failure = context.runs.failure(name)
  if (failure) {
    // After an interruption the round stays open, and the next run continues it.
    if (!interrupted) context.rounds.end(name, { complete: false, asOf, now, deletionsSince: now })
    return result('failed', reasonWithHint(failure))
  }
  for (const feed of feedsReadWhole(resource)) rejects.resolve(feed, null, roundStartedAt, now)
  const reason = context.backoffs.reason(name)
  const whole = reason !== undefined && isWhollyUnavailable(context, resource)
  if (whole) state.unavailable(name, reason, now)
  else noteHealthy(context, name)
  state.succeeded(name, now)
  context.rounds.end(name, { complete: true, asOf, now, deletionsSince: now })
  return whole ? result('unavailable', reason) : result('complete', reason)
}

/** A failed single read or scope does not keep the deletions from being applied; a failed list does. */
export function applyDeletionsOf(context: EngineContext, resource: Resource): void {
  const { name } = resource
  if (context.runs.failure(name) && !areListsRead(context, resource)) return
  applyDeletions(context, name, true)
}

/** False when a list or a scope of the resource was read in this round, even if it has no rows. */
function isWhollyUnavailable(context: EngineContext, resource: Resource): boolean {
  const { name } = resource
  const passes = feedsOf(resource).flatMap(({ id }) => context.store.segments.of(id))
  if (passes.some(({ listedRound }) => listedRound === context.rounds.number(name))) return false
  return context.runs.counts(name).rowsRead === 0
}

export function closeRuns(
  context: EngineContext,
  runs: ReadonlyMap<ResourceName, number>,
  ended: readonly ResourceResult[],
  stopped: unknown,
): void {
  for (const { resource, outcome, reason } of ended) {
    const id = runs.get(resource)
    if (id === undefined) continue
    const error = outcome === 'stopped' && stopped instanceof StopError ? reasonWithHint(stopped) : reason
    context.runs.end(id, resource, outcome, error)
  }
}
