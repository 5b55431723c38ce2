import { isoInstant } from '../../../base/clock.ts'
import type { DeclaredFeed } from '../../../catalog/feeds.ts'
import type { PeriodicFeed } from '../../../declare/resource.ts'
import type { EngineContext } from '../../context/context.ts'
import { HOUR } from '../../context/intervals.ts'
import type { Job } from '../../context/job.ts'
import { backOff } from '../../due/back-off.ts'
import { handleRefusal } from '../refusals.ts'

/**
 * Requests one entry to learn the server's clock, if no answer has shown it yet: the bounds of the periods follow this
 * clock. A 400 shows it too. The request for the first period then finds out what the API refuses.
 */
export function clockJob(
  context: EngineContext,
  { resource, id, feed }: DeclaredFeed<PeriodicFeed>,
  over: () => void,
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
    failed: error => backOff(context, where, error),
    over,
  }
}
