import { MAX_LIMITS } from '../../../api/paging.ts'
import { longestBackoffMs } from '../../../base/backoff.ts'
import { DAY_MS, HOUR_MS, isoInstant } from '../../../base/clock.ts'
import { ResourceError } from '../../../base/errors.ts'
import type { DeclaredFeed } from '../../../catalog/feeds.ts'
import type { PeriodicFeed } from '../../../declare/resource.ts'
import type { Segment } from '../../../store/sync/segments.ts'
import type { EngineContext } from '../../context/context.ts'
import { scaled } from '../../context/intervals.ts'
import type { Job, Source } from '../../context/job.ts'
import { backOff } from '../../due/back-off.ts'
import { dueSegments } from '../../due/due.ts'
import { listPage } from '../apply-page.ts'
import { narrowSpan } from '../failed-span.ts'
import { type Asking, createListSources, type ListState } from '../lists.ts'
import { isCursorRefusal, restartPass } from '../pass.ts'
import { resolveUnread } from '../put-off.ts'
import { handleRefusal } from '../refusals.ts'
import { applyPeriodPage, type PeriodReads, timeColumn } from './page.ts'
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
    undated: createUndatedEntries(context, feed, timeColumn(feed)),
    endIgnoredAt: undefined,
    isEndDoubted: false,
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
    isOneByOne: true,
    prepare,
    ask(period, state) {
      reads.undated.requesting(period)
      return askPeriod(context, reads, period, state)
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
        else handleRefusal(context, list, status, message)
      },
      failed(error) {
        tries += 1
        askAt = clock.elapsed() + longestBackoffMs(CLOCK_AGAIN, tries)
        if (tries < MOST_CLOCK_TRIES || server.isKnown()) return
        tries = 0
        backOff(context, list, error)
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

/** How long the end parameter is left out after a refusal. A single 400 may be a fault of the API. Scaled. */
const END_AGAIN_MS = DAY_MS

/** Requests a period's next page. Updates `reads` with what the outcome shows. */
function askPeriod(
  context: EngineContext,
  reads: PeriodReads,
  period: Segment,
  { guard, failures }: ListState,
): Asking {
  const { list } = reads
  const { feed } = list
  const { clock, options } = context
  const againAt = (reads.endIgnoredAt ?? 0) + scaled(END_AGAIN_MS, options)
  // A cursor is valid only with the query that returned it, so a pass keeps its query.
  if (period.cursor === null && clock.elapsed() >= againAt) reads.endIgnoredAt = undefined
  const isEndIgnored = reads.endIgnoredAt !== undefined
  const query = {
    limit: String(MAX_LIMITS[feed.list.paging]),
    ...(period.from !== null && { [feed.from]: period.from }),
    ...(!isEndIgnored && period.to !== null && { [options.accessLogEndParameter]: period.to }),
    ...period.cursor,
  }
  const { isEndDoubted } = reads
  const reportEnd = () => context.runs.fail(list, endParameterError(options.accessLogEndParameter))
  return {
    request: { route: feed.list.path, path: feed.list.path, query },
    isPart: !context.schedule.isTimed && period.attempts > 0,
    answer(value, reply) {
      resolveUnread(context, list, period)
      failures.end()
      reads.isAnswered = true
      const page = listPage(context, list, { query, segment: period }, { value, reply })
      if (!applyPeriodPage(context, reads, page, { guard, isEndIgnored })) {
        reads.endIgnoredAt = clock.elapsed()
        reportEnd()
      } else if (isEndDoubted) {
        reads.isEndDoubted = false
        reportEnd()
      }
    },
    refused(status, message) {
      if (isCursorRefusal(status, period.cursor)) restartPass(context.store.segments, period, 'refused')
      else if (status === 400 && !isEndIgnored && period.to !== null) {
        reads.endIgnoredAt = clock.elapsed()
        reads.isEndDoubted = true
      } else if (status === 400 && isEndIgnored) {
        reads.endIgnoredAt = undefined
        reads.isEndDoubted = false
        throw periodRefusedError(options.accessLogEndParameter, message)
      } else handleRefusal(context, list, status, message)
    },
    failed(error) {
      narrowSpan(context, {
        list,
        segment: period,
        limit: 0,
        error,
        failures,
        isAnswered: reads.isAnswered,
        smallerPages: () => null,
      })
    },
  }
}

function endParameterError(parameter: string): ResourceError {
  return new ResourceError(`The API does not accept ?${parameter}= as the end of a period`, {
    code: 'end-parameter',
    hint: 'Set access_log.end_parameter to the name that the API uses. Until then, periods are read without an end.',
  })
}

/** For a period that the API refuses with an end and without one: its words show what is wrong. */
function periodRefusedError(parameter: string, message: string): ResourceError {
  return new ResourceError(
    `The API accepts a period neither with ?${parameter}= as its end nor without an end, and answers 400: ${message}`,
    {
      code: 'end-parameter',
      hint: 'If that is about the end of the period, set access_log.end_parameter to the name that the API uses. `parley doctor` shows which requests the API accepts.',
    },
  )
}
