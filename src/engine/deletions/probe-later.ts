import { isoInstant } from '../../clock.ts'
import type { EngineContext } from '../context.ts'
import { longestWaitMs } from '../schedule/intervals.ts'
import { denied } from './denial.ts'
import { CONFIRM_MANY_AFTER_MS, MANY_MISSING } from './doubts.ts'

/** A row that a list has passed by. */
export interface Missing {
  key: string
  /** Event time, for newest first. */
  at: string | null
}

/**
 * Rows that a list did not show become suspects, each with a task for the request that is to confirm it minutes
 * later. A row that has such a task already is left alone: it is suspected, or known to be on no list. Returns how
 * many are newly suspected.
 *
 * @param before how many rows the same pass has made suspects already
 */
export function probeLater(
  context: EngineContext,
  { table, probe, scope }: { table: string; probe: string; scope: string },
  missing: readonly Missing[],
  before = 0,
): number {
  const { tasks } = context.store
  // One that is due later than any wait is long was noted under a clock that was ahead.
  const latest = isoInstant(context.clock.now() + longestWaitMs(context.options))
  const isAsked = (key: string) => (tasks.find({ feed: probe, scope, key })?.dueAt ?? '~') <= latest
  const news = missing.filter(({ key }) => !isAsked(key))
  const isMany = before + news.length > MANY_MISSING
  for (const { key, at } of news) {
    const verdict = denied(context, { table, scope, key }, { confirms: false })
    if (verdict.state === 'confirmed') continue
    const dueAt = isMany
      ? context.after(CONFIRM_MANY_AFTER_MS)
      : isoInstant(context.clock.now() + verdict.askAgainMs)
    tasks.demand({ feed: probe, scope, key, sortAt: at, dueAt })
  }
  return news.length
}
