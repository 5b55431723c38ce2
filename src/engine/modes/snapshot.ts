import { PAGING, type Page, readPage } from '../../api/paging.ts'
import { fillPath } from '../../api/request.ts'
import { tableNamed } from '../../catalog/catalog.ts'
import type { Resource, ResourceName, SnapshotFeed } from '../../catalog/resource.ts'
import type { ParleyError } from '../../errors.ts'
import { canonicalInstant } from '../../instant.ts'
import { quote } from '../../store/database/sql.ts'
import { NO_PASS, type Segment } from '../../store/sync/segments.ts'
import type { EngineContext } from '../context.ts'
import { shown } from '../deletions/denial.ts'
import { noteListed } from '../deletions/unlisted.ts'
import { writeRows } from '../follow-ups/write.ts'
import { putOffList } from '../schedule/put-off.ts'
import type { ListOf } from '../schedule/schedule.ts'
import { createTurns } from '../schedule/turns.ts'
import { type Batches, createPlan } from '../scheduler/batches.ts'
import type { Job, Reply, Source } from '../scheduler/job.ts'
import { expectedOrFault } from './expected.ts'
import { nextForPass } from './narrowing.ts'
import {
  createLoopGuards,
  type LoopGuards,
  NOT_FAILED,
  type Query,
  restartedPass,
  setbackError,
  withPassBegun,
} from './pass.ts'
import { endPass, forgetSeen } from './pass-end.ts'
import { leaveScope, loseScope, standingOf } from './refused-scope.ts'

/**
 * The whole set in every pass, one pass for each scope. Keys seen are noted on the way; what was not seen by the
 * end is missing, and the declared evidence decides whether it is gone.
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
  /** When the passes of this process asked for their first pages, by scope and `elapsed`. */
  const begunAt = new Map<string, number>()
  let scopes: Scopes | undefined

  const ready = () => resource.parents.every(parent => !feed.scope || context.isFinished(parent))
  /** Undefined while another program writes the database. */
  const passes = (): Segment[] | undefined => {
    // What was left alone when they were gathered may have its turn by now, also where nothing else is due.
    if (scopes?.left.some(scope => !backoffs.isWaiting(id, scope))) scopes = undefined
    scopes ??= store.attempt(() => ensurePasses(context, id, feed))?.value
    if (scopes === undefined) return undefined
    const { asked } = scopes
    return store.segments
      .of(id)
      .filter(({ scope }) => asked.includes(scope) && !backoffs.isWaiting(id, scope))
      .filter(pass => schedule.isListDue(list, pass))
  }

  const leftovers = createPlan(context, {
    mayBegin: () => true,
    *batches() {
      for (const { scope, pages } of store.segments.of(id))
        if (pages === 0 && !underWay.has(scope)) yield* forgetSeen(context, id, scope)
    },
  })

  /** What a pass has seen that was given up is forgotten before the next one begins. */
  const mayBegin = ({ pages, scope }: Segment): boolean => {
    const hasLeftover = () => pages === 0 && store.seen.any(id, scope)
    if (!hasLeftover()) return true
    leftovers.forget()
    leftovers.isMade()
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
    const work: PassWork = { resource, id, feed, pass, query, limits, guards, begunAt }
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
        if (status === 400 && retryOtherwise(context, work)) return
        if (feed.expected?.[status] === 'absent') {
          store.segments.remove(pass)
          backoffs.failed(id, pass.scope)
        } else if (feed.scope && feed.expected?.[status] === 'unavailable') {
          scopeUnavailable(context, work, status, message)
        } else expectedOrFault(context, where, feed.expected, status, message)
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
      if (backoffs.isWaiting(id) || !ready()) return undefined
      const pass = takeDue()
      if (!pass) return undefined
      underWay.add(pass.scope)
      guards.asking(pass)
      if (pass.cursor === null) begunAt.set(pass.scope, context.clock.elapsed())
      return pageJob(pass)
    },
    finished: () => backoffs.isWaiting(id) || (ready() && underWay.size === 0 && passes()?.length === 0),
    rest() {
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
  /** What is known of `limit` on lists whose parameters the spec does not show, by scope. */
  limits: Map<string, 'accepted' | 'refused'>
  guards: LoopGuards
  begunAt: ReadonlyMap<string, number>
  /** What is left to do at the end of the pass, once its last page is stored. */
  rest?: Batches | undefined
}

interface Scopes {
  asked: readonly string[]
  /** Held when the others were gathered. */
  left: readonly string[]
}

/** A pass for each scope; passes of scopes that are gone go too. */
function ensurePasses({ store, backoffs }: EngineContext, id: string, { scope }: SnapshotFeed): Scopes {
  const wanted = scope
    ? [...new Set([...(scope.always ?? []), ...liveKeys(store.prepare, scope.table, scope.column)])]
    : ['']
  const passes = store.segments.of(id)
  for (const pass of passes) if (!wanted.includes(pass.scope)) store.segments.remove(pass)
  const left = wanted.filter(one => backoffs.isWaiting(id, one))
  const asked = wanted.filter(one => !left.includes(one))
  for (const one of asked) {
    if (passes.some(pass => pass.scope === one)) continue
    store.segments.add({ feed: id, scope: one, from: null, to: null })
  }
  return { asked, left }
}

function liveKeys(prepare: EngineContext['store']['prepare'], table: string, column: string): string[] {
  const sql = `SELECT ${quote(column)} FROM ${quote(table)} WHERE _deleted_at IS NULL ORDER BY 1`
  return prepare(sql).pluck().all() as string[]
}

