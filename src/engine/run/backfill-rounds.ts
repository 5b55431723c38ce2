import { isoInstant } from '../../base/clock.ts'
import { reasonWithHint, StopError } from '../../base/errors.ts'
import type { Resource } from '../../declare/resource.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import type { RunCounts, RunOutcome } from '../../store/sync/runs.ts'
import type { EngineContext } from '../context/context.ts'
import { isHoldOver } from '../deletions/apply.ts'
import { confirmationMs } from '../deletions/recheck.ts'
import { interruptedSince, isContinued } from '../due/continued-rounds.ts'
import { suspectAgain } from './confirming-round.ts'
import { recordOutcome } from './round-end.ts'

/** Begins and ends the rounds of a backfill, and its runs in `sync_runs`. */

export interface ResourceResult extends RunCounts {
  resource: ResourceName
  outcome: RunOutcome
  reason?: string
}

export interface BegunRounds {
  /** The ids of the new runs. */
  runs: ReadonlyMap<ResourceName, number>
  /** When the interrupted backfill began whose rounds are continued, by this machine's clock. */
  continuedFrom: string | undefined
}

/** Begins a round for each resource, unless an interrupted backfill has begun it. */
export function beginRounds(context: EngineContext, chosen: readonly Resource[]): BegunRounds {
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
  return {
    runs: new Map(
      states.map(({ resource, firstCompleteAt }) => [
        resource,
        runs.begin(resource, firstCompleteAt === null ? 'history' : 'audit', now),
      ]),
    ),
    continuedFrom: since,
  }
}

interface Ending {
  interrupted: boolean
  /** The resources of which every due request is done. */
  read: readonly Resource[]
}

/**
 * Ends the round of a resource, unless the resource has failed and the run was interrupted: the next run then continues
 * the round.
 */
export function endRound(
  context: EngineContext,
  resource: Resource,
  { interrupted, read }: Ending,
): ResourceResult {
  const { name } = resource
  const { runs, rounds, backoffs, server, store } = context
  const result = (outcome: RunOutcome): ResourceResult => {
    const failure = runs.failure(name)
    const reason = failure ? reasonWithHint(failure) : backoffs.reason(name)
    return { resource: name, outcome, ...runs.counts(name), ...(reason !== undefined && { reason }) }
  }
  const isWaiting = interrupted && confirmationMs(context, [name]) !== undefined
  if (!read.includes(resource) || isWaiting) return result('stopped')
  const outcome = recordOutcome(context, resource, true)
  const now = context.now()
  const { roundOpen, roundStartedAt } = store.state.get(name)
  if (roundOpen && !interrupted) {
    const asOf = isoInstant(server.from(Date.parse(roundStartedAt ?? now)))
    rounds.end(name, { complete: false, asOf, now, deletionsSince: now })
  }
  return result(outcome)
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
