import { DAY_MS, HOUR_MS, isoInstant } from '../../../base/clock.ts'
import type { Segment, Segments } from '../../../store/sync/segments.ts'
import type { EngineContext } from '../../context/context.ts'
import { MONTH_MS, scaled } from '../../context/intervals.ts'
import { wantSegment } from '../../due/wants.ts'
import { isNarrowest } from '../narrowing.ts'

/** Which periods of a log are read: their bounds, and when the next ones are added. */

/** The longest span that a request may name (spec: Limits). */
const LONGEST_PERIOD_MS = 31 * DAY_MS

/** The daemon adds no period that is shorter. */
const LEAST_PERIOD_MS = HOUR_MS / 2

const EMPTY_IN_A_ROW = 3

/** Whether the newest period is open. An open period falls due again, and then the next period is added. */
export function isNewestOpen([newest]: readonly Segment[]): boolean {
  return newest !== undefined && !newest.closed
}

/** Adds periods from the end of the newest one until now; if there is none, for the last hour and 31 days before it. */
export function planPeriods(context: EngineContext, id: string): void {
  const { store, schedule, options, backoffs } = context
  const end = Math.floor(context.server.now())
  dropFuture(context, id, end)
  const periods = store.segments.of(id, '')
  const newest = periods[0]?.to
  const start = newest ? Date.parse(newest) : end - HOUR_MS - LONGEST_PERIOD_MS
  const isLoading = isNewestOpen(periods) && periods.some(isUnread)
  // While the whole log fails, no period is added. Otherwise one would be added each hour, and all of them read after
  // the failure.
  const isTooEarly = isLoading && (end - start < HOUR_MS || backoffs.hasFailed(id, ''))
  // If two periods end minutes apart, for example after late answers, each would be followed by a period every hour, and
  // every hour would be read twice.
  const isFollowed = schedule.isTimed && newest != null && end - start < scaled(LEAST_PERIOD_MS, options)
  if (end > start && !isFollowed && !isTooEarly) {
    const bounds = [end]
    for (let at = end - HOUR_MS; at > start; at -= LONGEST_PERIOD_MS) bounds.push(at)
    bounds.push(start)
    bounds.slice(1).forEach((from, index) => {
      addPeriod(context, id, from, bounds[index] ?? end)
    })
  }
  extendBack(context, id)
}

/** Removes periods that have not begun, and reopens those that have not ended: a clock that was ahead left them. */
function dropFuture({ store }: EngineContext, id: string, now: number): void {
  for (const period of store.segments.of(id, '')) {
    if (period.from !== null && Date.parse(period.from) > now) store.segments.remove(period)
    else if (period.to !== null && Date.parse(period.to) > now)
      store.segments.save({ ...period, closed: false })
  }
}

function addPeriod({ store, options }: EngineContext, id: string, from: number, to: number): void {
  const earliest = options.since === null ? from : Math.max(from, Date.parse(options.since))
  if (earliest >= to) return
  const bounds = { from: new Date(earliest).toISOString(), to: new Date(to).toISOString() }
  store.segments.add({ feed: id, scope: '', ...bounds })
}

/** About one period is closed each hour. Closed neighbours are joined, up to the longest span a request may name. */
function joinClosed(segments: Segments, id: string): void {
  let newer: Segment | undefined
  for (const period of segments.of(id, '')) {
    const isOne = newer?.closed && period.closed && spanMs(period.from, newer.to) <= LONGEST_PERIOD_MS
    newer = newer && isOne ? segments.join(newer, period) : period
  }
}

function spanMs(from: string | null, to: string | null): number {
  return Date.parse(to ?? '') - Date.parse(from ?? '')
}

/**
 * True for a period that was never read to its end. A period as short as a stepped-over one does not count: it may
 * never be readable, and older periods would wait for it indefinitely.
 */
const isUnread = (period: Segment): boolean => period.listedAt === null && !isNarrowest('periodic', period)

/**
 * The oldest periods without entries end a log. They are read again after this time, since a fault may have emptied
 * them. Scaled.
 */
const EMPTY_AGAIN_MS = MONTH_MS

function wantEmpty(context: EngineContext, periods: readonly Segment[]): void {
  for (const period of periods.slice(-EMPTY_IN_A_ROW))
    if (period.closed && period.rows === 0 && period.wantedAt === null)
      wantSegment(context, period, scaled(EMPTY_AGAIN_MS, context.options))
}

/** Once the oldest period was read, adds the one before it, until a span of three full periods has no entries. */
function extendBack(context: EngineContext, id: string): void {
  const periods = context.store.segments.of(id, '')
  wantEmpty(context, periods)
  const last = periods.at(-1)
  if (!last?.from || isUnread(last)) return
  const to = Date.parse(last.from)
  const newestEmpty = isoInstant(to + EMPTY_IN_A_ROW * LONGEST_PERIOD_MS)
  const oldest = periods.filter(({ from }) => from !== null && from < newestEmpty)
  const reachesBack = (periods[0]?.to ?? '') >= newestEmpty
  if (reachesBack && oldest.every(({ rows, listedAt }) => rows === 0 && listedAt !== null)) return
  addPeriod(context, id, to - LONGEST_PERIOD_MS, to)
}

/** After a period was read: joins closed periods, and adds the next older or newer period. */
export function continuePeriods(context: EngineContext, id: string): void {
  const { segments } = context.store
  joinClosed(segments, id)
  if (isNewestOpen(segments.of(id, ''))) extendBack(context, id)
  else planPeriods(context, id)
}
