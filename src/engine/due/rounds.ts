import type { ResourceName } from '../../catalog/resource-names.ts'
import type { Store } from '../../store/store.ts'
import type { ResourceState } from '../../store/sync/resource-state.ts'

/**
 * The rounds of all resources. Each segment stores the rounds in which its current pass (`passRound`) and its last
 * complete pass (`listedRound`) began. The numbers of the current rounds are cached, since they are needed often.
 */
export interface Rounds {
  /** The number of a resource's current round. */
  number(resource: ResourceName): number
  /** True in a round that reads every list once more to confirm suspected deletions. */
  isConfirming(resource: ResourceName): boolean
  begin(resource: ResourceName, kind: RoundKind, options?: RoundOptions): void
  /** False until the resource has been complete once. */
  wasComplete(resource: ResourceName): boolean
}

export type RoundKind =
  /** A round of a backfill. If it is interrupted, the next backfill continues it. */
  | 'resumable'
  /** A round of the daemon. Lists fall due by time. */
  | 'timed'

export interface RoundOptions {
  /** A common start of the rounds of several resources; default now. */
  at?: string
  /** Every list is read once more, to confirm deletions that the mass-deletion guard holds back. */
  confirming?: boolean
}

type StoredRound = Pick<ResourceState, 'roundOpen' | 'roundStartedAt'>

/** When the earliest open round began. An interrupted backfill leaves rounds open. Undefined when none is open. */
export function interruptedSince(rounds: readonly StoredRound[]): string | undefined {
  return rounds.flatMap(({ roundOpen, roundStartedAt }) => (roundOpen && roundStartedAt) || []).sort()[0]
}

/** Whether an interrupted backfill has begun this round. The next backfill then begins no other for the resource. */
export function isContinued({ roundOpen, roundStartedAt }: StoredRound, since: string | undefined): boolean {
  return roundOpen || (since !== undefined && roundStartedAt !== null && roundStartedAt >= since)
}

export function createRounds({ state }: Pick<Store, 'state'>, now: () => string): Rounds {
  const numbers = new Map<ResourceName, number>()
  const confirming = new Set<ResourceName>()
  const number = (resource: ResourceName): number => {
    const known = numbers.get(resource)
    if (known !== undefined) return known
    const { round, heldRound } = state.get(resource)
    numbers.set(resource, round)
    if (heldRound === round) confirming.add(resource)
    return round
  }
  return {
    number,
    isConfirming(resource) {
      number(resource)
      return confirming.has(resource)
    },
    begin(resource, kind, { at = now(), confirming: confirms = false } = {}) {
      if (confirms) confirming.add(resource)
      else confirming.delete(resource)
      numbers.set(resource, state.beginRound(resource, kind, { at, confirming: confirms }))
    },
    wasComplete: state.wasComplete,
  }
}
