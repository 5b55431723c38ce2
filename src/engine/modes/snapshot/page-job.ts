import { PAGING } from '../../../api/paging.ts'
import { fillPath } from '../../../api/request.ts'
import type { ParleyError } from '../../../base/errors.ts'
import type { SnapshotFeed } from '../../../declare/resource.ts'
import { NO_PASS, type Segment } from '../../../store/sync/segments.ts'
import type { EngineContext } from '../../context/context.ts'
import type { Batches } from '../../context/job.ts'
import { applyPage } from '../apply-page.ts'
import type { Asking } from '../lists.ts'
import { attemptsOfPage, stepAfterFailedPass } from '../narrowing.ts'
import { isCursorRefusal, NOT_FAILED, type Query, restartPass } from '../pass.ts'
import { putOffList } from '../put-off.ts'
import { handleRefusal } from '../refusals.ts'
import {
  failScope,
  markScopeUnavailable,
  type ScopeList,
  type ScopeRefusal,
  scopeHistory,
} from '../refused-scope.ts'
import { type SnapshotReads, snapshotSteps } from './page.ts'

/** Requests the next page of a pass. */
export function askPage(context: EngineContext, reads: SnapshotReads, pass: Segment): Asking {
  const { resource, id, feed } = reads
  const { scope } = pass
  const where = { resource, feed: id }
  const query = {
    ...(feed.list.scopeParameter !== undefined && { [feed.list.scopeParameter]: scope }),
    ...limitQuery(feed, pass),
    ...pass.cursor,
  }
  let rest: Batches | undefined
  return {
    scope,
    request: { route: feed.list.path, path: fillPath(feed.list.path, { scope }), query },
    ...attemptsOfPage({
      isTimed: context.schedule.isTimed,
      isPart: false,
      failures: pass.attempts + reads.failing.size,
    }),
    answer(value, reply) {
      reads.failing.clear()
      // The other scopes have waited for this one.
      if (context.backoffs.hasFailed(id, '')) context.store.segments.retryNow(id)
      const page = { where, paging: feed.list.paging, query, segment: pass }
      rest = applyPage(context, page, { value, reply }, snapshotSteps(context, reads))
    },
    afterwards: () => rest,
    refused(status, message) {
      if (retryAnotherWay(context, reads, pass, status)) return
      const meaning = feed.expected?.[status]
      const refusal = { where, scope, status, message }
      const of = { list: id, feed, scope }
      if (meaning === 'absent') handleAbsent(context, pass, refusal, of)
      else if (feed.scope && meaning === 'unavailable') handleUnavailable(context, pass, refusal, of)
      else handleRefusal(context, where, feed.expected, status, message)
    },
    failed: error => failPass(context, reads, { pass, limit: Number(query['limit'] ?? 0), error }),
  }
}

/** A list whose paging the spec does not state is first requested without `limit`, which the API may refuse. */
function limitQuery({ list }: SnapshotFeed, pass: Segment): Query {
  if (list.paging === 'any') return pass.query ?? {}
  return { limit: pass.query?.['limit'] ?? String(PAGING[list.paging].maxLimit) }
}

/**
 * Once this many scopes have failed in a row for the first time, the whole list is at fault: one scope tries for all.
 */
const FAILING_SCOPES = 3

/** After a failed request, restarts the pass with smaller pages, or puts off this scope alone. */
function failPass(
  context: EngineContext,
  { resource, id, failing }: SnapshotReads,
  { pass, limit, error }: { pass: Segment; limit: number; error: ParleyError },
): void {
  const { backoffs, schedule } = context
  const attempts = pass.attempts + 1
  const next = stepAfterFailedPass({ attempts, limit, code: error.code, mayPass: schedule.isTimed })
  if (pass.attempts === 0) failing.add(pass.scope)
  if (schedule.isTimed && (failing.size >= FAILING_SCOPES || backoffs.hasFailed(id, '')))
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
function handleAbsent(context: EngineContext, pass: Segment, refusal: ScopeRefusal, of: ScopeList): void {
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

function handleUnavailable(
  context: EngineContext,
  pass: Segment,
  refusal: ScopeRefusal,
  of: ScopeList,
): void {
  const history = scopeHistory(context, of)
  if (history === 'has-rows') {
    failScope(context, refusal, of)
    return
  }
  const unavailableSince = pass.unavailableSince ?? context.now()
  context.store.segments.save({ ...pass, ...NO_PASS, ...NOT_FAILED, listedRound: 0, unavailableSince })
  markScopeUnavailable(context, refusal, history)
}

/**
 * A refusal may be due to an expired cursor, and a 400 also to `limit`. Returns whether the pass restarts without that
 * parameter.
 */
function retryAnotherWay(
  { store }: EngineContext,
  { feed, unlimited }: SnapshotReads,
  pass: Segment,
  status: number,
): boolean {
  if (pass.cursor === null) {
    const mayBeLimit = status === 400 && feed.list.paging === 'any' && pass.query?.['limit'] !== undefined
    if (!mayBeLimit) return false
    unlimited.add(pass.scope)
    store.segments.save({ ...pass, ...NO_PASS })
    return true
  }
  if (!isCursorRefusal(status, pass.cursor)) return false
  restartPass(store.segments, pass, 'refused', { query: pass.query })
  return true
}
