import type { ResourceName } from '../../declare/resource-names.ts'
import type { Prepare } from '../database/sqlite-types.ts'
import type { State } from './resource-state.ts'

export type RoundKind =
  /** A round of a backfill, open until it ends. If it is interrupted, the next backfill continues it. */
  | 'resumable'
  /** A round of the daemon, never open. Lists fall due by time. */
  | 'timed'

export interface RoundOptions {
  /** A common start of the rounds of several resources; default now. */
  at?: string
  /** Every list is read once more, to confirm deletions that the mass-deletion guard holds back. */
  confirming?: boolean
}

interface CurrentRound {
  round: number
  isConfirming: boolean
  wasComplete: boolean
}

export interface RoundsDeps {
  prepare: Prepare
  state: Pick<State, 'get'>
  now: () => string
}

export type Rounds = ReturnType<typeof createRounds>

/**
 * The rounds of all resources. Each segment stores the rounds in which its current pass (`passRound`) and its last
 * complete pass (`listedRound`) began. The state of the current rounds is cached, since every request reads it.
 */
export function createRounds({ prepare, state, now }: RoundsDeps) {
  const begin = prepare(
    `UPDATE sync_resources SET round = round + 1, round_open = @kind = 'resumable', round_started_at = @at,
       held_round = iif(@confirming, round + 1, NULL)
     WHERE resource = @resource`,
  )
  const end = prepare(
    `UPDATE sync_resources SET round_open = 0,
       complete_as_of = iif(@complete, @asOf, complete_as_of),
       deleted_in_round = iif(@complete AND deleted_since <= @deletionsSince, 0, deleted_in_round),
       deleted_since = iif(@complete AND deleted_since <= @deletionsSince, NULL, deleted_since),
       first_complete_at = iif(@complete, coalesce(first_complete_at, @now), first_complete_at)
     WHERE resource = @resource`,
  )
  const restart = prepare(
    'UPDATE sync_resources SET first_complete_at = NULL, complete_as_of = NULL WHERE resource = ?',
  )
  const cached = new Map<ResourceName, CurrentRound>()
  const current = (resource: ResourceName): CurrentRound => {
    const known = cached.get(resource)
    if (known !== undefined) return known
    const { round, heldRound, firstCompleteAt } = state.get(resource)
    const read = { round, isConfirming: heldRound === round, wasComplete: firstCompleteAt !== null }
    // Nothing is cached inside a transaction, since its changes may be rolled back.
    if (!begin.database.inTransaction) cached.set(resource, read)
    return read
  }

  return {
    /** The number of a resource's current round. */
    number: (resource: ResourceName) => current(resource).round,
    /** True in a round that reads every list once more to confirm suspected deletions. */
    isConfirming: (resource: ResourceName) => current(resource).isConfirming,
    /** False until the resource has been complete once. */
    wasComplete: (resource: ResourceName) => current(resource).wasComplete,
    begin(resource: ResourceName, kind: RoundKind, { at = now(), confirming = false }: RoundOptions = {}) {
      begin.run({ resource, kind, at, confirming: confirming ? 1 : 0 })
      cached.delete(resource)
    },
    /**
     * Ends a round. `asOf` is the start of the round by the server's clock. A complete round resets the count of deleted
     * rows, unless that count began after `deletionsSince`.
     */
    end(
      resource: ResourceName,
      { complete, ...times }: { complete: boolean; asOf: string; now: string; deletionsSince: string },
    ) {
      end.run({ resource, complete: complete ? 1 : 0, ...times })
      cached.delete(resource)
    },
    /** Resets the resource as if it had never been complete. */
    restart(resource: ResourceName) {
      restart.run(resource)
      cached.delete(resource)
    },
  }
}
