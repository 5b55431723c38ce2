import { PAGING } from '../../../api/paging.ts'
import { fillPath } from '../../../api/request.ts'
import type { Resource, SnapshotFeed } from '../../../catalog/resource.ts'
import type { ParleyError } from '../../../errors.ts'
import { NO_PASS, type Segment } from '../../../store/sync/segments.ts'
import type { EngineContext } from '../../context.ts'
import { dueSegments } from '../../due/due.ts'
import { createTurns } from '../../due/overload-order.ts'
import { putOffList } from '../../due/put-off.ts'
import type { ListOf } from '../../due/schedule.ts'
import { createBatchPlan } from '../../scheduler/batch-plan.ts'
import type { Job, Source } from '../../scheduler/job.ts'
import { applyPage } from '../apply-page.ts'
import { nextForPass } from '../narrowing.ts'
import { createLoopGuards, deadCursorError, NOT_FAILED, type Query, segmentToRestart } from '../pass.ts'
import { handleRefusal } from '../refusals.ts'
import { failScope, markScopeUnavailable, scopeHistory } from '../refused-scope.ts'
import { type SnapshotWork, snapshotSteps } from './page.ts'
import { forgetSeen } from './pass-end.ts'
import { type Scopes, updateScopes } from './scopes.ts'

/**
 * Reads the whole list in every pass, with one pass for each scope. The pass notes the keys that it sees. Rows that it
 * has not seen by its end are missing, and the declared evidence decides whether they are gone.
 */
export function createSnapshot(
  context: EngineContext,
  resource: Resource,
  name: string,
  feed: SnapshotFeed,
): Source {
  const { store, backoffs, schedule } = context
  const id = `${resource.name}.${name}`
  const where = { resource: resource.name, feed: id }
  const list: ListOf = { resource: resource.name, id, feed }
  const underWay = new Set<string>()
  const limits = new Map<string, 'accepted' | 'refused'>()
  const guards = createLoopGuards()
  const turns = createTurns<Segment>(pass => schedule.overdue(list, pass))
  /** When each pass of this process requested its first page, by scope and `elapsed`. */
  const startedAt = new Map<string, number>()
  let scopes: Scopes | undefined

  const isReady = () => resource.parents.every(parent => !feed.scope || context.isFinished(parent))
  /** The passes that are due; undefined while another program writes the database. */
  const passes = (): Segment[] | undefined => {
    // A scope that was waiting when the scopes were collected may be due by now, even if no other scope is.
    if (scopes?.waiting.some(scope => !backoffs.isWaiting(id, scope))) scopes = undefined
    scopes ??= store.attempt(() => updateScopes(context, id, feed))?.value
    if (scopes === undefined) return undefined
    const { asked } = scopes
    return dueSegments(context, list).filter(({ scope }) => asked.includes(scope))
  }

  const leftovers = createBatchPlan(context, {
    canBegin: () => true,
    *batches() {
      for (const { scope, pages } of store.segments.of(id))
        if (pages === 0 && !underWay.has(scope)) yield* forgetSeen(context, id, scope)
    },
  })

  /** Before a pass begins, the keys that an abandoned pass has seen are removed. */
  const mayBegin = ({ pages, scope }: Segment): boolean => {
    const hasLeftover = () => pages === 0 && store.seen.hasAny(id, scope)
    if (!hasLeftover()) return true
    leftovers.invalidate()
    leftovers.isReady()
    return !hasLeftover()
  }

  const takeDue = (): Segment | undefined => {
    const due = new Set(passes()?.filter(({ scope }) => !underWay.has(scope)))
    for (let pass = turns.take([...due]); pass; pass = turns.take([...due])) {
      if (mayBegin(pass)) return pass
      due.delete(pass)
    }
    return undefined
  }

  const pageJob = (pass: Segment): Job => {
    const query = {
      ...feed.list.query,
      ...scopeQuery(feed, pass.scope),
      ...limitQuery(feed, pass),
      ...pass.cursor,
    }
    const work: SnapshotWork = { resource, id, feed, limits, guards, startedAt }
    const asked = { work, pass, query }
    return {
      ...where,
      scope: pass.scope,
      expected: feed.expected,
      request: {
        resource: resource.name,
        route: feed.list.path,
        path: fillPath(feed.list.path, { scope: pass.scope }),
        query,
      },
      answer(value, reply) {
        const page = { where, paging: feed.list.paging, query, segment: pass }
        applyPage(context, page, { value, reply }, snapshotSteps(context, work))
      },
      afterwards: () => work.rest,
      refused(status, message) {
        if (status === 400 && retryAnotherWay(context, asked)) return
        if (feed.expected?.[status] === 'absent') {
          store.segments.remove(pass)
          backoffs.failed(id, pass.scope)
        } else if (feed.scope && feed.expected?.[status] === 'unavailable') {
          handleUnavailable(context, asked, status, message)
        } else handleRefusal(context, where, feed.expected, status, message)
      },
      failed(error) {
        failPass(context, asked, error)
      },
      over: () => underWay.delete(pass.scope),
    }
  }

  return {
    ...where,
    get lane() {
      return schedule.laneOf(list, undefined)
    },
    next() {
      if (backoffs.isWaiting(id) || !isReady()) return undefined
      const pass = takeDue()
      if (!pass) return undefined
      underWay.add(pass.scope)
      guards.asking(pass)
      if (pass.cursor === null) startedAt.set(pass.scope, context.clock.elapsed())
      return pageJob(pass)
    },
    finished: () => backoffs.isWaiting(id) || (isReady() && underWay.size === 0 && passes()?.length === 0),
    replan() {
      scopes = undefined
    },
  }
}

