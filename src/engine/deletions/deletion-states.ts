import type { Suspicion } from '../../store/deletions/suspicions.ts'

/**
 * The states of a deletion. A single refusal, empty list or 404 may be a brief fault of the API, of a proxy or of a
 * replica that lags. So a row goes through these states before it is deleted:
 *
 *     live ──denied──▶ suspected ──denied again──▶ confirmed ──guard──▶ deleted ──retention──▶ purged
 *       ▲                  │                           │                   │
 *       └──────shown───────┴───────────shown───────────┴──────shown────────┘
 *
 * - suspected: `sync_suspicions` has the key and the time of the first denial. Analysts see no difference.
 * - confirmed: another request denied the row minutes later, and no answer showed it in between. For a transcript, the
 *   text of an e-mail or, in the daemon, an association, the other request comes an hour later.
 * - deleted: `_deleted_at` is set (or `access` is `withheld`). The confirmed rows of a resource are deleted together,
 *   once the mass-deletion guard allows it (apply.ts), or a confirming round has confirmed them
 *   (run/round-end.ts).
 * - purged: the content is removed (store/deletions/purge.ts).
 *
 * Lists, single reads and reads by `ids` can all deny a row. Neither a list nor a read by `ids`, which asks the
 * endpoint of the list, confirms the deletion of a row that has a single read. Any answer that shows the row ends the
 * suspicion.
 *
 * For example a message: a page of `messages.list` does not show a copy in its span, so the copy is suspected, and
 * probe-later.ts plans a request for it by `ids` two minutes later. If the answer does not show it either, the copy
 * gets a final probe, a single read of another endpoint (modes/keys/probes.ts). If that answers 404, apply.ts deletes
 * the copy (table `message_copies`). The e-mail is deleted with its last copy (store/rows/merge/messages.ts), and its
 * text is purged after `retention.withdrawn_days`.
 */

/** A second denial counts only if it comes this long after the first. Scaled by `sync.interval_scale`. */
export const CONFIRM_AFTER_MS = 2 * 60_000

/**
 * A second denial already counts after this share of the wait. The second request falls due by this machine's clock,
 * but the wait is measured by the server's clock, and the two may differ a little.
 */
const NEAR_ENOUGH = 0.9

export type Verdict =
  | { state: 'confirmed' }
  /** `askAgainMs`: how long until another denial can confirm the deletion; 0 when it can now. */
  | { state: 'suspected'; since: number; askAgainMs: number }

interface DenialOf {
  means: Suspicion['means']
  now: number
  confirmAfterMs: number
  /** False for a denial that may raise a suspicion but never confirms one. */
  confirms: boolean
}

/** The state of a row after a denial. Times in ms. Pure. */
export function verdictOnDenial(
  known: Suspicion | undefined,
  { means, now, confirmAfterMs, confirms }: DenialOf,
): Verdict {
  const since = known?.means === means ? Date.parse(known.since) : now
  // A clock that was ahead stored this suspicion, so the suspicion starts again now.
  if (since > now) return { state: 'suspected', since: now, askAgainMs: confirmAfterMs }
  if (known?.confirmed && known.means === means) return { state: 'confirmed' }
  const passed = now - since
  const isLongAgo = known !== undefined && passed >= confirmAfterMs * NEAR_ENOUGH
  if (isLongAgo && confirms) return { state: 'confirmed' }
  return { state: 'suspected', since, askAgainMs: isLongAgo ? 0 : confirmAfterMs - passed }
}
