import { PAGING } from '../../../api/paging.ts'
import { fillPath } from '../../../api/request.ts'
import type { ParleyError } from '../../../base/errors.ts'
import type { SnapshotFeed } from '../../../declare/resource.ts'
import { NO_PASS, type Segment } from '../../../store/sync/segments.ts'
import type { EngineContext } from '../../context/context.ts'
import { applyPage } from '../apply-page.ts'
import type { Asking } from '../lists.ts'
import { attemptsOfPage, nextForPass } from '../narrowing.ts'
import { NOT_FAILED, type Query, restartPass } from '../pass.ts'
import { putOffList } from '../put-off.ts'
import { handleRefusal } from '../refusals.ts'
import { failScope, markScopeUnavailable, scopeHistory } from '../refused-scope.ts'
import { type SnapshotWork, snapshotSteps } from './page.ts'

/** Requests the next page of a pass. */
export function askPage(context: EngineContext, reads: Omit<SnapshotWork, 'rest'>, pass: Segment): Asking {
  const { resource, id, feed } = reads
  const where = { resource, feed: id }
  const query = {
    ...scopeQuery(feed, pass.scope),
    ...limitQuery(feed, pass),
    ...pass.cursor,
  }
  const work: SnapshotWork = { ...reads }
  const asked = { work, pass, query }
  return {
    scope: pass.scope,
    request: { route: feed.list.path, path: fillPath(feed.list.path, { scope: pass.scope }), query },
    ...attemptsOfPage({
      isTimed: context.schedule.isTimed,
      isPart: false,
      failures: pass.attempts + work.failing.size,
    }),
    answer(value, reply) {
      work.failing.clear()
      // The other scopes have waited for this one.
      if (context.backoffs.hasFailed(id, '')) context.store.segments.retryNow(id)
      const page = { where, paging: feed.list.paging, query, segment: pass }
      applyPage(context, page, { value, reply }, snapshotSteps(context, work))
    },
    afterwards: () => work.rest,
    refused(status, message) {
      if (status === 400 && retryAnotherWay(context, asked)) return
      if (feed.expected?.[status] === 'absent')
        handleAbsent(context, pass, refusedPage(asked, status, message))
      else if (feed.scope && feed.expected?.[status] === 'unavailable') {
        handleUnavailable(context, pass, refusedPage(asked, status, message))
      } else handleRefusal(context, where, feed.expected, status, message)
    },
    failed: error => failPass(context, asked, error),
  }
}

interface AskedPage {
  work: SnapshotWork
  pass: Segment
  query: Query
}

function scopeQuery({ list }: SnapshotFeed, scope: string): Query {
  return list.scopeParameter === undefined ? {} : { [list.scopeParameter]: scope }
}

/** A list whose paging the spec does not state is first requested without `limit`, which the API may refuse. */
function limitQuery({ list }: SnapshotFeed, pass: Segment): Query {
  if (list.paging === 'any') return pass.query ?? {}
  return { limit: pass.query?.['limit'] ?? String(PAGING[list.paging].maxLimit) }
}

/** Once this many scopes have failed in a row for the first time, the whole list is at fault: one scope tries for all. */
const FAILING_SCOPES = 3

/** After a failed request, restarts the pass with smaller pages, or puts off this scope alone. */
function failPass(context: EngineContext, { work, pass, query }: AskedPage, error: ParleyError): void {
  const { resource, id } = work
  const attempts = pass.attempts + 1
  const next = nextForPass({
    attempts,
    limit: Number(query['limit'] ?? 0),
    code: error.code,
    mayPass: context.schedule.isTimed,
  })
  if (pass.attempts === 0) work.failing.add(pass.scope)
  const { backoffs, schedule } = context
  if (schedule.isTimed && (work.failing.size >= FAILING_SCOPES || backoffs.hasFailed(id, '')))
    backoffs.failed(id, '')
  if (next.step === 'wait') putOffList(context, { resource, feed: id }, pass, error)
  else {
    const smaller = { ...pass.query, limit: String(next.limit) }
    context.store.segments.save({ ...pass, ...NO_PASS, query: smaller, attempts, retryAt: null })
  }
}

/**
 * Handles a refusal that may mean that the parent row of the scope is deleted. The list of the parent rows decides
 * that. In the daemon it is read at once, and the refusal is reported only if the next request of the scope is refused
 * too: a parent is often deleted before its list is due, and the list is read between the two requests.
 */
function handleAbsent(context: EngineContext, pass: Segment, { of, refusal }: RefusedPage): void {
  const { store, schedule, backoffs } = context
  if (scopeHistory(context, of) === 'has-rows') {
    const isReported = !schedule.isTimed || backoffs.hasFailed(of.list, of.scope)
    store.segments.save({ ...pass, ...NO_PASS })
    failScope(context, refusal, of, { isReported })
  } else {
    store.segments.remove(pass)
    backoffs.failed(of.list, of.scope)
  }
}

function handleUnavailable(context: EngineContext, pass: Segment, { of, refusal }: RefusedPage): void {
  const history = scopeHistory(context, of)
  if (history === 'has-rows') {
    failScope(context, refusal, of)
    return
  }
  const unavailableSince = pass.unavailableSince ?? context.now()
  context.store.segments.save({ ...pass, ...NO_PASS, ...NOT_FAILED, listedRound: 0, unavailableSince })
  markScopeUnavailable(context, refusal, history)
}

type RefusedPage = ReturnType<typeof refusedPage>

function refusedPage(
  { work: { resource, feed, id }, pass: { scope } }: AskedPage,
  status: number,
  message: string,
) {
  const where = { resource, feed: id }
  return { of: { list: id, feed, scope }, refusal: { where, scope, status, message } }
}

/** A 400 may be due to `limit` or to an expired cursor. Returns whether the pass restarts without that parameter. */
function retryAnotherWay({ store }: EngineContext, { work: { feed, unlimited }, pass }: AskedPage): boolean {
  if (feed.list.paging === 'any' && pass.query?.['limit'] !== undefined && pass.cursor === null) {
    unlimited.add(pass.scope)
    store.segments.save({ ...pass, ...NO_PASS })
    return true
  }
  if (pass.cursor === null) return false
  restartPass(store.segments, pass, 'refused', { query: pass.query })
  return true
}
