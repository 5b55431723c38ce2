import { PAGING, readPage, readSingle } from '../../api/paging.ts'
import { fillPath, type Query } from '../../api/request.ts'
import { tableNamed } from '../../catalog/catalog.ts'
import type { Evidence, Expected, Resource, SnapshotFeed, TimelineFeed } from '../../catalog/resource.ts'
import type { ParsedItem } from '../../catalog/row.ts'
import { isoInstant } from '../../clock.ts'
import type { RowKey } from '../../store/deletions/suspicions.ts'
import type { StoredItem } from '../../store/rows/write.ts'
import type { Task } from '../../store/sync/tasks.ts'
import type { EngineContext } from '../context.ts'
import { DAY, MINUTE, WEEK } from '../due/intervals.ts'
import { putOff } from '../due/put-off.ts'
import type { FeedName } from '../feeds.ts'
import { changedFeed, writeRecordTasks } from '../follow-ups/changed-records.ts'
import { followRelations } from '../follow-ups/relations.ts'
import { writeRows } from '../follow-ups/write.ts'
import { ATTEMPTS_OF_A_PART, halves, MOST_FAILURES_IN_A_ROW } from '../modes/narrowing.ts'
import { deadCursorError } from '../modes/pass.ts'
import { refusalError, wrongIdentityError } from '../modes/refusals.ts'
import { refuseTasks } from '../modes/refused-scope.ts'
import { isUuid, UUID_GLOB } from '../parse/uuid.ts'
import { byRange, createBatchPlan } from '../scheduler/batches.ts'
import type { Job, Reply, Source } from '../scheduler/job.ts'
import { noteDenial } from './denial.ts'
import { probeLater } from './probe-later.ts'

/**
 * Three kinds of reads by key: probes of rows that a list no longer shows, look-ups of keys that only another row
 * names, and reads of records that are said to have changed. Records that are found are stored. A key that is not
 * found counts as a denial, or is asked for again later.
 */

type KeyEvidence = Extract<Evidence, { by: 'single' | 'ids' }>

/** How probes, look-ups and reads of changes differ. */
interface Purpose {
  where: FeedName
  /** The list feed, under whose name rejects are noted. */
  list: string
  lane: 'head' | 'audit' | 'items'
  everyRound: boolean
  /** False until the tasks of this run are written. */
  isReady(): boolean
  /** Whether a found record is stored. */
  isWanted(item: ParsedItem): boolean
  /** @param entry undefined when the record could not be parsed, or a later answer was already stored */
  found(task: Task, entry: StoredItem | undefined): void
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
  return createKeySource(context, feed, evidence, {
    where,
    list: `${resource.name}.${name}`,
    lane: 'audit',
    everyRound: false,
    isReady: () => true,
    isWanted: () => true,
    // It exists although no list shows it: asked for again after a week.
    found(task) {
      context.store.suspicions.end(rowOf(feed, task))
      readAgainAfter(context, where, task, WEEK)
    },
    missing(task) {
      const row = rowOf(feed, task)
      if (context.store.stored.state(row) !== 'open') {
        context.store.tasks.remove(task)
        return
      }
      const verdict = noteDenial(context, row)
      if (verdict.state === 'confirmed') context.store.tasks.remove(task)
      else context.store.tasks.askAt({ ...task, dueAt: isoInstant(context.clock.now() + verdict.askAgainMs) })
    },
  })
}

function rowOf({ table }: TimelineFeed | SnapshotFeed, { scope, key }: Task): RowKey {
  return { table, scope, key }
}

/** Reads ids that rows of another table name and the list did not show, once each round. */
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
  let plannedUpTo = 0
  const plan = createBatchPlan(context, {
    canBegin: isListed,
    *batches() {
      plannedUpTo = yield* planLookup(context, where.feed, { ...feed, lookup }, plannedUpTo)
    },
  })
  const asking = createKeySource(context, feed, evidence, {
    where,
    list: `${resource.name}.${name}`,
    lane: 'items',
    everyRound: true,
    isReady: plan.isReady,
    // Rows older than `--since` are loaded, and merged, when the bound is lifted.
    isWanted: ({ cells }) => since === null || String(cells[timeAt] ?? since) >= since,
    found: task => readAgainAfter(context, where, task, DAY),
    missing: task => readAgainAfter(context, where, task, DAY),
  })
  return {
    ...asking,
    replan: plan.invalidate,
  }
}

