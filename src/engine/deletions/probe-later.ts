import { DAY_MS } from '../../base/clock.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import type { Task } from '../../store/sync/tasks/task.ts'
import type { EngineContext } from '../context/context.ts'
import { WEEK_MS } from '../context/intervals.ts'
import { CONFIRM_MANY_AFTER_MS, MANY_MISSING } from '../context/missed-rows.ts'
import { noteDenial } from './denial.ts'

/** Probes rows minutes after a list has not shown them. */

/** The feed of the final probes for rows that a list's probes have denied. Only a probe by `ids` has a final probe. */
export const finalProbeOf = (probe: string): string => `${probe}.single`

/** A row that a list should have shown and did not. */
export interface MissingRow {
  key: string
  /** Event time, for the order of the probes; null when the list has none. */
  at: string | null
}

/**
 * Marks the missing rows as suspected and writes a probe for each, which is due minutes later, or at once for a row that
 * an earlier probe has found. Rows are skipped that are suspected already, or that an earlier probe has found lately
 * although no list shows them. Returns how many rows are newly suspected.
 *
 * @param before how many rows the same pass has marked as suspected before this call
 */
export function probeLater(
  context: EngineContext,
  { resource, table, probe, scope }: { resource: ResourceName; table: string; probe: string; scope: string },
  missing: readonly MissingRow[],
  before = 0,
): number {
  const { tasks, suspicions } = context.store
  const suspects = missing.flatMap(row => {
    const { key } = row
    const task = tasks.find({ feed: probe, scope, key })
    const isSuspected = suspicions.find({ table, scope, key }) !== undefined
    if (isSuspected && (task ?? tasks.find({ feed: finalProbeOf(probe), scope, key }))) return []
    if (task && isRefuted(context, resource, task)) return []
    const verdict = noteDenial(context, { table, scope, key }, { confirms: false })
    if (verdict.state === 'confirmed') return []
    // A probe that is over has found its row, and most likely finds it again. So a backfill does not wait for it.
    return [{ ...row, askAgainMs: task && !isSuspected ? 0 : verdict.askAgainMs }]
  })
  const isMany = before + suspects.length > MANY_MISSING
  for (const { key, at, askAgainMs } of suspects) {
    const dueAt = isMany ? context.after(CONFIRM_MANY_AFTER_MS) : context.store.dueClock.after(askAgainMs)
    tasks.demand({ feed: probe, scope, key, sortAt: at, dueAt })
  }
  return suspects.length
}

/**
 * Removes the probes of rows that a list shows, except those that have found their row lately. Otherwise a list that
 * shows a random part of its rows would cause a probe each time that it leaves out a row.
 */
export function endProbes(
  context: EngineContext,
  { resource, probe, scope }: { resource: ResourceName; probe: string; scope: string },
  shown: readonly string[],
): void {
  const { tasks } = context.store
  tasks.removeAll(probe, scope, shown, task => !isRefuted(context, resource, task, WEEK_MS / 2))
  tasks.removeAll(finalProbeOf(probe), scope, shown)
}

/**
 * Whether the answer of a probe that found its row still counts. Then a list that does not show the row casts no doubt
 * on it. In a backfill the answer counts for the round. In the daemon it counts for a day, and each further such answer
 * counts twice as long as the one before, up to a week: some rows exist that no list shows.
 */
function isRefuted(
  context: EngineContext,
  resource: ResourceName,
  { round, dueAt, attempts }: Task,
  mostMs = WEEK_MS,
): boolean {
  if (!context.schedule.isTimed) return round >= context.rounds.number(resource)
  const countsForMs = Math.min(DAY_MS * 2 ** (attempts - 1), mostMs)
  return dueAt > context.after(WEEK_MS - countsForMs)
}
