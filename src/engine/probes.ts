import { PAGING, readPage, readSingle } from '../api/paging.ts'
import { fillPath } from '../api/request.ts'
import { tableNamed } from '../catalog.ts'
import type { Evidence, Resource, SnapshotFeed, TimelineFeed } from '../resource.ts'
import type { ParsedItem } from '../row.ts'
import { quote } from '../store/sql.ts'
import type { Task } from '../store/tasks.ts'
import { DAY, type EngineContext, type FeedName, WEEK } from './context.ts'
import { refusal } from './expected.ts'
import type { Job, Reply, Source } from './job.ts'

/**
 * Evidence for rows that a list no longer shows, and look-ups of keys that are known by name only. What is found is
 * data and is stored; what is not found is confirmed to be absent, or left to be asked for later.
 */

type Asked = Extract<Evidence, { by: 'single' | 'ids' }>

/** What sets probes and look-ups apart. */
interface Purpose {
  where: FeedName
  lane: 'audit' | 'items'
  everyRound: boolean
  /** False until the tasks of this run are written. */
  ready(): boolean
  /** Which of the records found are stored. */
  wanted(item: ParsedItem): boolean
  found(task: Task): void
  missing(task: Task): void
}

export function createProbes(
  context: EngineContext,
  resource: Resource,
  name: string,
  feed: TimelineFeed | SnapshotFeed,
): Source | undefined {
  const { evidence } = feed
  if (evidence.by !== 'single' && evidence.by !== 'ids') return undefined
  const where = { resource: resource.name, feed: `${resource.name}.${name}.probe` }
  return createAsking(context, feed, evidence, {
    where,
    lane: 'audit',
    everyRound: false,
    ready: () => true,
    wanted: () => true,
    // No list shows it, yet it exists: asked for again when a week has passed.
    found: task => later(context, where, task, WEEK),
    missing(task) {
      context.store.absences.confirm(feed.table, task.scope, task.key, context.now())
      context.store.tasks.remove(task)
    },
  })
}

/** Ids that rows of another table name and the list did not bring, asked for once each round. */
export function createLookup(
  context: EngineContext,
  resource: Resource,
  name: string,
  feed: TimelineFeed,
  isListed: () => boolean,
): Source | undefined {
  const { evidence, lookup } = feed
  if (evidence.by !== 'ids' || !lookup) return undefined
  const where = { resource: resource.name, feed: `${resource.name}.${name}.lookup` }
  const timeAt = Object.keys(tableNamed(feed.table).columns).indexOf(feed.time)
  const { since } = context.options
  let planned = false
  return createAsking(context, feed, evidence, {
    where,
    lane: 'items',
    everyRound: true,
    ready() {
      if (!planned && isListed()) {
        planLookup(context, where.feed, feed.table, lookup)
        planned = true
      }
      return planned
    },
    // What is older than the owner's bound is loaded, and merged, when the bound is lifted.
    wanted: ({ cells }) => since === null || String(cells[timeAt] ?? since) >= since,
    found: task => later(context, where, task, DAY),
    missing: task => later(context, where, task, DAY),
  })
}

function planLookup(
  { store, now }: EngineContext,
  id: string,
  table: string,
  lookup: NonNullable<TimelineFeed['lookup']>,
): void {
  const known = (key: string) => `EXISTS (SELECT 1 FROM ${quote(table)} t WHERE t.id = ${key})`
  store.prepare(`DELETE FROM sync_tasks WHERE feed = ? AND ${known('sync_tasks.key')}`).run(id)
  const column = `l.${quote(lookup.column)}`
  store
    .prepare(
      `INSERT OR IGNORE INTO sync_tasks (feed, scope, key, due_at)
       SELECT DISTINCT ?, '', ${column}, ? FROM ${quote(lookup.table)} l
       WHERE ${lookup.where} AND l._deleted_at IS NULL AND ${column} IS NOT NULL AND NOT ${known(column)}`,
    )
    .run(id, now())
}

function later(context: EngineContext, { resource }: FeedName, task: Task, ms: number): void {
  context.store.tasks.done(task, { round: context.round(resource), dueAt: context.after(ms) })
}

