import { PAGING } from '../../../api/paging.ts'
import type { PeriodicFeed, Resource } from '../../../catalog/resource.ts'
import { isoInstant } from '../../../clock.ts'
import { type ParleyError, ResourceError } from '../../../errors.ts'
import { NO_PASS, type Segment } from '../../../store/sync/segments.ts'
import type { EngineContext } from '../../context.ts'
import { backOff } from '../../due/back-off.ts'
import { dueSegments } from '../../due/due.ts'
import { HOUR } from '../../due/intervals.ts'
import { createTurns } from '../../due/overload-order.ts'
import { putOffList } from '../../due/put-off.ts'
import type { ListOf } from '../../due/schedule.ts'
import type { Job, Source } from '../../scheduler/job.ts'
import { applyPage } from '../apply-page.ts'
import { noteUnread, resolveUnread } from '../failed-span.ts'
import { ATTEMPTS_OF_A_PART, aloneBackoffMs, nextForPeriod } from '../narrowing.ts'
import { createLoopGuards, deadCursorError, segmentToRestart } from '../pass.ts'
import { handleRefusal } from '../refusals.ts'
import { periodSteps, timeColumn } from './page.ts'
import { isNewestOpen, planPeriods } from './periods.ts'
import { createUndatedEntries } from './undated-entries.ts'

/**
 * Reads a log in periods with an exclusive end (spec: access logs). The newest period is an hour long, so that no more
 * than an hour or two is read again. Older periods are 31 days long, back to three empty ones in a row.
 */

export function createPeriodic(
  context: EngineContext,
  resource: Resource,
  name: string,
  feed: PeriodicFeed,
): Source {
  const { store, options, backoffs, schedule } = context
  const id = `${resource.name}.${name}`
  const where = { resource: resource.name, feed: id }
  const list: ListOf = { resource: resource.name, id, feed }
  let underWay = false
  let endIgnored = false
  const guards = createLoopGuards()
  const undated = createUndatedEntries(context, feed, timeColumn(feed))
  const turns = createTurns<Segment>(period => schedule.overdue(list, period))
  let planned = false
  let feedFailures = 0
  let isAnswered = false

  const periods = () => store.segments.of(id, '')
  const due = () => dueSegments(context, list)

  /** In the daemon, the next period is planned when the open one falls due. */
  const isPlanned = () => planned || (schedule.isTimed && due().length === 0 && isNewestOpen(periods()))

  const job = (period: Segment): Job => {
    const end = endIgnored || period.to === null ? {} : { [options.accessLogEndParameter]: period.to }
    const from = period.from === null ? {} : { [feed.from]: period.from }
    const query = { limit: String(PAGING[feed.list.paging].maxLimit), ...from, ...end, ...period.cursor }
    return {
      ...where,
      expected: feed.expected,
      request: { resource: resource.name, route: feed.list.path, path: feed.list.path, query },
      ...(period.attempts > 0 ? { attempts: ATTEMPTS_OF_A_PART } : {}),
      answer(value, reply) {
        resolveUnread(context, list, period)
        feedFailures = 0
        isAnswered = true
        const steps = periodSteps(context, { resource, id, feed, guards, undated, isEndIgnored: endIgnored })
        const page = { where, paging: feed.list.paging, query, segment: period }
        if (applyPage(context, page, { value, reply }, steps)) return
        endIgnored = true
        context.runs.fail(where, endParameterError(options.accessLogEndParameter))
      },
      refused(status, message) {
        if (status === 400 && period.cursor) {
          if (period.restarts > 0) throw deadCursorError('refused')
          store.segments.save(segmentToRestart(period))
          return
        }
        if (status === 400 && !endIgnored && period.to !== null) {
          endIgnored = true
          context.runs.fail(where, endParameterError(options.accessLogEndParameter))
          return
        }
        handleRefusal(context, where, feed.expected, status, message)
      },
      failed(error) {
        feedFailures += 1
        narrowPeriod(context, { list, period, error, feedFailures, isAnswered })
      },
      over() {
        underWay = false
      },
    }
  }

  const assumeClock = () => {
    if (!context.server.isKnown()) context.server.observe(context.clock.now(), 0)
  }

  /**
   * Periods follow the server's clock, so a request is made to learn it when no answer has shown it yet. Even a 400
   * shows it; the first period's request then finds out what is refused.
   */
  const clockJob = (): Job => {
    const now = context.server.now()
    const period = {
      [feed.from]: new Date(now - HOUR).toISOString(),
      [options.accessLogEndParameter]: new Date(now).toISOString(),
    }
    return {
      ...where,
      expected: feed.expected,
      request: {
        resource: resource.name,
        route: feed.list.path,
        path: feed.list.path,
        query: { limit: '1', ...period },
      },
      answer: assumeClock,
      refused(status, message) {
        if (status === 400) assumeClock()
        else handleRefusal(context, where, feed.expected, status, message)
      },
      failed(error) {
        backOff(context, where, error)
      },
      over() {
        underWay = false
      },
    }
  }

  return {
    ...where,
    get lane() {
      return schedule.laneOf(list, undefined)
    },
    next() {
      if (backoffs.isWaiting(id) || underWay) return undefined
      if (!isPlanned() && !context.server.isKnown()) {
        underWay = true
        return clockJob()
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
      return job(period)
    },
    finished: () => backoffs.isWaiting(id) || (isPlanned() && !underWay && due().length === 0),
    replan() {
      planned = false
    },
  }
}

interface FailedPeriod {
  list: ListOf
  period: Segment
  error: ParleyError
  feedFailures: number
  isAnswered: boolean
}

/** Does what `nextForPeriod` decides, so that one bad entry does not hide a month. */
function narrowPeriod(context: EngineContext, failed: FailedPeriod): void {
  const { list, period, error, feedFailures, isAnswered } = failed
  const { segments } = context.store
  const attempts = period.attempts + 1
  const next = nextForPeriod({
    attempts,
    limit: 0,
    code: error.code,
    mayPass: context.schedule.isTimed,
    from: period.from,
    to: period.to,
    feedFailures,
    isAnswered,
  })
  if (next.step === 'wait') putOffList(context, { resource: list.resource, feed: list.id }, period, error)
  else if (next.step === 'cut') {
    const { passStartedAt, passRound, listedAt, listedRound } = period
    const state = { passStartedAt, passRound, listedAt, listedRound, attempts, retryAt: null }
    const whole = { ...period, ...NO_PASS }
    const at = isoInstant(next.at)
    segments.save({ ...segments.cut(whole, at), ...state })
    segments.save({ ...whole, ...state, from: at })
  } else {
    segments.save({ ...period, ...NO_PASS, attempts, retryAt: context.after(aloneBackoffMs(attempts)) })
    noteUnread(context, list, period, error)
  }
}

function endParameterError(parameter: string): ResourceError {
  return new ResourceError(`The API does not accept ?${parameter}= as the end of a period`, {
    code: 'end-parameter',
    hint: 'Set access_log.end_parameter to the name that the API uses. Until then, periods are read without an end.',
  })
}
