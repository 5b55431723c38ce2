import { isoInstant } from '../../../base/clock.ts'
import type { ParleyError } from '../../../base/errors.ts'
import type { DeclaredFeed } from '../../../catalog/feeds.ts'
import { NO_PASS, type Segment } from '../../../store/sync/segments.ts'
import type { EngineContext } from '../../context/context.ts'
import { aloneBackoffMs, nextForPeriod } from '../narrowing.ts'
import { cutFailed } from '../pass.ts'
import { putOffList } from '../put-off.ts'
import { noteUnread } from '../unread-spans.ts'

export interface FailedPeriod {
  list: DeclaredFeed
  period: Segment
  error: ParleyError
  feedFailures: number
  isAnswered: boolean
}

/** Carries out the step that `nextForPeriod` chooses, so that one bad entry does not make a month unreadable. */
export function narrowPeriod(context: EngineContext, failed: FailedPeriod): void {
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
    const { passStartedAt, passRound } = period
    const unread = { ...period, ...NO_PASS, passStartedAt, passRound }
    for (const part of cutFailed(segments, unread, isoInstant(next.at)))
      segments.save({ ...part, attempts, retryAt: null })
  } else {
    segments.save({ ...period, ...NO_PASS, attempts, retryAt: context.after(aloneBackoffMs(attempts)) })
    noteUnread(context, list, period, error)
  }
}
