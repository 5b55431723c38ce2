import { isoInstant, MINUTE_MS } from '../../base/clock.ts'
import type { Denial, RowKey } from '../../store/deletions/suspicions.ts'
import type { EngineContext } from '../context/context.ts'
import { scaled } from '../context/intervals.ts'
import { CONFIRM_AFTER_MS, type Verdict, verdictOnDenial } from './deletion-states.ts'

/** Records denials. The modes call these functions in the transaction that stores the answer. */

interface DenialOptions {
  /** What the denial says about the row. */
  means?: Denial
  /** False for a denial that may raise a suspicion but never confirms one. */
  confirms?: boolean
  /** A second denial counts only if it comes this many ms after the first. Scaled by `sync.interval_scale`. */
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
  const verdict = verdictOnDenial(known, { means, now, confirmAfterMs, confirms })
  if (verdict.state === 'confirmed') suspicions.confirm(row)
  else if (known?.means !== means || Date.parse(known.since) !== verdict.since)
    suspicions.note(row, { since: isoInstant(verdict.since), means })
  return verdict
}

/** For this long after an answer first showed a row, a replica that lags may not show the row yet. Scaled. */
const NEW_MS = 5 * MINUTE_MS

/**
 * A list in time order does not deny a row until this many ms after the row was first stored. 0 in a backfill: its runs
 * are far apart, so rows from an earlier run are old enough.
 */
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

/**
 * Ends the suspicions that rows are absent, because a list shows their keys. A key does not show that the content may
 * be read, so suspicions that content is withheld stay. Returns the keys whose suspicions ended.
 */
export function endAbsences(context: EngineContext, table: string, keys: readonly string[]): string[] {
  const { suspicions } = context.store
  if (!suspicions.hasAny(table)) return []
  const absent = keys.filter(key => suspicions.find({ table, scope: '', key })?.means === 'absent')
  return endSuspicions(context, table, '', absent)
}

export function confirmAfterMs({ options }: Pick<EngineContext, 'options'>): number {
  return scaled(CONFIRM_AFTER_MS, options)
}

/**
 * The time from which a second denial counts, by the server's clock in ms. 0 when the first denial lies in the future:
 * a wrong clock stored its time, and the next denial replaces it.
 * @param waits multiplies the usual wait between the two denials
 */
export function secondDenialCountsAt(context: EngineContext, since: string, waits = 1): number {
  const deniedAt = Date.parse(since)
  return deniedAt > context.server.now() ? 0 : deniedAt + confirmAfterMs(context) * waits
}

/** After this many of the usual waits, an hour in total, an undecided suspicion no longer delays other deletions. */
const UNDECIDED_WAITS = 30

/** Suspicions that began at this instant or later are expected to be confirmed or ended soon. */
export function undecidedSince(context: EngineContext): string {
  return isoInstant(context.server.now() - UNDECIDED_WAITS * confirmAfterMs(context))
}
