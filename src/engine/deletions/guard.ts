/**
 * The mass-deletion guard: when more than 20 rows and more than 20 % of a table would go, the API's answer is the
 * likelier mistake. Pure.
 */

const MOST_ROWS = 20
const MOST_SHARE = 0.2

/** Rows of one table, cascades included. */
export interface Loss {
  table: string
  /** Live rows, as far as they need be counted, with those that were deleted since the last complete round. */
  live: number
  /** Confirmed rows, with those that were deleted since then. */
  confirmed: number
  /** Rows whose second answer is still to come. */
  undecided: number
}

export type GuardDecision =
  | { kind: 'apply' }
  /** With what is undecided it may be too much: wait for the answers. */
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

/** The number of live rows at which counting may stop: more of them do not change what the guard decides. */
export function liveRowsToCount(gone: number): number {
  return gone > MOST_ROWS ? Math.floor(gone / MOST_SHARE) + 1 : 0
}

function isTooMuch(live: number, gone: number): boolean {
  return gone > MOST_ROWS && gone > live * MOST_SHARE
}
