import type { Governor } from '../../api/governor/governor.ts'
import { type Clock, isoInstant, MINUTE_MS, SECOND_MS, untilNext } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { Store } from '../../store/store.ts'
import type { Minute, ResourceDay } from '../../store/sync/runs.ts'
import type { Traffic } from '../requests/request-counts.ts'

export interface MinuteRecorderDeps {
  clock: Clock
  store: Pick<Store, 'minutes' | 'days' | 'transaction'>
  governor: Pick<Governor, 'state' | 'learned' | 'onChange'>
  log: Log
  /** Called inside the transaction of each minute. */
  saveLearned?: () => void
}

/** Length of the date in an instant, such as `2026-03-04`. */
const DAY_LENGTH = 10

/**
 * Stores the traffic of each minute in `sync_minutes`, and adds its rows to `sync_days`, until the signal. Writes when
 * the minute is over, and at the end. Never rejects: on a full disk a minute is lost, which must not end a sync.
 * @param traffic the counts so far; they may only grow
 */
export async function recordMinutes(
  { clock, store, governor, log, saveLearned }: MinuteRecorderDeps,
  traffic: () => Traffic,
  signal: AbortSignal,
): Promise<void> {
  let saved = traffic()
  let at = minuteOf(clock.now())
  const load = watchLoad({ clock, governor })
  const save = async (next: string) => {
    const counted = traffic()
    const minute = { at, ...difference(saved, counted), ...load.since() }
    const days = daysOf(minute, saved, counted)
    saved = counted
    at = next
    try {
      await store.transaction.aside(() => {
        store.minutes.add(minute)
        for (const day of days) store.days.add(day)
        saveLearned?.()
      })
    } catch (error) {
      log.warn('The traffic of one minute could not be stored in sync_minutes', { error })
    }
  }
  while (!signal.aborted) {
    await clock.sleep(untilNext(MINUTE_MS, clock.now()), signal)
    const next = minuteOf(clock.now())
    // Timers may fire a little early.
    if (next !== at) await save(next)
  }
  load.end()
  await save(at)
}

const minuteOf = (now: number) => isoInstant(Math.floor(now / MINUTE_MS) * MINUTE_MS)

/** Follows how many requests are in flight, and for how long requests are paused. */
function watchLoad({ clock, governor }: Pick<MinuteRecorderDeps, 'clock' | 'governor'>) {
  let pausedMs = 0
  let [lookedAt, elapsedAt] = [clock.now(), clock.elapsed()]
  let { inFlight, pausedUntil = 0 } = governor.state()
  const look = () => {
    const [now, elapsed] = [clock.now(), clock.elapsed()]
    const state = governor.state()
    // The clock of a suspended machine goes on, so a pause counts at most the monotonic time.
    pausedMs += Math.max(0, Math.min(Math.min(now, pausedUntil) - lookedAt, elapsed - elapsedAt))
    pausedUntil = state.pausedUntil ?? 0
    lookedAt = now
    elapsedAt = elapsed
    inFlight = Math.max(inFlight, state.inFlight)
  }
  const end = governor.onChange(look)
  return {
    end,
    /** @returns the load since the last call */
    since(): Pick<Minute, 'rate' | 'in_flight' | 'paused_seconds'> {
      look()
      const { limited, ratePerSecond } = governor.learned()
      const found = {
        rate: limited ? ratePerSecond : null,
        in_flight: inFlight,
        paused_seconds: Math.floor(pausedMs / SECOND_MS),
      }
      // What is in flight now is also in flight in the next minute.
      inFlight = governor.state().inFlight
      pausedMs %= SECOND_MS
      return found
    },
  }
}

function difference(before: Traffic, after: Traffic) {
  return {
    requests: after.requests - before.requests,
    throttled: after.throttled - before.throttled,
    errors: after.errors - before.errors,
    rows: rowsIn(after) - rowsIn(before),
  }
}

function rowsIn({ written }: Traffic): number {
  return [...written.values()].reduce(
    (sum, { rowsChanged, rowsDeleted }) => sum + rowsChanged + rowsDeleted,
    0,
  )
}

/** What was written between two counts, by resource. */
function daysOf({ at }: Pick<Minute, 'at'>, from: Traffic, to: Traffic): ResourceDay[] {
  return [...to.written].flatMap(([resource, { rowsChanged, rowsNew, rowsDeleted }]) => {
    const before = from.written.get(resource)
    const rows_new = rowsNew - (before?.rowsNew ?? 0)
    const rows_changed = rowsChanged - (before?.rowsChanged ?? 0) - rows_new
    const rows_deleted = rowsDeleted - (before?.rowsDeleted ?? 0)
    if (rows_new === 0 && rows_changed === 0 && rows_deleted === 0) return []
    return [{ day: at.slice(0, DAY_LENGTH), resource, rows_new, rows_changed, rows_deleted }]
  })
}