function createAsking(
  context: EngineContext,
  feed: TimelineFeed | SnapshotFeed,
  evidence: Asked,
  purpose: Purpose,
): Source {
  const { where } = purpose
  const underWay = new Set<string>()
  let ended = false
  const nameOf = (task: Task) => `${task.scope}\u0000${task.key}`

  /** Tasks for one request: as many ids of one scope as it may name, or a single one. */
  const take = (): Task[] => {
    const due = context.store.tasks
      .due({
        feed: where.feed,
        round: context.round(where.resource),
        everyRound: purpose.everyRound,
        now: context.now(),
        since: context.options.since,
        limit: MOST_IDS * 2,
      })
      .filter(task => !underWay.has(nameOf(task)))
    const [first] = due
    if (!first) return []
    if (evidence.by === 'single') return [first]
    return due.filter(task => task.scope === first.scope).slice(0, MOST_IDS)
  }

  const askJob = (tasks: readonly Task[], first: Task): Job => ({
    ...where,
    request: { resource: where.resource, ...ASK[evidence.by].request(evidence, tasks, first) },
    answer(value, reply) {
      const records = ASK[evidence.by].records(evidence, value, first)
      store(context, feed, purpose, { records, scope: first.scope, reply })
      const present = new Set(records.flatMap(record => idOf(record) ?? []))
      for (const task of tasks) {
        // The API writes ids in lower case, whatever the case they were asked in.
        if (present.has(task.key.toLowerCase()) || !isAskable(evidence, task)) purpose.found(task)
        else purpose.missing(task)
      }
    },
    refused(status, message) {
      if (evidence.by !== 'single' || status !== 404) throw refusal(status, message)
      purpose.missing(first)
    },
    failed(error) {
      ended = true
      context.fail(where, error)
    },
    over() {
      for (const task of tasks) underWay.delete(nameOf(task))
    },
  })

  return {
    ...where,
    lane: purpose.lane,
    next() {
      if (ended || !purpose.ready()) return undefined
      const tasks = take()
      const [first] = tasks
      if (!first) return undefined
      for (const task of tasks) underWay.add(nameOf(task))
      return askJob(tasks, first)
    },
    finished: () => ended || (purpose.ready() && underWay.size === 0 && take().length === 0),
  }
}

interface Found {
  records: readonly unknown[]
  scope: string
  reply: Reply
}

function store(
  context: EngineContext,
  feed: TimelineFeed | SnapshotFeed,
  purpose: Purpose,
  found: Found,
): void {
  const { records, scope, reply } = found
  const report = context.report(purpose.where, scope)
  const parse = context.parser(feed.table)
  const items = records.flatMap(record => parse(record, report, scope) ?? []).filter(purpose.wanted)
  const causes = feed.mode === 'timeline' ? feed.causes : undefined
  context.write(purpose.where, feed.table, items, { ticket: reply.ticket, now: context.now() }, causes)
}

/** Most ids that one request may name (spec: Limits). */
const MOST_IDS = 100

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** Anything else than a UUID would have the whole request refused. */
function isAskable(evidence: Asked, { key }: Task): boolean {
  return evidence.by === 'single' || UUID.test(key)
}

function idOf(record: unknown): string | undefined {
  if (typeof record !== 'object' || record === null || !('id' in record)) return undefined
  return typeof record.id === 'string' ? record.id.toLowerCase() : undefined
}

interface AskKind<E> {
  request(
    evidence: E,
    tasks: readonly Task[],
    first: Task,
  ): { route: string; path: string; query?: Readonly<Record<string, string>> }
  records(evidence: E, value: unknown, first: Task): readonly unknown[]
}

const ASK_SINGLY: AskKind<Asked> = {
  request: (evidence, _tasks, { key }) => {
    const path = evidence.by === 'single' ? evidence.read.path : evidence.path
    return { route: path, path: fillPath(path, { key }) }
  },
  records: (evidence, value) =>
    evidence.by === 'single' ? [readSingle(value, evidence.read.placement, evidence.read.identity)] : [],
}

const ASK_BY_IDS: AskKind<Asked> = {
  request: (evidence, tasks, { scope }) => {
    const path = evidence.by === 'ids' ? evidence.path : evidence.read.path
    const ids = tasks.filter(task => isAskable(evidence, task)).map(({ key }) => key)
    const query = { ids: ids.join(','), limit: String(PAGING['v2-cursor'].maxLimit) }
    return { route: path, path: fillPath(path, { scope }), query }
  },
  records: (_evidence, value) => readPage('v2-cursor', value, {}).items,
}

const ASK: Readonly<Record<Asked['by'], AskKind<Asked>>> = { single: ASK_SINGLY, ids: ASK_BY_IDS }
