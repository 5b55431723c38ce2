import { UUID_GLOB } from '../../../base/uuid.ts'
import { keyAt } from '../../../catalog/catalog.ts'
import type { FeedName } from '../../../catalog/feeds.ts'
import type { ParsedItem } from '../../../declare/parsed-item.ts'
import type { SnapshotFeed, StatusMeanings, TimelineFeed } from '../../../declare/resource.ts'
import type { StoredItem } from '../../../store/rows/write-items.ts'
import type { Task } from '../../../store/sync/tasks/task.ts'
import type { EngineContext } from '../../context/context.ts'
import type { Keys, Reply, Source } from '../../context/job.ts'
import { writeRows } from '../../follow-ups/write.ts'
import { halves } from '../narrowing.ts'
import { createPageGuard, type PageGuard, requireProgress } from '../page-guard.ts'
import { putOff } from '../put-off.ts'
import { refusalError } from '../refusals.ts'
import { refuseTasks } from '../refused-scope.ts'
import { createSingleReads } from '../single-reads.ts'
import {
  idOf,
  type KeyEvidence,
  type KeyRequests,
  keyRequestsOf,
  MOST_IDS,
  type NamedKeys,
  NOT_PUBLISHED,
} from './key-requests.ts'

/**
 * Reads records of a list by key. Records that are found are stored; each use of these reads decides what a found or a
 * missing key means.
 */

/** One use of these reads: probes, look-ups, or reads of changed records. */
export interface KeyReads {
  where: FeedName
  /** The list feed, under whose name rejects are noted. */
  list: string
  lane: 'head' | 'audit' | 'items'
  everyRound: boolean
  /** What refusals mean. Default: as for a single read of its record, or for its list. */
  expected?: StatusMeanings
  /** False until the tasks of this run are written. Default: true. */
  isReady?(): boolean
  /** Whether to store a found record. Default: true. */
  isWanted?(item: ParsedItem): boolean
  /** @param entry undefined when the record was not stored: unparsable, unwanted, or a later answer was stored */
  found(task: Task, entry: StoredItem | undefined): void
  missing(task: Task): void
}

/** A list feed, how its records are requested by key, and for which use. */
interface KeyWork {
  feed: TimelineFeed | SnapshotFeed
  requests: KeyRequests
  reads: KeyReads
}

/** The records of an answer, by their key; undefined for a record that was not stored. */
type Present = ReadonlyMap<string, StoredItem | undefined>

/** Some keys, and the page of the answer that is requested next. */
interface KeyPage extends NamedKeys {
  /** The records of earlier pages. */
  present: Present
  guard: PageGuard
  /** True for a part of a request that failed as a whole. */
  isPart: boolean
}

/** How many tasks are loaded from the database at a time. */
const BATCH_SIZE = 2 * MOST_IDS

function firstPage(tasks: readonly [Task, ...Task[]], isPart = false): KeyPage {
  const [first] = tasks
  return { tasks, first, cursor: null, present: new Map(), guard: createPageGuard(), isPart }
}

export function createKeySource(
  context: EngineContext,
  feed: KeyWork['feed'],
  evidence: KeyEvidence,
  reads: KeyReads,
): Source {
  const { schedule, backoffs } = context
  const { where, lane, everyRound, isReady = () => true } = reads
  const requests = keyRequestsOf(evidence)
  const work = { feed, requests, reads }
  const expected = reads.expected ?? (evidence.by === 'single' ? NOT_PUBLISHED : feed.expected)
  // A webhook may name any key, and one key that is no UUID makes the API refuse the whole request.
  const keys: Keys = {
    resource: where.resource,
    feed: where.id,
    everyRound,
    ...(evidence.by === 'ids' && { keys: UUID_GLOB }),
  }

  return createSingleReads<KeyPage>(context, {
    where,
    route: requests.route,
    lane,
    expected,
    keys,
    isReady,
    load: () =>
      schedule.dueTasks({
        ...keys,
        limit: BATCH_SIZE,
        first: 'longest-due',
        exceptScopes: backoffs.waitingScopes(where.id),
      }),
    most: requests.most,
    workOn: tasks => firstPage(tasks),
    tasksOf: ({ tasks }) => tasks,
    ask(page) {
      const { tasks, first, isPart } = page
      /** The next page of an answer, or each half of a request that failed. */
      let rest: KeyPage[] = []
      page.guard.asking(page.cursor)
      return {
        isPart: isPart && tasks.length > 1,
        request: requests.request(page),
        answer(value, reply) {
          const next = storeAnswer(context, work, page, { value, reply })
          rest = next ? [next] : []
        },
        refused(status, message) {
          const meaning = expected?.[status]
          if (meaning === 'absent') reads.missing(first)
          else if (meaning === 'unavailable') refuseKeys(context, work, page, { status, message })
          else throw refusalError(status, message)
        },
        failed(error) {
          rest = halves(tasks).flatMap(([one, ...others]) => (one ? firstPage([one, ...others], true) : []))
          if (rest.length === 0 || backoffs.isWaiting(where.id)) putOff(context, where, tasks, error)
        },
        rest: again => (again && (isPart || page.cursor !== null) ? [page] : rest),
      }
    },
  }).source
}

/** Stores the records of a page. Returns the next page, or settles all keys when there is none. */
function storeAnswer(
  context: EngineContext,
  work: KeyWork,
  page: KeyPage,
  { value, reply }: { value: unknown; reply: Reply },
): KeyPage | undefined {
  const { requests, reads } = work
  const { records, next } = requests.read(value, page)
  const stored = storeRecords(context, work, page, records, reply)
  const present = new Map([...page.present, ...stored])
  requireProgress(page.guard, { next, hasNew: present.size > page.present.size })
  if (next !== null) return { ...page, cursor: next, present }
  for (const task of page.tasks) {
    if (present.has(task.key)) reads.found(task, present.get(task.key))
    else reads.missing(task)
  }
  return undefined
}

/** Handles a refusal which means that the workspace does not offer the scope of these keys. */
function refuseKeys(
  context: EngineContext,
  { feed, reads: { where, list } }: KeyWork,
  { tasks, first: { scope } }: KeyPage,
  refusal: { status: number; message: string },
): void {
  if (context.store.segments.of(list, scope).length > 0)
    refuseTasks(context, { where, scope, tasks, ...refusal }, { list, feed, scope })
  // The object of this scope has no list. If it gets one, the list will show every record.
  else for (const task of tasks) context.store.tasks.remove(task)
}

function storeRecords(
  context: EngineContext,
  { feed, requests: { shownBy }, reads }: KeyWork,
  { first: { scope } }: KeyPage,
  records: readonly unknown[],
  reply: Reply,
): Present {
  const report = context.parsing.report({ ...reads.where, id: reads.list }, scope)
  const parse = context.parsing.parser(feed.table)
  const items = records
    .flatMap(record => parse(record, report, scope) ?? [])
    .filter(item => reads.isWanted?.(item) ?? true)
  const options = { ticket: reply.ticket, now: context.now(), shownBy }
  const stored = writeRows(context, reads.where.resource, feed.table, items, options, feed.followUps)
  const keyIndex = keyAt(feed.table)
  return new Map([
    ...records.flatMap(record => {
      const id = idOf(record)
      return id === undefined ? [] : [[id, undefined] as const]
    }),
    ...stored.map(entry => [String(entry.item.cells[keyIndex]), entry] as const),
  ])
}
