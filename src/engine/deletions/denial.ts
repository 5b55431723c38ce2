import { isoInstant } from '../../clock.ts'
import type { Denial, RowKey } from '../../store/deletions/suspicions.ts'
import type { EngineContext } from '../context.ts'
import { MINUTE, scaled } from '../schedule/intervals.ts'
import { CONFIRM_AFTER_MS, type Verdict, verdictOf } from './suspicion.ts'

/** What the sync modes call when an answer denies a row or shows it. Each runs in the transaction of that answer. */

interface DenialOptions {
  /** What the answer says of the row. */
  means?: Denial
  /** False for a denial that can only raise a suspicion. */
  confirms?: boolean
  /** How far apart two denials are at least, in ms before scaling. */
  afterMs?: number
}

export function denied(
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

/** Rows seen for the first time so recently may be unknown to the replica that answers. Scaled. */
const NEW_MS = 5 * MINUTE

/** So long after a row was seen for the first time no answer denies it, in ms. Runs of a backfill are far apart. */
export function newForMs({ schedule, options }: Pick<EngineContext, 'schedule' | 'options'>): number {
  return schedule.isTimed ? scaled(NEW_MS, options) : 0
}

/** Rows that a list shows: no suspicion is left. Returns the keys of those that were suspected. */
export function shown(
  { store: { suspicions } }: EngineContext,
  table: string,
  scope: string,
  keys: readonly string[],
): string[] {
  return suspicions.any(table) ? keys.filter(key => suspicions.end({ table, scope, key })) : []
}

export function confirmAfterMs({ options }: Pick<EngineContext, 'options'>): number {
  return scaled(CONFIRM_AFTER_MS, options)
}

/**
 * When a second denial can count, by the server's clock in ms. A first one that seems to lie ahead was noted under a
 * clock that was wrong: it is asked for now, and noted again.
 */
export function confirmableAt(context: EngineContext, since: string, waits = 1): number {
  const deniedAt = Date.parse(since)
  return deniedAt > context.server.now() ? 0 : deniedAt + confirmAfterMs(context) * waits
}

/** What could not be decided in so many times the usual wait, an hour, holds up no other deletion. */
const UNDECIDED_WAITS = 30

/** Suspicions noted since then are expected to be decided soon. */
export function undecidedSince(context: EngineContext): string {
  return isoInstant(context.server.now() - UNDECIDED_WAITS * confirmAfterMs(context))
}
