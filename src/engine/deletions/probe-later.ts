import type { EngineContext } from '../context/context.ts'
import { CONFIRM_MANY_AFTER_MS, MANY_MISSING } from '../context/missed-rows.ts'
import { noteDenial } from './denial.ts'

/** Probes rows minutes after a list has not shown them. */

/** A row that a list should have shown and did not. */
export interface Missing {
  key: string
  /** Event time, for the order of the probes; null when the list has none. */
  at: string | null
}

/**
 * Marks the missing rows as suspected and writes a probe for each, which is due minutes later. Rows that already have a
 * probe are skipped: they are suspected, or an earlier probe found them although no list shows them. Returns how many
 * rows are newly suspected.
 *
 * @param before how many rows the same pass has marked as suspected before this call
 */
export function probeLater(
  context: EngineContext,
  { table, probe, scope }: { table: string; probe: string; scope: string },
  missing: readonly Missing[],
  before = 0,
): number {
  const { tasks } = context.store
  const isAsked = (key: string) => tasks.find({ feed: probe, scope, key }) !== undefined
  const suspects = missing.flatMap(row => {
    if (isAsked(row.key)) return []
    const verdict = noteDenial(context, { table, scope, key: row.key }, { confirms: false })
    return verdict.state === 'confirmed' ? [] : [{ ...row, askAgainMs: verdict.askAgainMs }]
  })
  const isMany = before + suspects.length > MANY_MISSING
  for (const { key, at, askAgainMs } of suspects) {
    const dueAt = isMany ? context.after(CONFIRM_MANY_AFTER_MS) : context.store.dueClock.after(askAgainMs)
    tasks.demand({ feed: probe, scope, key, sortAt: at, dueAt })
  }
  return suspects.length
}
