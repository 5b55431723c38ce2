import type { Suspicion } from '../../store/deletions/suspicions.ts'

/**
 * How a row comes to be deleted. One refusal, empty list or 404 may come from a blip, a proxy or a lagging replica, so
 * a row goes through these states:
 *
 *     live ──denied──▶ suspected ──denied again──▶ confirmed ──guard──▶ deleted ──retention──▶ purged
 *       ▲                  │                           │                   │
 *       └──────shown───────┴───────────shown───────────┴──────shown────────┘
 *
 * - suspected: `sync_absences` has the key and the time of the first denial. Analysts see no difference.
 * - confirmed: another request denied the row minutes later, and no answer showed it in between.
 * - deleted: `_deleted_at` is set (or `access` is `withheld`). The confirmed rows of a resource are deleted together,
 *   once the mass-deletion guard agrees (apply.ts).
 * - purged: the content is removed (store/deletions/purge.ts).
 *
 * Lists, single reads and reads by `ids` can all deny a row. Any answer that shows the row ends the suspicion.
 */

/** The second denial counts this long after the first. Scaled by `sync.interval_scale`. */
export const CONFIRM_AFTER_MS = 2 * 60_000

/** This machine's clock says when to ask, and the server's measures the time since; they may differ a little. */
const NEAR_ENOUGH = 0.9

export type Verdict =
  | { state: 'confirmed' }
  /** `askAgainMs`: how long to wait before another denial can confirm it. */
  | { state: 'suspected'; since: number; askAgainMs: number }

interface DenialOf {
  means: Suspicion['means']
  now: number
  confirmAfterMs: number
  /** False for a denial that can only raise a suspicion. */
  confirms: boolean
}

/** What a denial makes of a row. Times in ms. Pure. */
export function verdictOf(
  known: Suspicion | undefined,
  { means, now, confirmAfterMs, confirms }: DenialOf,
): Verdict {
  const since = known?.means === means ? Date.parse(known.since) : now
  // The suspicion was noted under a clock that was ahead: it starts again.
  if (since > now) return { state: 'suspected', since: now, askAgainMs: confirmAfterMs }
  if (known?.confirmed && known.means === means) return { state: 'confirmed' }
  const passed = now - since
  return known !== undefined && confirms && passed >= confirmAfterMs * NEAR_ENOUGH
    ? { state: 'confirmed' }
    : { state: 'suspected', since, askAgainMs: Math.max(confirmAfterMs - passed, 0) }
}