/** Plans look-ups for the rows that are new since the last plan. Returns the highest rowid. */
function* planLookup(
  { store, now }: EngineContext,
  id: string,
  { table, lookup, evidence }: TimelineFeed & { lookup: NonNullable<TimelineFeed['lookup']> },
  after: number,
): Generator<undefined, number, undefined> {
  const { lookupTasks, tasks } = store
  const upTo = lookupTasks.newestRow(lookup)
  lookupTasks.removeKnown(id, table)
  yield* byRange(after, upTo, range => {
    for (const key of lookupTasks.unknownKeys(table, lookup, range)) {
      if (isAskable(evidence, key)) tasks.add({ feed: id, key, dueAt: now() })
    }
  })
  return upTo
}

/** Reads records ahead of their list: those that an activity says have changed, and new ones that those point at. */
export function createChanges(
  context: EngineContext,
  resource: Resource,
  name: string,
  feed: SnapshotFeed,
): Source | undefined {
  const { evidence, changes } = feed
  if (evidence.by !== 'ids' || !changes) return undefined
  const { store } = context
  const list = `${resource.name}.${name}`
  const where = { resource: resource.name, feed: changedFeed(list) }
  const work: ChangesWork = { where, list, feed, updated: changes.updated }
  return createKeySource(context, feed, evidence, {
    where,
    list,
    lane: 'head',
    everyRound: false,
    isReady: () => true,
    isWanted: () => true,
    found(asked, entry) {
      // The task may have been updated while the request was in flight.
      const task = store.tasks.find(asked) ?? asked
      const step = task.sortAt === null ? task.attempts : 0
      if (entry) followRelations(context, list, feed, { object: task.scope, entry, step })
      if (entry && task.sortAt !== null && task.attempts === 0) followUnchanged(context, feed, entry)
      if (task.sortAt === null || (entry && hasCaughtUp(work, entry, task.sortAt))) store.tasks.remove(task)
      else askAgain(context, work, asked, task)
    },
    missing(asked) {
      const task = store.tasks.find(asked) ?? asked
      if (store.stored.state(rowOf(feed, task)) === 'open') {
        probeLater(context, { table: feed.table, probe: `${list}.probe`, scope: task.scope }, [
          { key: task.key, at: null },
        ])
        store.tasks.remove(task)
      } else if (task.sortAt === null) store.tasks.remove(task)
      else askAgain(context, work, asked, task)
    },
  })
}

/** A record may be unchanged because something that belongs to it has changed: its follow-ups are written anyway. */
function followUnchanged(
  context: EngineContext,
  { followUps = [], table }: SnapshotFeed,
  entry: StoredItem,
): void {
  if (entry.written.status !== 'unchanged') return
  const written = { ...entry.written, status: 'changed' } as const
  for (const followUp of followUps) writeRecordTasks(context, followUp, table, { ...entry, written })
}

interface ChangesWork {
  where: FeedName
  list: string
  feed: SnapshotFeed
  updated: string
}

/** Whether an answer already shows a change that happened at an instant. */
function hasCaughtUp(
  { feed, updated }: ChangesWork,
  { item, written }: StoredItem,
  happenedAt: string,
): boolean {
  const updatedAt = item.cells[Object.keys(tableNamed(feed.table).columns).indexOf(updated)]
  return typeof updatedAt === 'string' ? updatedAt >= happenedAt : written.status !== 'unchanged'
}

/** The API may show a change a little after it announces it. These are retries, so `sync.interval_scale` does not apply. */
const ASKED_AGAIN_AFTER_MS = [5_000, 30_000, 5 * MINUTE]

function askAgain(context: EngineContext, { where }: ChangesWork, asked: Task, task: Task): void {
  const { store, clock } = context
  if (task.sortAt !== asked.sortAt) return
  const afterMs = ASKED_AGAIN_AFTER_MS[task.attempts]
  if (afterMs === undefined) {
    store.tasks.remove(task)
    return
  }
  store.tasks.done(task, {
    round: context.round(where.resource),
    dueAt: isoInstant(clock.now() + afterMs),
    attempts: task.attempts + 1,
  })
}

