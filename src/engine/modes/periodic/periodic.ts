import { longestBackoffMs } from '../../../base/backoff.ts'
import { isoInstant } from '../../../base/clock.ts'
import type { ParleyError } from '../../../base/errors.ts'
import type { DeclaredFeed } from '../../../catalog/feeds.ts'
import type { PeriodicFeed } from '../../../declare/resource.ts'
import type { Segment } from '../../../store/sync/segments.ts'
import type { EngineContext } from '../../context/context.ts'
import { HOUR } from '../../context/intervals.ts'
import type { Job, Source } from '../../context/job.ts'
import { backOff } from '../../due/back-off.ts'
import { dueSegments } from '../../due/due.ts'
import { createTurns } from '../../due/overload-order.ts'
import { isTried } from '../../due/retries.ts'
import { createLoopGuards } from '../pass.ts'
import { handleRefusal } from '../refusals.ts'
import { timeColumn } from './page.ts'
import { type PeriodReads, periodJob } from './period-job.ts'
import { isNewestOpen, planPeriods } from './periods.ts'
import { createUndatedEntries } from './undated-entries.ts'

/**
 * Reads a log in periods with an exclusive end (spec: access logs). The newest period is an hour long, so that no more
 * than an hour or two is read again. Older periods are 31 days long, back to three empty ones in a row.
 */
export function createPeriodic(context: EngineContext, list: DeclaredFeed<PeriodicFeed>): Source {
  const { store, backoffs, schedule } = context
  const { resource, id, feed } = list
  const where = { resource, feed: id }
  const guards = createLoopGuards(context.schedule)
  const undated = createUndatedEntries(context, feed, timeColumn(feed))
  const turns = createTurns<Segment>(period => schedule.overdue(list, period))
  const reads: PeriodReads = {
    list,
    guards,
    undated,
    endIgnoredAt: undefined,
    feedFailures: 0,
    isAnswered: false,
  }
  let underWay = false
  let planned = false
  /** Failed requests for the clock, which no row can note, since there is no period yet. */
  let clockTries = 0
  let askClockAt = Number.NEGATIVE_INFINITY

  const due = () => dueSegments(context, list)
  /** In the daemon, the next period is planned when the open one falls due. */
  const isPlanned = () =>
    planned || (schedule.isTimed && due().length === 0 && isNewestOpen(store.segments.of(id, '')))
  const over = () => {
    underWay = false
  }
  const askClockMs = () => askClockAt - context.clock.elapsed()
  const askClockLater = (error: ParleyError) => {
    clockTries += 1
    askClockAt = context.clock.elapsed() + longestBackoffMs(CLOCK_AGAIN, clockTries)
    if (clockTries < MOST_CLOCK_TRIES || context.server.isKnown()) return
    clockTries = 0
    backOff(context, where, error)
  }

  return {
    ...where,
    route: feed.list.path,
    get lane() {
      return schedule.laneOf(list, undefined)
    },
    next() {
      if (backoffs.isWaiting(id) || underWay) return undefined
      if (!isPlanned() && !context.server.isKnown()) {
        if (askClockMs() > 0) return undefined
        underWay = true
        return clockJob(context, list, { failed: askClockLater, over })
      }
      if (!isPlanned()) {
        if (!store.attempt(() => planPeriods(context, id))) return undefined
        planned = true
      }
      const period = turns.take(due())
      if (!period) return undefined
      underWay = true
      guards.asking(period)
      undated.requesting(period)
      return periodJob(context, reads, period, over)
    },
    finished: () =>
      backoffs.isWaiting(id) || (isPlanned() && !underWay && due().length === 0 && !isTried(context, where)),
    waitMs: () =>
      isPlanned() || context.server.isKnown()
        ? Number.POSITIVE_INFINITY
        : Math.max(0, askClockMs(), backoffs.waitMs(id)),
    replan() {
      planned = false
    },
  }
}

const CLOCK_AGAIN = { firstMs: 500, mostMs: 10_000 }
const MOST_CLOCK_TRIES = 6

/**
 * Requests one entry to learn the server's clock, if no answer has shown it yet: the bounds of the periods follow this
 * clock. A 400 shows it too. The request for the first period then finds out what the API refuses.
 */
function clockJob(
  context: EngineContext,
  { resource, id, feed }: DeclaredFeed<PeriodicFeed>,
  { failed, over }: Pick<Job, 'failed' | 'over'>,
): Job {
  const { server, options } = context
  const where = { resource, feed: id }
  const now = server.now()
  const query = {
    limit: '1',
    [feed.from]: isoInstant(now - HOUR),
    [options.accessLogEndParameter]: isoInstant(now),
  }
  const assumeClock = () => {
    if (!server.isKnown()) server.assume()
  }
  return {
    ...where,
    expected: feed.expected,
    request: { route: feed.list.path, path: feed.list.path, query },
    answer: assumeClock,
    refused(status, message) {
      if (status === 400) assumeClock()
      else handleRefusal(context, where, feed.expected, status, message)
    },
    failed,
    over,
  }
}
