import { longestBackoffMs } from '../../../base/backoff.ts'
import { HOUR_MS, isoInstant } from '../../../base/clock.ts'
import type { DeclaredFeed } from '../../../catalog/feeds.ts'
import type { PeriodicFeed } from '../../../declare/resource.ts'
import type { EngineContext } from '../../context/context.ts'
import type { Job, Source } from '../../context/job.ts'
import { backOff } from '../../due/back-off.ts'
import { dueSegments } from '../../due/due.ts'
import { createListSources } from '../lists.ts'
import { createLoopGuards } from '../pass.ts'
import { handleRefusal } from '../refusals.ts'
import { type PeriodReads, timeColumn } from './page.ts'
import { askPeriod } from './period-job.ts'
import { isNewestOpen, planPeriods } from './periods.ts'
import { createUndatedEntries } from './undated-entries.ts'

/**
 * Reads a log in periods with an exclusive end (spec: access logs). The newest period is an hour long, so that no more
 * than an hour or two is read again. Older periods are 31 days long, back to three empty ones in a row.
 */
export function createPeriodic(context: EngineContext, list: DeclaredFeed<PeriodicFeed>): Source[] {
  const { store, schedule, server } = context
  const { id, feed } = list
  const reads: PeriodReads = {
    list,
    guards: createLoopGuards(schedule),
    undated: createUndatedEntries(context, feed, timeColumn(feed)),
    endIgnoredAt: undefined,
    isEndDoubted: false,
    feedFailures: 0,
    isAnswered: false,
  }
  let planned = false

  /** In the daemon, the next period is planned when the open one falls due. */
  const isPlanned = () =>
    planned ||
    (schedule.isTimed && dueSegments(context, list).length === 0 && isNewestOpen(store.segments.of(id, '')))
  const prepare = (): boolean => {
    if (isPlanned()) return true
    if (server.isKnown()) planned = store.attempt(() => planPeriods(context, id)) !== undefined
    return planned
  }

  const periods = createListSources(context, {
    list,
    route: feed.list.path,
    isOneByOne: true,
    prepare,
    ask(period) {
      reads.guards.asking(period)
      reads.undated.requesting(period)
      return askPeriod(context, reads, period)
    },
    replan() {
      planned = false
    },
  })
  return [createClockSource(context, list, isPlanned), ...periods]
}

const CLOCK_AGAIN = { firstMs: 500, mostMs: 10_000 }
const MOST_CLOCK_TRIES = 6

/**
 * Requests one entry to learn the server's clock, if no answer has shown it yet: the bounds of the periods follow this
 * clock. A 400 shows it too. The request for the first period then finds out what the API refuses.
 */
function createClockSource(
  context: EngineContext,
  list: DeclaredFeed<PeriodicFeed>,
  isPlanned: () => boolean,
): Source {
  const { server, options, backoffs, clock, schedule } = context
  const { resource, id, feed } = list
  const where = { resource, feed: id }
  /** Number of failed requests. No row can store it, since there is no period yet. */
  let tries = 0
  let askAt = Number.NEGATIVE_INFINITY
  let isUnderWay = false

  const waitMs = () =>
    server.isKnown() || isPlanned()
      ? Number.POSITIVE_INFINITY
      : Math.max(0, askAt - clock.elapsed(), backoffs.waitMs(id))
  const assumeClock = () => {
    if (!server.isKnown()) server.assume()
  }
  const job = (): Job => {
    const now = server.now()
    const query = {
      limit: '1',
      [feed.from]: isoInstant(now - HOUR_MS),
      [options.accessLogEndParameter]: isoInstant(now),
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
      failed(error) {
        tries += 1
        askAt = clock.elapsed() + longestBackoffMs(CLOCK_AGAIN, tries)
        if (tries < MOST_CLOCK_TRIES || server.isKnown()) return
        tries = 0
        backOff(context, where, error)
      },
      over() {
        isUnderWay = false
      },
    }
  }

  return {
    ...where,
    route: feed.list.path,
    get lane() {
      return schedule.laneOf(list, undefined)
    },
    next() {
      if (isUnderWay || backoffs.isWaiting(id) || waitMs() > 0) return undefined
      isUnderWay = true
      return job()
    },
    waitMs,
    isBusy: () => isUnderWay,
  }
}
