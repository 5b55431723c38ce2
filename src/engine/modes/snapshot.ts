import { PAGING, type Page, readPage } from '../../api/paging.ts'
import { fillPath } from '../../api/request.ts'
import { tableNamed } from '../../catalog/catalog.ts'
import type { Resource, ResourceName, SnapshotFeed } from '../../catalog/resource.ts'
import type { ParleyError } from '../../errors.ts'
import { canonicalInstant } from '../../instant.ts'
import { NO_PASS, type Segment } from '../../store/sync/segments.ts'
import type { EngineContext } from '../context.ts'
import { endSuspicions } from '../deletions/denial.ts'
import { noteListed } from '../deletions/unlisted.ts'
import { writeRows } from '../follow-ups/write.ts'
import { putOffList } from '../schedule/put-off.ts'
import type { ListOf } from '../schedule/schedule.ts'
import { createTurns } from '../schedule/turns.ts'
import { type Batches, createBatchPlan } from '../scheduler/batches.ts'
import type { Job, Reply, Source } from '../scheduler/job.ts'
import { handleRefusal } from './expected.ts'
import { nextForPass } from './narrowing.ts'
import {
  createLoopGuards,
  deadCursorError,
  type LoopGuards,
  NOT_FAILED,
  type Query,
  segmentInPass,
  segmentToRestart,
} from './pass.ts'
import { endPass, forgetSeen } from './pass-end.ts'
import { failScope, markScopeUnavailable, scopeHistory } from './refused-scope.ts'

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
    return store.segments
      .of(id)
      .filter(({ scope }) => asked.includes(scope) && !backoffs.isWaiting(id, scope))
      .filter(pass => schedule.isListDue(list, pass))
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
    const work: PassWork = { resource, id, feed, pass, query, limits, guards, startedAt }
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
      answer: (value, reply) => applyPage(context, work, value, reply),
      afterwards: () => work.rest,
      refused(status, message) {
        if (status === 400 && retryAnotherWay(context, work)) return
        if (feed.expected?.[status] === 'absent') {
          store.segments.remove(pass)
          backoffs.failed(id, pass.scope)
        } else if (feed.scope && feed.expected?.[status] === 'unavailable') {
          handleUnavailable(context, work, status, message)
        } else handleRefusal(context, where, feed.expected, status, message)
      },
      failed(error) {
        failPass(context, work, error)
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

interface PassWork {
  resource: Resource
  id: string
  feed: SnapshotFeed
  pass: Segment
  query: Query
  /** By scope: whether the API accepts `limit`, for lists whose parameters the spec does not show. */
  limits: Map<string, 'accepted' | 'refused'>
  guards: LoopGuards
  startedAt: ReadonlyMap<string, number>
  /** The end of the pass, as far as it is not done with its last page. */
  rest?: Batches | undefined
}

interface Scopes {
  asked: readonly string[]
  /** Those that were backing off when the scopes were collected. */
  waiting: readonly string[]
}

/** Adds a segment for each new scope and removes those of scopes that no longer exist. */
function updateScopes({ store, backoffs }: EngineContext, id: string, { scope }: SnapshotFeed): Scopes {
  const wanted = scope
    ? [...new Set([...(scope.always ?? []), ...store.stored.liveValues(scope.table, scope.column)])]
    : ['']
  const passes = store.segments.of(id)
  for (const pass of passes) if (!wanted.includes(pass.scope)) store.segments.remove(pass)
  const waiting = wanted.filter(one => backoffs.isWaiting(id, one))
  const asked = wanted.filter(one => !waiting.includes(one))
  for (const one of asked) {
    if (passes.some(pass => pass.scope === one)) continue
    store.segments.add({ feed: id, scope: one, from: null, to: null })
  }
  return { asked, waiting }
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
function failPass(context: EngineContext, { resource, id, pass, query }: PassWork, error: ParleyError): void {
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

function handleUnavailable(context: EngineContext, work: PassWork, status: number, message: string): void {
  const { resource, pass, feed, id } = work
  const { scope } = pass
  const of = { list: id, feed, scope }
  const refusal = { where: { resource: resource.name, feed: id }, scope, status, message }
  const history = scopeHistory(context, of)
  if (history === 'has-rows') {
    failScope(context, refusal, of)
    return
  }
  const unavailableSince = pass.unavailableSince ?? context.now()
  context.store.segments.save({ ...pass, ...NO_PASS, listedRound: 0, unavailableSince })
  markScopeUnavailable(context, refusal, history)
}

/** A 400 may be due to the `limit` that was tried, or to an expired cursor. Returns whether the pass tries without it. */
function retryAnotherWay({ store }: EngineContext, { feed, pass, limits }: PassWork): boolean {
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

/** How often a page-numbered list is restarted because its size changed during the pass. */
const MOST_RESIZES = 3

function applyPage(context: EngineContext, work: PassWork, value: unknown, reply: Reply): void {
  const { store } = context
  const { resource, id, feed, query, limits } = work
  const where = { resource: resource.name, feed: id }
  const page = readPage(feed.list.paging, value, query)
  const pass = { ...segmentInPass(work.pass, context, where, reply), ...NOT_FAILED }
  for (const key of storeItems(context, work, page, reply)) store.seen.note(id, pass.scope, key)

  const limit = largerLimit(page, pass, limits)
  const resized = pass.totalSize !== null && page.totalSize !== undefined && page.totalSize !== pass.totalSize
  const reached: Segment = {
    ...pass,
    cursor: page.next,
    pages: pass.pages + 1,
    rows: (pass.pages === 0 ? 0 : pass.rows) + page.items.length,
    totalSize: page.totalSize ?? null,
    passMs: page.next === null ? passMs(context, work) : pass.passMs,
  }
  if (limit !== undefined) {
    limits.set(pass.scope, 'accepted')
    store.segments.save({ ...pass, ...NO_PASS, query: { limit } })
  } else if (resized && pass.restarts < MOST_RESIZES) {
    store.segments.save({ ...segmentToRestart(pass), query: pass.query })
  } else if (page.next === null) {
    const batches = endPass(context, { resource, id, feed, pass: reached, resized })
    work.rest = batches.next().done ? undefined : batches
  } else if (work.guards.repeats(pass, page.next)) {
    if (pass.restarts > 0) throw deadCursorError('repeated')
    store.segments.save({ ...segmentToRestart(pass), query: pass.query })
  } else {
    store.segments.save(reached)
  }
}

/** Duration of the pass. For one that an earlier process began, the duration of the last known pass stays. */
function passMs({ clock }: EngineContext, { pass, startedAt }: PassWork): number | null {
  const began = startedAt.get(pass.scope)
  return began === undefined ? pass.passMs : Math.round(clock.elapsed() - began)
}

/**
 * The limit with which a list of unknown shape restarts when it turns out to have more pages: the largest that its
 * paging style allows. A restart is needed because a cursor is valid only with the query that returned it.
 */
function largerLimit(page: Page, pass: Segment, limits: PassWork['limits']): string | undefined {
  const { next, recognised } = page
  if (
    !next ||
    !recognised ||
    recognised === 'bare' ||
    pass.pages > 0 ||
    pass.query?.['limit'] !== undefined
  ) {
    return undefined
  }
  if (limits.get(pass.scope) === 'refused') return undefined
  return String(PAGING[recognised].maxLimit)
}

/** Stores the items of a page; returns their keys. */
export function storeItems(
  context: EngineContext,
  work: Pick<PassWork, 'resource' | 'id' | 'feed' | 'pass'>,
  page: Page,
  reply: Reply,
): string[] {
  const { resource, id, feed, pass } = work
  const where = { resource: resource.name, feed: id }
  const report = context.report(where, pass.scope)
  const table = tableNamed(feed.table)
  if (feed.lists === 'rows' && table.kind === 'entity') {
    const parse = context.parser(feed.table)
    const items = page.items.flatMap(item => parse(item, report, pass.scope) ?? [])
    writeRows(context, where, feed.table, items, { ticket: reply.ticket, now: context.now() }, feed.followUps)
    const keyAt = Object.keys(table.columns).indexOf(table.key.at(-1) ?? '')
    const listed = items.map(({ cells }) => String(cells[keyAt]))
    context.store.tasks.removeAll(`${id}.probe`, pass.scope, listed)
    return listed
  }
  const keys = page.items.flatMap(item => {
    const key = keyOf(item, feed.keyFields)
    if (key === undefined)
      report.reject(feed.table, item, `no identity: ${feed.keyFields.join(' or ')} is missing or not text`)
    return key === undefined ? [] : [{ key, sortAt: timeOf(item, feed.timeField) }]
  })
  context.counts(resource.name).rowsRead += keys.length
  if (feed.lists === 'keys') followKeys(context, resource.name, feed, keys)
  else insertLinks(context, work, keys)
  return keys.map(({ key }) => key)
}

interface ListedKey {
  key: string
  sortAt: string | null
}

/** Has the rows that a list of keys names read one by one; those that were denied before, at once. */
function followKeys(
  context: EngineContext,
  resource: ResourceName,
  { table }: SnapshotFeed,
  listed: readonly ListedKey[],
): void {
  const { tasks } = context.store
  const feed = `${resource}.detail`
  const dueAt = context.now()
  const keys = listed.map(({ key }) => key)
  const deniedKeys = new Set([
    ...endSuspicions(context, table, '', keys),
    ...noteListed(context, resource, keys),
  ])
  for (const { key, sortAt } of listed) {
    if (deniedKeys.has(key)) tasks.demand({ feed, key, sortAt, dueAt })
    else tasks.add({ feed, key, sortAt, dueAt })
  }
}

function insertLinks(
  context: EngineContext,
  { resource, feed, pass }: Pick<PassWork, 'resource' | 'feed' | 'pass'>,
  listed: readonly ListedKey[],
): void {
  const keys = listed.map(({ key }) => key)
  endSuspicions(context, feed.table, pass.scope, keys)
  context.counts(resource.name).rowsChanged += context.store.links.addMembers(feed.table, pass.scope, keys)
}

/** The key of a list's item; the item may be a bare key. Pure. */
export function keyOf(item: unknown, fields: readonly string[]): string | undefined {
  if (typeof item === 'string') return isKey(item) ? item : undefined
  if (typeof item !== 'object' || item === null) return undefined
  const entries = new Map(Object.entries(item))
  const keys = fields.map(field => entries.get(field))
  return keys.find(isKey)
}

/** Half a surrogate pair has no UTF-8 form: neither a request nor the database would keep the key as it is. */
function isKey(key: unknown): key is string {
  return typeof key === 'string' && key !== '' && key.isWellFormed()
}

function timeOf(item: unknown, field: string | undefined): string | null {
  if (field === undefined || typeof item !== 'object' || item === null) return null
  const time = new Map(Object.entries(item)).get(field)
  return typeof time === 'string' ? (canonicalInstant(time) ?? null) : null
}
