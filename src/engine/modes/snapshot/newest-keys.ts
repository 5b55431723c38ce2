import { readPage } from '../../../api/paging.ts'
import type { Query } from '../../../api/request.ts'
import type { DeclaredFeed } from '../../../catalog/feeds.ts'
import type { SnapshotFeed } from '../../../declare/resource.ts'
import type { EngineContext } from '../../context/context.ts'
import { scaled, usualIntervalMs } from '../../context/intervals.ts'
import type { Job, Source } from '../../context/job.ts'
import { backOff } from '../../due/back-off.ts'
import { keyOf } from '../../parse/key.ts'
import { createPageGuard } from '../page-guard.ts'
import { refusalError } from '../refusals.ts'
import { storeListed } from './page.ts'

/**
 * Reads the newest end of a list of keys between two passes over the whole list. It is read at the list's usual
 * interval, if passes take so long that they begin less often than that. The read stops at the first page without new
 * keys, and denies no row. If the list does not return the newest keys first, the next whole pass finds the missed
 * keys. The cursor is kept in memory, so a restart costs one more read.
 */
export function createNewestKeys(
  context: EngineContext,
  list: DeclaredFeed<SnapshotFeed>,
): Source | undefined {
  const { store, schedule, backoffs, server } = context
  const { resource, id, feed } = list
  if (!schedule.isTimed || feed.lists !== 'keys' || feed.scope) return undefined
  const where = { resource, feed: id }
  let underWay = false
  let endedAt = Number.NEGATIVE_INFINITY
  let cursor: Query | null = null
  let guard = createPageGuard()

  const end = () => {
    cursor = null
    guard = createPageGuard()
    endedAt = server.now()
  }

  const isKnown = (key: string) => store.tasks.find({ feed: `${resource}.detail`, key }) !== undefined

  /**
   * Infinite until a whole pass has ended, while one is due or under way, while whole passes begin at the usual
   * interval, and while the feed backs off.
   */
  const waitMs = (): number => {
    const [pass] = store.segments.of(id, '')
    if (!pass?.listedAt || pass.passStartedAt !== null || backoffs.isWaiting(id))
      return Number.POSITIVE_INFINITY
    const usualMs = scaled(usualIntervalMs(feed), context.options)
    if (schedule.intervalMs(list, pass) <= usualMs || schedule.waitMs(list, pass) === 0)
      return Number.POSITIVE_INFINITY
    const tryMs = pass.tryAt === null ? 0 : store.dueClock.waitMs(pass.tryAt)
    if (cursor !== null) return tryMs
    return Math.max(tryMs, Math.max(Date.parse(pass.listedAt), endedAt) + usualMs - server.now())
  }
  const isDue = () => waitMs() === 0

  const job = (): Job => {
    const query = cursor ?? {}
    const [pass] = store.segments.of(id, '')
    guard.asking(cursor)
    return {
      ...where,
      expected: feed.expected,
      request: { route: feed.list.path, path: feed.list.path, query },
      ...(pass && { reads: { segment: pass } }),
      answer(value, reply) {
        const page = readPage(feed.list.paging, value, query)
        const newKeys = page.items
          .flatMap(item => keyOf(item, feed.keyFields) ?? [])
          .filter(key => !isKnown(key))
        const [now] = store.segments.of(id, '')
        if (now) storeListed(context, list, { page, reply, segment: now })
        if (newKeys.length === 0 || page.next === null || guard.repeats(page.next)) end()
        else cursor = page.next
      },
      refused(status, message) {
        throw refusalError(status, message)
      },
      failed(error) {
        end()
        backOff(context, list, error)
      },
      over() {
        underWay = false
      },
    }
  }

  return {
    ...where,
    route: feed.list.path,
    lane: 'audit',
    next() {
      if (underWay || !isDue()) return undefined
      underWay = true
      return job()
    },
    waitMs,
    isBusy: () => underWay,
  }
}
