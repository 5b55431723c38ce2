import { isoInstant } from '../../../clock.ts'
import type { ParleyError } from '../../../errors.ts'
import { NO_PASS, type Segment } from '../../../store/sync/segments.ts'
import type { EngineContext } from '../../context.ts'
import { putOffList } from '../../due/put-off.ts'
import type { ListOf } from '../../due/schedule.ts'
import { noteUnread } from '../failed-span.ts'
import { aloneBackoffMs, nextForPeriod } from '../narrowing.ts'

export interface FailedPeriod {
  list: ListOf
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