function readAgainAfter(context: EngineContext, { resource }: FeedName, task: Task, ms: number): void {
  context.store.tasks.done(task, { round: context.round(resource), dueAt: context.after(ms) })
}

/** The keys of one request; of one request for each page when the answer has several. */
interface KeyQuestion {
  tasks: readonly Task[]
  first: Task
  cursor: Query | null
  /** The records of earlier pages. */
  present: Present
  /** True for a part of a question that failed as a whole. */
  isPart: boolean
}

function questionOf(tasks: readonly Task[], isPart = false): KeyQuestion | undefined {
  const [first] = tasks
  return first && { tasks, first, cursor: null, present: new Map(), isPart }
}

/** The records of an answer by key, in lower case; undefined for one that was not stored. */
type Present = ReadonlyMap<string, StoredItem | undefined>

function createKeySource(
  context: EngineContext,
  feed: TimelineFeed | SnapshotFeed,
  evidence: KeyEvidence,
  purpose: Purpose,
): Source {
  const { where } = purpose
  const { backoffs } = context
  const kind = KEY_REQUESTS[evidence.by]
  const expected = evidence.by === 'single' ? NOT_PUBLISHED : feed.expected
  const underWay = new Set<string>()
  const continued: KeyQuestion[] = []
  let batch: Task[] = []
  let failures = 0
  const nameOf = (task: Task) => `${task.scope}\u0000${task.key}`
  const isFree = (task: Task) => !underWay.has(nameOf(task)) && !backoffs.isWaiting(where.feed, task.scope)

  const refill = () => {
    batch = context.schedule
      .dueTasks({
        ...where,
        everyRound: purpose.everyRound,
        since: null,
        limit: BATCH_SIZE,
        first: 'longest-due',
        exceptScopes: backoffs.waitingScopes(where.feed),
        // A hint from outside may name any key, and a single key that is no UUID makes the API refuse the request.
        ...(evidence.by === 'ids' ? { keys: UUID_GLOB } : {}),
      })
      .filter(isFree)
  }

  /** False for a task that was done or removed since the batch was taken. */
  const isStillDue = (task: Task) => context.store.tasks.find(task)?.dueAt === task.dueAt

  const hasDue = (): boolean => {
    batch = batch.filter(isFree)
    if (batch.length === 0) refill()
    return batch.length > 0
  }

  /** The tasks of the next request: as many ids of one scope as it may name, or one key. */
  const take = (): KeyQuestion | undefined => {
    while (hasDue()) {
      const [next] = batch
      const tasks = batch.filter(task => task.scope === next?.scope).slice(0, kind.most)
      batch = batch.filter(task => !tasks.includes(task))
      const question = questionOf(tasks.filter(isStillDue))
      if (question) return question
    }
    return undefined
  }

  const askJob = (question: KeyQuestion): Job => {
    const { tasks, first, cursor } = question
    const { scope } = first
    const handleUnavailable = (status: number, message: string) => {
      const list = { list: purpose.list, feed, scope }
      if (context.store.segments.of(purpose.list, scope).length > 0)
        refuseTasks(context, { where, scope, tasks, status, message }, list)
      // Its object is not read here. If that changes, its list will show every record.
      else for (const task of tasks) context.store.tasks.remove(task)
    }
    /** Asked next in its place: the next page, or each half of a request that failed. */
    let rest: KeyQuestion[] = []
    return {
      ...where,
      scope,
      expected,
      ...(tasks.length > 1 && question.isPart ? { attempts: ATTEMPTS_OF_A_PART } : {}),
      request: { resource: where.resource, ...kind.request(evidence, question) },
      answer(value, reply) {
        const { records, next } = kind.read(evidence, value, question)
        const stored = storeRecords(context, feed, purpose, { records, scope, reply })
        const present = new Map([...question.present, ...stored])
        if (next !== null && next['cursor'] === cursor?.['cursor']) throw deadCursorError('repeated')
        failures = 0
        rest = next === null ? [] : [{ ...question, cursor: next, present }]
        if (next !== null) return
        for (const task of tasks) {
          // The API returns ids in lower case, whatever the case of the request.
          const key = task.key.toLowerCase()
          if (present.has(key)) purpose.found(task, present.get(key))
          else purpose.missing(task)
        }
      },
      refused(status, message) {
        const meaning = expected?.[status]
        if (meaning === 'absent') purpose.missing(first)
        else if (meaning === 'unavailable') handleUnavailable(status, message)
        else throw refusalError(status, message)
        failures = 0
      },
      failed(error) {
        failures += 1
        if (failures >= MOST_FAILURES_IN_A_ROW) backoffs.failed(where.feed, '')
        rest = halves(tasks).flatMap(half => questionOf(half, true) ?? [])
        if (rest.length === 0 || backoffs.isWaiting(where.feed)) putOff(context, where, tasks, error)
      },
      over() {
        if (rest.length > 0 && !backoffs.isWaiting(where.feed)) continued.unshift(...rest)
        else for (const task of tasks) underWay.delete(nameOf(task))
      },
    }
  }

  return {
    ...where,
    lane: purpose.lane,
    next() {
      if (backoffs.isWaiting(where.feed) || !purpose.isReady()) return undefined
      const question = continued.shift() ?? take()
      if (!question) return undefined
      for (const task of question.tasks) underWay.add(nameOf(task))
      return askJob(question)
    },
    finished() {
      if (backoffs.isWaiting(where.feed)) return true
      return purpose.isReady() && underWay.size === 0 && !hasDue()
    },
  }
}