function scopeQuery({ list }: SnapshotFeed, scope: string): Query {
  return list.scopeParameter === undefined ? {} : { [list.scopeParameter]: scope }
}

/** A list of unknown shape is first asked for without any parameter. */
function limitQuery({ list }: SnapshotFeed, pass: Segment): Query {
  if (list.paging === 'any') return pass.query ?? {}
  return { limit: pass.query?.['limit'] ?? String(PAGING[list.paging].maxLimit) }
}

/** The scope alone is put off: the others go on. */
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

function scopeUnavailable(context: EngineContext, work: PassWork, status: number, message: string): void {
  const { resource, pass, feed, id } = work
  const { scope } = pass
  const of = { list: id, feed, scope }
  const refusal = { where: { resource: resource.name, feed: id }, scope, status, message }
  const standing = standingOf(context, of)
  if (standing === 'has-rows') {
    loseScope(context, refusal, of)
    return
  }
  const unavailableSince = pass.unavailableSince ?? context.now()
  context.store.segments.save({ ...pass, ...NO_PASS, listedRound: 0, unavailableSince })
  leaveScope(context, refusal, standing)
}

/** A 400 may mean the `limit` that was tried, or a cursor that has expired. Returns whether there is another way. */
function retryOtherwise({ store }: EngineContext, { feed, pass, limits }: PassWork): boolean {
  if (feed.list.paging === 'any' && pass.query?.['limit'] !== undefined && pass.cursor === null) {
    limits.set(pass.scope, 'refused')
    store.segments.save({ ...pass, ...NO_PASS })
    return true
  }
  if (pass.cursor === null) return false
  if (pass.restarts > 0) throw setbackError('refused')
  store.segments.save({ ...restartedPass(pass), query: pass.query })
  return true
}

/** How often a page-numbered list is read again because its size changed on the way. */
const MOST_RESIZES = 3

function applyPage(context: EngineContext, work: PassWork, value: unknown, reply: Reply): void {
  const { store } = context
  const { resource, id, feed, query, limits } = work
  const where = { resource: resource.name, feed: id }
  const page = readPage(feed.list.paging, value, query)
  const pass = { ...withPassBegun(work.pass, context, where, reply), ...NOT_FAILED }
  for (const key of storeItems(context, work, page, reply)) store.seen.note(id, pass.scope, key)

  const limit = biggerLimit(page, pass, limits)
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
    store.segments.save({ ...restartedPass(pass), query: pass.query })
  } else if (page.next === null) {
    const batches = endPass(context, { resource, id, feed, pass: reached, resized })
    work.rest = batches.next().done ? undefined : batches
  } else if (work.guards.repeats(pass, page.next)) {
    if (pass.restarts > 0) throw setbackError('repeated')
    store.segments.save({ ...restartedPass(pass), query: pass.query })
  } else {
    store.segments.save(reached)
  }
}

/** What a pass took that began in an earlier process is not known: then what the one before took stands. */
function passMs({ clock }: EngineContext, { pass, begunAt }: PassWork): number | null {
  const began = begunAt.get(pass.scope)
  return began === undefined ? pass.passMs : Math.round(clock.elapsed() - began)
}

/**
 * A list of unknown shape that turns out to have more pages is begun again with the largest pages that its style
 * allows, since a cursor is used with no other query than the one that gave it.
 */
function biggerLimit(page: Page, pass: Segment, limits: PassWork['limits']): string | undefined {
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

/** Stores what a page holds; returns the keys on it. */
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

/** What a list of keys names is read singly, and at once where a denial stands against it. */
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
  const doubted = new Set([...shown(context, table, '', keys), ...noteListed(context, resource, keys)])
  for (const { key, sortAt } of listed) {
    if (doubted.has(key)) tasks.demand({ feed, key, sortAt, dueAt })
    else tasks.add({ feed, key, sortAt, dueAt })
  }
}

function insertLinks(
  context: EngineContext,
  { resource, feed, pass }: Pick<PassWork, 'resource' | 'feed' | 'pass'>,
  listed: readonly ListedKey[],
): void {
  const table = tableNamed(feed.table)
  const insert = context.store.prepare(
    `INSERT OR IGNORE INTO ${quote(table.name)} (${table.key.map(quote).join(', ')}) VALUES (?, ?)`,
  )
  shown(
    context,
    table.name,
    pass.scope,
    listed.map(({ key }) => key),
  )
  for (const { key } of listed)
    context.counts(resource.name).rowsChanged += insert.run(pass.scope, key).changes
}

/** The key of a list's item, which may be the bare key. Pure. */
export function keyOf(item: unknown, fields: readonly string[]): string | undefined {
  if (typeof item === 'string') return isKey(item) ? item : undefined
  if (typeof item !== 'object' || item === null) return undefined
  const entries = new Map(Object.entries(item))
  const keys = fields.map(field => entries.get(field))
  return keys.find(isKey)
}

/** Half a surrogate pair has no UTF-8: neither a request nor the database would give back the same key. */
function isKey(key: unknown): key is string {
  return typeof key === 'string' && key !== '' && key.isWellFormed()
}

function timeOf(item: unknown, field: string | undefined): string | null {
  if (field === undefined || typeof item !== 'object' || item === null) return null
  const time = new Map(Object.entries(item)).get(field)
  return typeof time === 'string' ? (canonicalInstant(time) ?? null) : null
}
