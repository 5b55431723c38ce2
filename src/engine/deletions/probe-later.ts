import { isoInstant } from '../../clock.ts'
import type { EngineContext } from '../context.ts'
import { longestWaitMs } from '../due/intervals.ts'
import { noteDenial } from './denial.ts'
import { CONFIRM_MANY_AFTER_MS, MANY_MISSING } from './missed-rows.ts'

/** A row that a list should have shown and did not. */
export interface Missing {
  key: string
  /** Event time; newer rows are asked for first. */
  at: string | null
}

/**
 * Suspects rows that a list did not show, and writes a task for each: minutes later, a request for the row confirms
 * its absence. Rows that have such a task are skipped: they are suspected, or known to be on no list. Returns how many
 * are newly suspected.
 *
 * @param before number of rows that the same pass has already suspected
 */
export function probeLater(
  context: EngineContext,
  { table, probe, scope }: { table: string; probe: string; scope: string },
  missing: readonly Missing[],
  before = 0,
): number {
  const { tasks } = context.store
  // A task due later than the longest wait was noted under a clock that was ahead.
  const latest = isoInstant(context.clock.now() + longestWaitMs(context.options))
  const isAsked = (key: string) => (tasks.find({ feed: probe, scope, key })?.dueAt ?? '~') <= latest
  const suspects = missing.filter(({ key }) => !isAsked(key))
  const isMany = before + suspects.length > MANY_MISSING
  for (const { key, at } of suspects) {
    const verdict = noteDenial(context, { table, scope, key }, { confirms: false })
    if (verdict.state === 'confirmed') continue
    const dueAt = isMany
      ? context.after(CONFIRM_MANY_AFTER_MS)
      : isoInstant(context.clock.now() + verdict.askAgainMs)
    tasks.demand({ feed: probe, scope, key, sortAt: at, dueAt })
  }
  return suspects.length
}
