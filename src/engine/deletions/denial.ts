import { isoInstant } from '../../clock.ts'
import type { Denial, RowKey } from '../../store/deletions/suspicions.ts'
import type { EngineContext } from '../context.ts'
import { MINUTE, scaled } from '../due/intervals.ts'
import { CONFIRM_AFTER_MS, type Verdict, verdictOf } from './suspicion.ts'

/** The sync modes call these when an answer denies a row or shows it, in the transaction of that answer. */

interface DenialOptions {
  /** What the answer says of the row. */
  means?: Denial
  /** False for a denial that can only raise a suspicion. */
  confirms?: boolean
  /** The second denial counts this many ms after the first, before scaling. */
  afterMs?: number
}

export function noteDenial(
  context: EngineContext,
  row: RowKey,
  { means = 'absent', confirms = true, afterMs = CONFIRM_AFTER_MS }: DenialOptions = {},
): Verdict {
  const { suspicions } = context.store
  const confirmAfterMs = scaled(afterMs, context.options)
  const known = suspicions.find(row)
  const now = context.server.now()
  const verdict = verdictOf(known, { means, now, confirmAfterMs, confirms })
  if (verdict.state === 'confirmed') suspicions.confirm(row)
  else if (known?.means !== means || Date.parse(known.since) !== verdict.since)
    suspicions.note(row, { since: isoInstant(verdict.since), means })
  return verdict
}

/** A lagging replica may not know rows that were first seen less than this ago. Scaled. */
const NEW_MS = 5 * MINUTE

/** How long after a row was first seen no answer denies it, in ms. 0 in a backfill, whose runs are far apart. */
export function newRowGraceMs({ schedule, options }: Pick<EngineContext, 'schedule' | 'options'>): number {
  return schedule.isTimed ? scaled(NEW_MS, options) : 0
}

/** Ends the suspicions of rows that a list shows. Returns the keys that were suspected. */
export function endSuspicions(
  { store: { suspicions } }: EngineContext,
  table: string,
  scope: string,
  keys: readonly string[],
): string[] {
  return suspicions.hasAny(table) ? keys.filter(key => suspicions.end({ table, scope, key })) : []
}

export function confirmAfterMs({ options }: Pick<EngineContext, 'options'>): number {
  return scaled(CONFIRM_AFTER_MS, options)
}

/**
 * The time at which a second denial counts, by the server's clock in ms. 0 for a first denial that lies in the future:
 * it was noted under a wrong clock, and the next answer notes it again.
 */
export function confirmableAt(context: EngineContext, since: string, waits = 1): number {
  const deniedAt = Date.parse(since)
  return deniedAt > context.server.now() ? 0 : deniedAt + confirmAfterMs(context) * waits
}

/** A suspicion that is undecided after this many of the usual waits, an hour, delays no other deletion. */
const UNDECIDED_WAITS = 30

/** Suspicions noted at this instant or later are expected to be decided soon. */
export function undecidedSince(context: EngineContext): string {
  return isoInstant(context.server.now() - UNDECIDED_WAITS * confirmAfterMs(context))
}
