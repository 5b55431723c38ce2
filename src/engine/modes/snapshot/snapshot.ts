import { MAX_LIMITS } from '../../../api/paging.ts'
import { fillPath, type Query } from '../../../api/request.ts'
import type { ParleyError } from '../../../base/errors.ts'
import type { DeclaredFeed } from '../../../catalog/feeds.ts'
import type { Resource, SnapshotFeed } from '../../../declare/resource.ts'
import { NO_PASS, type Segment } from '../../../store/sync/segments.ts'
import type { EngineContext } from '../../context/context.ts'
import type { Batches, Source } from '../../context/job.ts'
import { createPlanInBatches } from '../../scheduler/batch-plan.ts'
import { listPage } from '../apply-page.ts'
import { type Asking, createListSources, type ListState } from '../lists.ts'
import { stepAfterFailedPass } from '../narrowing.ts'
import { isCursorRefusal, NOT_FAILED, restartPass } from '../pass.ts'
import { putOffList } from '../put-off.ts'
import { handleRefusal } from '../refusals.ts'
import {
  failScope,
  markScopeUnavailable,
  type ScopeList,
  type ScopeRefusal,
  scopeHistory,
} from '../refused-scope.ts'
import { applySnapshotPage, type PassDuration, type SnapshotReads } from './page.ts'
import { forgetSeen } from './pass-end.ts'

/**
 * Reads the whole list in every pass, with one pass for each scope. The pass notes the keys that it sees. Rows that it
 * has not seen by its end are missing, and the declared evidence decides whether they are gone.
 */
export function createSnapshot(
  context: EngineContext,
  list: DeclaredFeed<SnapshotFeed>,
  { parents }: Resource,
): Source[] {
  const { store, backoffs } = context
  const { id, feed } = list
  const durations = new Map<string, PassDuration>()
  const reads = { ...list, unlimited: new Set<string>(), durations }
  /** The scopes of which a page is requested. */
  const requested = new Set<string>()
  let scopes: Scopes | undefined

  /** Scopes are the rows of parents, so these are read first. */
  const prepare = (): boolean => {
    if (feed.scope && !parents.every(context.isFinished)) return false
    // A scope that was waiting when the scopes were collected may be due by now, even if no other scope is.
    if (scopes?.waiting.some(scope => !backoffs.isWaiting(id, scope))) scopes = undefined
    scopes ??= store.attempt(() => updateScopes(context, id, feed))?.value
    return scopes !== undefined
  }

  const leftovers = createPlanInBatches(context, {
    canBegin: () => true,
    *batches() {
      for (const { scope, pages } of store.segments.of(id))
        if (pages === 0 && !requested.has(scope)) yield* forgetSeen(context, id, scope)
    },
  })

  /** False while keys that an abandoned pass has seen are left: these keys are removed first. */
  const mayBegin = ({ pages, scope }: Segment): boolean => {
    const hasLeftover = () => pages === 0 && store.seen.hasAny(id, scope)
    if (!hasLeftover()) return true
    leftovers.invalidate()
    leftovers.isReady()
    return !hasLeftover()
  }

  return createListSources(context, {
    list,
    prepare,
    mayTake: pass => scopes?.asked.has(pass.scope) === true && mayBegin(pass),
    ask(pass, state) {
      requested.add(pass.scope)
      if (pass.cursor === null) durations.set(pass.scope, { ms: 0, at: context.clock.elapsed() })
      return { ...askPage(context, reads, pass, state), over: () => void requested.delete(pass.scope) }
    },
    replan() {
      scopes = undefined
    },
  })
}

/** The scopes of a list, such as the objects of the record lists. A list without scopes has the scope ''. */
interface Scopes {
  asked: ReadonlySet<string>
  /** The scopes that were backing off when the scopes were collected. */
  waiting: readonly string[]
}

/** Adds a segment for each new scope, and removes the segments of scopes that no longer exist. */
function updateScopes({ store, backoffs }: EngineContext, id: string, { scope }: SnapshotFeed): Scopes {
  const wanted = new Set(
    scope ? [...(scope.always ?? []), ...store.stored.liveValues(scope.table, scope.column)] : [''],
  )
  const passes = store.segments.of(id)
  for (const pass of passes) if (!wanted.has(pass.scope)) store.segments.remove(pass)
  const waiting = [...wanted].filter(one => backoffs.isWaiting(id, one))
  const asked = new Set(wanted)
  for (const one of waiting) asked.delete(one)
  const known = new Set(passes.map(pass => pass.scope))
  for (const one of asked)
    if (!known.has(one)) store.segments.add({ feed: id, scope: one, from: null, to: null })
  return { asked, waiting }
}

/** Requests the next page of a pass. */
function askPage(
  context: EngineContext,
  reads: SnapshotReads,
  pass: Segment,
  { guard, failures }: ListState,
): Asking {
  const { id, feed } = reads
  const { scope } = pass
  const query = {
    ...(feed.list.scopeParameter !== undefined && { [feed.list.scopeParameter]: scope }),
    ...limitQuery(feed, pass),
    ...pass.cursor,
  }
  let rest: Batches | undefined
  return {
    scope,
    request: { route: feed.list.path, path: fillPath(feed.list.path, { scope }), query },
    answer(value, reply) {
      failures.end()
      // The other scopes have waited for this one.
      if (context.backoffs.hasFailed(id, '')) context.store.segments.retryNow(id)
      const page = listPage(context, reads, { query, segment: pass }, { value, reply })
      rest = applySnapshotPage(context, reads, page, guard)
    },
    afterwards: () => rest,
    refused(status, message) {
      if (retryAnotherWay(context, reads, pass, status)) return
      const meaning = feed.expected?.[status]
      const refusal = { where: reads, scope, status, message }
      const of = { list: id, feed, scope }
      if (meaning === 'absent') handleAbsent(context, pass, refusal, of)
      else if (feed.scope && meaning === 'unavailable') handleUnavailable(context, pass, refusal, of)
      else handleRefusal(context, reads, status, message, { scope })
    },
    failed(error) {
      // A scope that has failed before says nothing about the list.
      if (pass.attempts === 0) failures.note(pass)
      failures.closeList()
      failPass(context, reads, { pass, limit: Number(query['limit'] ?? 0), error })
    },
  }
}

/** A list whose paging the spec does not state is first requested without `limit`, which the API may refuse. */
function limitQuery({ list }: SnapshotFeed, pass: Segment): Query {
  if (list.paging === 'any') return pass.query ?? {}
  return { limit: pass.query?.['limit'] ?? String(MAX_LIMITS[list.paging]) }
}

/** After a failed request, restarts the pass with smaller pages, or puts off this scope alone. */
function failPass(
  context: EngineContext,
  list: DeclaredFeed<SnapshotFeed>,
  { pass, limit, error }: { pass: Segment; limit: number; error: ParleyError },
): void {
  const attempts = pass.attempts + 1
  const mayPass = context.schedule.isTimed
  const next = stepAfterFailedPass({ attempts, limit, code: error.code, mayPass })
  if (next.step === 'wait') putOffList(context, list, pass, error)
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
