import { PAGING } from '../../../api/paging.ts'
import { DAY_MS, isoInstant } from '../../../base/clock.ts'
import { type ParleyError, ResourceError } from '../../../base/errors.ts'
import { NO_PASS, type Segment } from '../../../store/sync/segments.ts'
import type { EngineContext } from '../../context/context.ts'
import { scaled } from '../../context/intervals.ts'
import { applyPage } from '../apply-page.ts'
import type { Asking } from '../lists.ts'
import { aloneBackoffMs, attemptsOfPage, stepAfterFailedPeriodPage } from '../narrowing.ts'
import { cutFailed, isCursorRefusal, restartPass } from '../pass.ts'
import { noteUnread, putOffList, resolveUnread } from '../put-off.ts'
import { handleRefusal } from '../refusals.ts'
import { type PeriodReads, periodSteps } from './page.ts'

/** How long the end parameter is left out after a refusal. A single 400 may be a fault of the API. Scaled. */
const END_AGAIN_MS = DAY_MS

/** Requests a period's next page. Updates `reads` with what the outcome shows. */
export function askPeriod(context: EngineContext, reads: PeriodReads, period: Segment): Asking {
  const { list } = reads
  const { resource, id, feed } = list
  const where = { resource, feed: id }
  const { clock, options } = context
  const againAt = (reads.endIgnoredAt ?? 0) + scaled(END_AGAIN_MS, options)
  // A cursor is valid only with the query that returned it, so a pass keeps its query.
  if (period.cursor === null && clock.elapsed() >= againAt) reads.endIgnoredAt = undefined
  const isEndIgnored = reads.endIgnoredAt !== undefined
  const query = {
    limit: String(PAGING[feed.list.paging].maxLimit),
    ...(period.from !== null && { [feed.from]: period.from }),
    ...(!isEndIgnored && period.to !== null && { [options.accessLogEndParameter]: period.to }),
    ...period.cursor,
  }
  const { isEndDoubted } = reads
  const reportEnd = () => context.runs.fail(where, endParameterError(options.accessLogEndParameter))
  return {
    request: { route: feed.list.path, path: feed.list.path, query },
    ...attemptsOfPage({
      isTimed: context.schedule.isTimed,
      isPart: !context.schedule.isTimed && period.attempts > 0,
      failures: period.attempts + reads.feedFailures,
    }),
    answer(value, reply) {
      resolveUnread(context, list, period)
      reads.feedFailures = 0
      reads.isAnswered = true
      const page = { where, paging: feed.list.paging, query, segment: period }
      const steps = periodSteps(context, reads, isEndIgnored)
      if (!applyPage(context, page, { value, reply }, steps)) {
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
      } else handleRefusal(context, where, feed.expected, status, message)
    },
    failed(error) {
      reads.feedFailures += 1
      narrowPeriod(context, reads, period, error)
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

/** Carries out the step that `stepAfterFailedPeriodPage` chooses, so that one bad entry does not make a month unreadable. */
function narrowPeriod(
  context: EngineContext,
  { list, feedFailures, isAnswered }: PeriodReads,
  period: Segment,
  error: ParleyError,
): void {
  const { segments } = context.store
  const attempts = period.attempts + 1
  const next = stepAfterFailedPeriodPage({
    attempts,
    limit: 0,
    code: error.code,
    mayPass: context.schedule.isTimed,
    from: period.from,
    to: period.to,
    feedFailures,
    isAnswered,
  })
  if (next.step === 'wait')
    putOffList(context, { resource: list.resource, feed: list.id }, period, error, { ofList: feedFailures })
  else if (next.step === 'cut') {
    const { passStartedAt, passRound } = period
    const unread = { ...period, ...NO_PASS, passStartedAt, passRound }
    for (const part of cutFailed(segments, unread, isoInstant(next.at)))
      segments.save({ ...part, attempts, retryAt: null })
  } else {
    segments.save({ ...period, ...NO_PASS, attempts, retryAt: context.after(aloneBackoffMs(attempts)) })
    noteUnread(context, list, period, error)
  }
}
