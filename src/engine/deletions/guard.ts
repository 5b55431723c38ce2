/**
 * The mass-deletion guard: when more than 20 rows and more than 20 % of a table would be deleted, the API's answer is
 * the likelier mistake. Pure.
 */

const MOST_ROWS = 20
const MOST_SHARE = 0.2

/** What deleting would cost one table, cascades included. */
export interface Loss {
  table: string
  /** Live rows, counted no further than `liveRowsToCount`, plus rows deleted since the last complete round. */
  live: number
  /** Confirmed rows, plus rows deleted since then. */
  confirmed: number
  /** Suspected rows that wait for a second denial. */
  undecided: number
}

export type GuardDecision =
  | { kind: 'apply' }
  /** Together with the undecided rows it may be too much: wait for their answers. */
  | { kind: 'wait' }
  | { kind: 'hold'; loss: Loss }

export function guardDecision(losses: readonly Loss[]): GuardDecision {
  const tooMuch = losses.find(({ live, confirmed }) => isTooMuch(live, confirmed))
  if (tooMuch) return { kind: 'hold', loss: tooMuch }
  const mayBe = losses.some(
    ({ live, confirmed, undecided }) => confirmed > 0 && isTooMuch(live, confirmed + undecided),
  )
  return { kind: mayBe ? 'wait' : 'apply' }
}

/** The number of live rows at which counting may stop: more do not change what the guard decides. */
export function liveRowsToCount(gone: number): number {
  return gone > MOST_ROWS ? Math.floor(gone / MOST_SHARE) + 1 : 0
}

function isTooMuch(live: number, gone: number): boolean {
  return gone > MOST_ROWS && gone > live * MOST_SHARE
}