/** A single read answers one of these for a record that is not published (spec: General rules 2 and 3). */
const NOT_PUBLISHED: Expected = { 403: 'absent', 404: 'absent', 410: 'absent' }

interface Found {
  records: readonly unknown[]
  scope: string
  reply: Reply
}

function storeRecords(
  context: EngineContext,
  feed: TimelineFeed | SnapshotFeed,
  purpose: Purpose,
  found: Found,
): Present {
  const { records, scope, reply } = found
  const report = context.report({ ...purpose.where, feed: purpose.list }, scope)
  const parse = context.parser(feed.table)
  const items = records.flatMap(record => parse(record, report, scope) ?? []).filter(purpose.isWanted)
  const shownBy = feed.evidence.by === 'ids' ? 'list' : 'single'
  const options = { ticket: reply.ticket, now: context.now(), shownBy } as const
  const stored = writeRows(context, purpose.where, feed.table, items, options, feed.followUps)
  const table = tableNamed(feed.table)
  const keyAt = Object.keys(table.columns).indexOf(table.key.at(-1) ?? '')
  return new Map([
    ...records.flatMap(record => {
      const id = idOf(record)
      return id === undefined ? [] : [[id, undefined] as const]
    }),
    ...stored.map(entry => [String(entry.item.cells[keyAt]).toLowerCase(), entry] as const),
  ])
}

/** The most ids that one request may name (spec: Limits). */
const MOST_IDS = 100

/** Tasks taken from the database at a time. */
const BATCH_SIZE = 2 * MOST_IDS

/** Whether a key can be asked for: the API refuses a whole request for one id that is no UUID. */
export function isAskable(evidence: Evidence, key: string): boolean {
  return evidence.by !== 'ids' || isUuid(key)
}

function idOf(record: unknown): string | undefined {
  if (typeof record !== 'object' || record === null || !('id' in record)) return undefined
  return typeof record.id === 'string' ? record.id.toLowerCase() : undefined
}

interface KeyRequest {
  /** The most tasks in one request. */
  most: number
  request(evidence: KeyEvidence, question: KeyQuestion): { route: string; path: string; query?: Query }
  read(
    evidence: KeyEvidence,
    value: unknown,
    question: KeyQuestion,
  ): { records: readonly unknown[]; next: Query | null }
}

const KEY_REQUESTS: Readonly<Record<KeyEvidence['by'], KeyRequest>> = {
  single: {
    most: 1,
    request: (evidence, { first: { key } }) => {
      const path = pathOf(evidence)
      return { route: path, path: fillPath(path, { key }) }
    },
    read(evidence, value, { first: { key } }) {
      const record =
        evidence.by === 'single' && readSingle(value, evidence.read.placement, evidence.read.identity)
      if (idOf(record) !== key.toLowerCase()) throw wrongIdentityError()
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

function pathOf(evidence: KeyEvidence): string {
  return evidence.by === 'single' ? evidence.read.path : evidence.path
}
