import type { Governor } from '../../api/governor/governor.ts'
import { type Clock, isoInstant, MINUTE_MS } from '../../clock.ts'
import type { Log } from '../../log.ts'
import type { Store } from '../../store/store.ts'
import type { ResourceDay } from '../../store/sync/days.ts'
import type { Minute } from '../../store/sync/minutes.ts'
import type { Traffic } from './request-counts.ts'

export interface MinuteRecorderDeps {
  clock: Clock
  store: Pick<Store, 'minutes' | 'days' | 'transaction'>
  governor: Pick<Governor, 'state' | 'learned'>
  log: Log
}

const SAMPLE_MS = 1000

/** Of the day at the start of an instant, such as `2026-03-04`. */
const DAY_LENGTH = 10

/**
 * Stores the traffic of each minute in `sync_minutes`, and adds its rows to `sync_days`, until the signal. Takes a sample each second and writes when the
 * minute is over, and at the end. Never rejects: on a full disk a minute is lost, which must not end a sync.
 * @param traffic the counts so far; they may only grow
 */
export async function recordMinutes(
  { clock, store, governor, log }: MinuteRecorderDeps,
  traffic: () => Traffic,
  signal: AbortSignal,
): Promise<void> {
  let saved = traffic()
  const save = async (minute: Minute, counted: Traffic) => {
    const days = daysOf(minute, saved, counted)
    saved = counted
    try {
      await store.transaction(() => {
        store.minutes.add(minute)
        for (const day of days) store.days.add(day)
      })
    } catch (error) {
      log.warn('The traffic of one minute could not be stored in sync_minutes', { error })
    }
  }
  let before = saved
  let minute = emptyMinute(clock.now())
  while (!signal.aborted) {
    await clock.sleep(SAMPLE_MS, signal)
    const now = clock.now()
    const counted = traffic()
    minute = withSample(minute, { counted, before, governor, now })
    before = counted
    const next = emptyMinute(now)
    if (next.at === minute.at) continue
    await save(minute, counted)
    minute = next
  }
  await save(minute, before)
}

function emptyMinute(now: number): Minute {
  const at = isoInstant(Math.floor(now / MINUTE_MS) * MINUTE_MS)
  return { at, requests: 0, throttled: 0, errors: 0, rows: 0, rate: null, in_flight: 0, paused_seconds: 0 }
}

interface TrafficSample extends Pick<MinuteRecorderDeps, 'governor'> {
  counted: Traffic
  /** The counts at the previous sample. */
  before: Traffic
  now: number
}

function withSample(minute: Minute, { counted, before, governor, now }: TrafficSample): Minute {
  const { inFlight, pausedUntil = 0 } = governor.state()
  const { limited, ratePerSecond } = governor.learned()
  return {
    ...minute,
    requests: minute.requests + counted.requests - before.requests,
    throttled: minute.throttled + counted.throttled - before.throttled,
    errors: minute.errors + counted.errors - before.errors,
    rows: minute.rows + rowsIn(counted) - rowsIn(before),
    rate: limited ? ratePerSecond : null,
    in_flight: Math.max(minute.in_flight, inFlight),
    paused_seconds: minute.paused_seconds + (pausedUntil > now ? SAMPLE_MS / 1000 : 0),
  }
}

function rowsIn({ written }: Traffic): number {
  return [...written.values()].reduce(
    (sum, { rowsChanged, rowsDeleted }) => sum + rowsChanged + rowsDeleted,
    0,
  )
}

/** What was written between two samples, by resource. */
function daysOf({ at }: Minute, from: Traffic, to: Traffic): ResourceDay[] {
  return [...to.written].flatMap(([resource, { rowsChanged, rowsNew, rowsDeleted }]) => {
    const before = from.written.get(resource)
    const rows_new = rowsNew - (before?.rowsNew ?? 0)
    const rows_changed = rowsChanged - (before?.rowsChanged ?? 0) - rows_new
    const rows_deleted = rowsDeleted - (before?.rowsDeleted ?? 0)
    if (rows_new === 0 && rows_changed === 0 && rows_deleted === 0) return []
    return [{ day: at.slice(0, DAY_LENGTH), resource, rows_new, rows_changed, rows_deleted }]
  })
}