/** A page that was asked for. */
interface AskedPage {
  work: SnapshotWork
  pass: Segment
  query: Query
}

function scopeQuery({ list }: SnapshotFeed, scope: string): Query {
  return list.scopeParameter === undefined ? {} : { [list.scopeParameter]: scope }
}

/** A list of unknown shape is first requested without any parameter. */
function limitQuery({ list }: SnapshotFeed, pass: Segment): Query {
  if (list.paging === 'any') return pass.query ?? {}
  return { limit: pass.query?.['limit'] ?? String(PAGING[list.paging].maxLimit) }
}

/** Puts off only this scope: other scopes go on. */
function failPass(
  context: EngineContext,
  { work: { resource, id }, pass, query }: AskedPage,
  error: ParleyError,
): void {
  const attempts = pass.attempts + 1
  const next = nextForPass({
    attempts,
    limit: Number(query['limit'] ?? 0),
    code: error.code,
    mayPass: context.schedule.isTimed,
  })
  if (next.step === 'wait') putOffList(context, { resource: resource.name, feed: id }, pass, error)
  else {
    const smaller = { ...pass.query, limit: String(next.limit) }
    context.store.segments.save({ ...pass, ...NO_PASS, query: smaller, attempts, retryAt: null })
  }
}

function handleUnavailable(
  context: EngineContext,
  { work: { resource, feed, id }, pass }: AskedPage,
  status: number,
  message: string,
): void {
  const { scope } = pass
  const of = { list: id, feed, scope }
  const refusal = { where: { resource: resource.name, feed: id }, scope, status, message }
  const history = scopeHistory(context, of)
  if (history === 'has-rows') {
    failScope(context, refusal, of)
    return
  }
  const unavailableSince = pass.unavailableSince ?? context.now()
  context.store.segments.save({ ...pass, ...NO_PASS, ...NOT_FAILED, listedRound: 0, unavailableSince })
  markScopeUnavailable(context, refusal, history)
}

/** A 400 may be due to the `limit` that was tried, or to an expired cursor. Returns whether the pass tries without it. */
function retryAnotherWay({ store }: EngineContext, { work: { feed, limits }, pass }: AskedPage): boolean {
  if (feed.list.paging === 'any' && pass.query?.['limit'] !== undefined && pass.cursor === null) {
    limits.set(pass.scope, 'refused')
    store.segments.save({ ...pass, ...NO_PASS })
    return true
  }
  if (pass.cursor === null) return false
  if (pass.restarts > 0) throw deadCursorError('refused')
  store.segments.save({ ...segmentToRestart(pass), query: pass.query })
  return true
}
