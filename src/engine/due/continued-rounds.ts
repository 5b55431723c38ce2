import type { ResourceState } from '../../store/sync/resource-state.ts'

type StoredRound = Pick<ResourceState, 'roundOpen' | 'roundStartedAt'>

/** When the earliest open round began. An interrupted backfill leaves rounds open. Undefined when none is open. */
export function interruptedSince(rounds: readonly StoredRound[]): string | undefined {
  return rounds.flatMap(({ roundOpen, roundStartedAt }) => (roundOpen && roundStartedAt) || []).sort()[0]
}

/** Whether an interrupted backfill has begun this round. The next backfill then begins no other for the resource. */
export function isContinued({ roundOpen, roundStartedAt }: StoredRound, since: string | undefined): boolean {
  return roundOpen || (since !== undefined && roundStartedAt !== null && roundStartedAt >= since)
}
