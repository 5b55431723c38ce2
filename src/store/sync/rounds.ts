import type { ResourceName } from '../../catalog/resource-names.ts'
import type { Prepare } from '../database/sqlite-types.ts'

/** The rounds of each resource, and whether one of them was complete. */
export interface ResourceRounds {
  /** False until the resource has been complete once. Cached, since every request reads it. */
  wasComplete(resource: ResourceName): boolean
  /**
   * Begins a round and returns its number. A `resumable` round is open until it ends, so that the next backfill
   * continues it. A `timed` round is never open.
   */
  beginRound(
    resource: ResourceName,
    kind: 'resumable' | 'timed',
    options: { at: string; confirming: boolean },
  ): number
  /**
   * Ends a round. `asOf` is the start of the round by the server's clock. A complete round resets the count of deleted
   * rows, unless that count began after `deletionsSince`.
   */
  endRound(
    resource: ResourceName,
    end: { complete: boolean; asOf: string; now: string; deletionsSince: string },
  ): void
  /** Resets the resource as if it had never been complete. */
  restart(resource: ResourceName): void
}

type ReadRound = (resource: ResourceName) => { round: number; firstCompleteAt: string | null }

export function createResourceRounds(prepare: Prepare, read: ReadRound): ResourceRounds {
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
  const wasComplete = new Map<ResourceName, boolean>()

  return {
    wasComplete(resource) {
      const known = wasComplete.get(resource)
      if (known !== undefined) return known
      const isComplete = read(resource).firstCompleteAt !== null
      wasComplete.set(resource, isComplete)
      return isComplete
    },
    beginRound(resource, kind, { at, confirming }) {
      begin.run({ resource, kind, at, confirming: confirming ? 1 : 0 })
      return read(resource).round
    },
    endRound(resource, { complete, ...times }) {
      end.run({ resource, complete: complete ? 1 : 0, ...times })
      wasComplete.delete(resource)
    },
    restart(resource) {
      restart.run(resource)
      wasComplete.delete(resource)
    },
  }
}
