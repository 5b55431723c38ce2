import { PAGING, readPage, readSingle } from '../api/paging.ts'
import { fillPath } from '../api/request.ts'
import { tableNamed } from '../catalog.ts'
import type { Evidence, Resource, SnapshotFeed, TimelineFeed } from '../resource.ts'
import type { ParsedItem } from '../row.ts'
import { quote } from '../store/sql.ts'
import type { Task } from '../store/tasks.ts'
import { DAY, type EngineContext, type FeedName, WEEK } from './context.ts'
import { refusal, wrongIdentity } from './expected.ts'
import type { Job, Reply, Source } from './job.ts'
import { setbackError } from './walk.ts'

/**
 * Evidence for rows that a list no longer shows, and look-ups of keys that are known by name only. What is found is
 * data and is stored; what is not found is confirmed to be absent, or left to be asked for later.
 */

type Asked = Extract<Evidence, { by: 'single' | 'ids' }>

/** What sets probes and look-ups apart. */
interface Purpose {
  where: FeedName
  /** The list feed, under whose name rejects are noted. */
  list: string
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
    list: `${resource.name}.${name}`,
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
    list: `${resource.name}.${name}`,
    lane: 'items',
    everyRound: true,
    ready() {
      if (!planned && isListed()) {
        planLookup(context, where.feed, { ...feed, lookup })
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
  { table, lookup, evidence }: TimelineFeed & { lookup: NonNullable<TimelineFeed['lookup']> },
): void {
  const known = (key: string) => `EXISTS (SELECT 1 FROM ${quote(table)} t WHERE t.id = ${key})`
  store.prepare(`DELETE FROM sync_tasks WHERE feed = ? AND ${known('sync_tasks.key')}`).run(id)
  const column = `l.${quote(lookup.column)}`
  const keys = store
    .prepare(
      `SELECT DISTINCT ${column} FROM ${quote(lookup.table)} l
       WHERE ${lookup.where} AND l._deleted_at IS NULL AND ${column} IS NOT NULL AND NOT ${known(column)}`,
    )
    .pluck()
    .all() as string[]
  for (const key of keys) if (isAskable(evidence, key)) store.tasks.add({ feed: id, key, dueAt: now() })
}

function later(context: EngineContext, { resource }: FeedName, task: Task, ms: number): void {
  context.store.tasks.done(task, { round: context.round(resource), dueAt: context.after(ms) })
}

/** What is asked for by one request, or by several when its answer comes in pages. */
interface Question {
  tasks: readonly Task[]
  first: Task
  cursor: Query | null
  present: ReadonlySet<string>
}

function createAsking(
  context: EngineContext,
  feed: TimelineFeed | SnapshotFeed,
  evidence: Asked,
  purpose: Purpose,
): Source {
  const { where } = purpose
  const kind = ASK[evidence.by]
  const underWay = new Set<string>()
  const continued: Question[] = []
  let ended = false
  const nameOf = (task: Task) => `${task.scope}\u0000${task.key}`

  /** Tasks for one request: as many ids of one scope as it may name, or a single one. */
  const take = (): Question | undefined => {
    const due = context.store.tasks
      .due({
        feed: where.feed,
        round: context.round(where.resource),
        everyRound: purpose.everyRound,
        now: context.now(),
        since: null,
        limit: MOST_IDS * 2,
      })
      .filter(task => !underWay.has(nameOf(task)))
    const [first] = due
    if (!first) return undefined
    const tasks = due.filter(task => task.scope === first.scope).slice(0, kind.most)
    return { tasks, first, cursor: null, present: new Set() }
  }

  const askJob = (question: Question): Job => {
    const { tasks, first, cursor } = question
    let more: Question | undefined
    return {
      ...where,
      expected: evidence.by === 'single' ? { 404: 'absent' } : undefined,
      request: { resource: where.resource, ...kind.request(evidence, question) },
      answer(value, reply) {
        const { records, next } = kind.read(evidence, value, question)
        store(context, feed, purpose, { records, scope: first.scope, reply })
        const present = new Set([...question.present, ...records.flatMap(record => idOf(record) ?? [])])
        if (next !== null && next['cursor'] === cursor?.['cursor']) throw setbackError('repeated')
        more = next === null ? undefined : { tasks, first, cursor: next, present }
        if (more) return
        for (const task of tasks) {
          // The API writes ids in lower case, whatever the case they were asked in.
          if (present.has(task.key.toLowerCase())) purpose.found(task)
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
        if (more && !ended) continued.push(more)
        else for (const task of tasks) underWay.delete(nameOf(task))
      },
    }
  }

  return {
    ...where,
    lane: purpose.lane,
    next() {
      if (ended || !purpose.ready()) return undefined
      const question = continued.shift() ?? take()
      if (!question) return undefined
      for (const task of question.tasks) underWay.add(nameOf(task))
      return askJob(question)
    },
    finished: () => ended || (purpose.ready() && underWay.size === 0 && take() === undefined),
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
  const report = context.report({ ...purpose.where, feed: purpose.list }, scope)
  const parse = context.parser(feed.table)
  const items = records.flatMap(record => parse(record, report, scope) ?? []).filter(purpose.wanted)
  const causes = feed.mode === 'timeline' ? feed.causes : undefined
  context.write(purpose.where, feed.table, items, { ticket: reply.ticket, now: context.now() }, causes)
}

/** Most ids that one request may name (spec: Limits). */
const MOST_IDS = 100

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** Whether a key can be asked for at all: one that is no UUID would have the whole request refused. */
export function isAskable(evidence: Evidence, key: string): boolean {
  return evidence.by !== 'ids' || UUID.test(key)
}

function idOf(record: unknown): string | undefined {
  if (typeof record !== 'object' || record === null || !('id' in record)) return undefined
  return typeof record.id === 'string' ? record.id.toLowerCase() : undefined
}

type Query = Readonly<Record<string, string>>

interface AskKind {
  /** Most tasks in one request. */
  most: number
  request(evidence: Asked, question: Question): { route: string; path: string; query?: Query }
  read(
    evidence: Asked,
    value: unknown,
    question: Question,
  ): { records: readonly unknown[]; next: Query | null }
}

const ASK: Readonly<Record<Asked['by'], AskKind>> = {
  single: {
    most: 1,
    request: (evidence, { first: { key } }) => {
      const path = pathOf(evidence)
      return { route: path, path: fillPath(path, { key }) }
    },
    read(evidence, value, { first: { key } }) {
      const record =
        evidence.by === 'single' && readSingle(value, evidence.read.placement, evidence.read.identity)
      if (idOf(record) !== key.toLowerCase()) throw wrongIdentity()
      return { records: [record], next: null }
    },
  },
  ids: {
    most: MOST_IDS,
    request(evidence, { tasks, first: { scope }, cursor }) {
      const path = pathOf(evidence)
      const ids = tasks.map(({ key }) => key).join(',')
      const query = { ids, limit: String(PAGING['v2-cursor'].maxLimit), ...cursor }
      return { route: path, path: fillPath(path, { scope }), query }
    },
    read(_evidence, value) {
      const { items, next } = readPage('v2-cursor', value, {})
      return { records: items, next }
    },
  },
}

function pathOf(evidence: Asked): string {
  return evidence.by === 'single' ? evidence.read.path : evidence.path
}
