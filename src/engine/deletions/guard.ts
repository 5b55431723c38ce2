/**
 * The mass-deletion guard. When more than 20 rows and more than 20 % of a table would be deleted, an error of the API
 * is more likely than real deletions, so the guard holds them back. apply.ts says for how long. Pure.
 */

const ROWS_WITHOUT_GUARD = 20
const SHARE_WITHOUT_GUARD = 0.2

/** What one table would lose if the confirmed rows of a resource were deleted. */
export interface DeletionCounts {
  table: string
  /** Rows that would be deleted now. */
  rows: number
  /** Live rows, counted no further than `liveRowsToCount`, plus the deleted rows that the guard still counts. */
  live: number
  /** `rows`, plus the deleted rows that the guard still counts; 0 when no row would be deleted. */
  confirmed: number
  /** Suspected rows that wait for a second denial. */
  undecided: number
}

export type GuardDecision =
  | { kind: 'apply' }
  /** With the undecided rows, the loss may be too large. The deletion waits until these rows are decided. */
  | { kind: 'wait' }
  | { kind: 'hold'; loss: DeletionCounts }

export function guardDecision(losses: readonly DeletionCounts[]): GuardDecision {
  const tooMuch = losses.find(({ live, confirmed }) => isTooMuch(live, confirmed))
  if (tooMuch) return { kind: 'hold', loss: tooMuch }
  const mayBe = losses.some(
    ({ live, confirmed, undecided }) => confirmed > 0 && isTooMuch(live, confirmed + undecided),
  )
  return { kind: mayBe ? 'wait' : 'apply' }
}

/**
 * The loss to report while deletions are held back: the one for which the guard would hold them back now. If there is
 * no such loss, since rows have come back, the loss with the most rows. Undefined when `losses` is empty.
 */
export function lossToReport(losses: readonly DeletionCounts[]): DeletionCounts | undefined {
  const decision = guardDecision(losses)
  return decision.kind === 'hold' ? decision.loss : [...losses].sort((a, b) => b.rows - a.rows)[0]
}

/** The number of live rows at which counting may stop: a higher number does not change the guard's decision. */
export function liveRowsToCount(gone: number): number {
  return gone > ROWS_WITHOUT_GUARD ? Math.floor(gone / SHARE_WITHOUT_GUARD) + 1 : 0
}

function isTooMuch(live: number, gone: number): boolean {
  return gone > ROWS_WITHOUT_GUARD && gone > live * SHARE_WITHOUT_GUARD
}
