import { createGovernor, type GovernorOptions } from '../api/governor/governor.ts'
import type { LearnedRate } from '../api/governor/pace.ts'
import { type Clock, isoInstant, utcDay } from '../base/clock.ts'
import type { OpenStore } from '../store/store.ts'
import { META, readNote } from '../store/sync/meta.ts'
import { readRequestsToday } from '../store/sync/requests-today.ts'

/**
 * A governor that starts from the learned rate and the day's request count that an earlier process stored in
 * `sync_meta`.
 */
export function createStoredGovernor(
  { state, dueClock, transaction }: Pick<OpenStore, 'state' | 'dueClock' | 'transaction'>,
  clock: Clock,
  ceilings: GovernorOptions['ceilings'],
) {
  const today = () => utcDay(clock.now())
  const usedToday = () => readRequestsToday(state.meta, today())
  const noteUsed = (day: string, used: number) =>
    state.setMeta(META.requestsToday, JSON.stringify({ day, used }))

  // While the process runs, the database holds the reserved count, so that a kill cannot lead to more requests than the
  // day allows.
  const governor = createGovernor({
    clock,
    random: Math.random,
    ceilings,
    initial: readNote<LearnedRate>(state.meta, META.learnedRate),
    usedToday: usedToday(),
    reserve: (day, used) => transaction(() => noteUsed(day, used)),
  })
  const save = (used: number) => {
    const noted = { ...governor.learned(), at: isoInstant(clock.now()) }
    state.setMeta(META.learnedRate, JSON.stringify(noted))
    noteUsed(today(), used)
    dueClock.note()
  }
  return {
    governor,
    /**
     * Saves the learned rate, the requests that are reserved of the day, and the clock, unless they were saved a few
     * seconds ago. Call it inside a transaction. A reservation that has just been committed may be larger than the
     * governor's number.
     */
    saveAtTimes: throttle(clock, () => save(Math.max(governor.state().reservedToday, usedToday()))),
    /** Saves the same with the requests that were really sent. For a process that sends no more requests. */
    saveAtEnd: () => transaction.aside(() => save(governor.state().usedToday)),
  }
}

/** The least time between two saves. A killed process loses what it learned since the last. */
const SAVE_EVERY_MS = 5000

function throttle(clock: Clock, work: () => void): () => void {
  let doneAt = Number.NEGATIVE_INFINITY
  return () => {
    if (clock.elapsed() - doneAt < SAVE_EVERY_MS) return
    work()
    doneAt = clock.elapsed()
  }
}
