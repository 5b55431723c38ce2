import { PAGING, readDataList, readPage, readSingle } from '../api/paging.ts'
import { tableNamed } from '../catalog.ts'
import { decodeJson, encodeJson } from '../json.ts'
import { entity, type ItemFeed, type ReadRequest, type Resource, requested, type Table } from '../resource.ts'
import type { ParsedItem } from '../row.ts'
import type { TextResult } from '../store/message-merge.ts'
import { sameJson } from '../store/rows.ts'
import { quote } from '../store/sql.ts'
import type { Task } from '../store/tasks.ts'
import { DAY, type EngineContext, HOUR, MINUTE, WEEK } from './context.ts'
import { wrongIdentity } from './expected.ts'
import type { Reply } from './job.ts'
import { compileParser, type ItemParser } from './parse.ts'
import { keyOf } from './snapshot.ts'
import { setbackError } from './walk.ts'

/** What the answer of a single read is stored as: one handler for each kind of item. */
export interface ItemHandler {
  query?(work: ItemWork): Readonly<Record<string, string>>
  /** What fills the path besides the key. */
  params?(task: Task): Readonly<Record<string, string>>
  /** Writes the tasks of this round once the parents are read; until then nothing is asked for. */
  plan?(context: EngineContext, id: string): void
  answer(context: EngineContext, work: ItemWork, value: unknown, reply: Reply): void
  /** 404, or 403 where that is declared as withheld. */
  absent(context: EngineContext, work: ItemWork, meaning: 'absent' | 'withheld'): void
}

export interface ItemWork {
  resource: Resource
  id: string
  feed: ItemFeed
  task: Task
  /** True when the item's own list goes on on another page. */
  more: boolean
  cursor: Readonly<Record<string, string>> | null
  gathered: string[]
  /** Cursors of its pages so far. */
  asked: string[]
}

export const ITEM_ANSWERS: Readonly<Record<ItemFeed['stores'], ItemHandler>> = {
  row: { answer: storeRow, absent: rowAbsent },
  body: { answer: storeBody, absent: bodyAbsent },
  transcript: { answer: storeTranscript, absent: transcriptAbsent },
  results: { answer: storeResults, absent: partAbsent },
  setting: { answer: storeSetting, absent: (context, work) => readAgain(context, work, DAY) },
  links: {
    plan: planLinks,
    params: ({ scope }) => ({ scope: scope.split('<')[0] ?? '' }),
    query: linksQuery,
    answer: storeLinks,
    absent: (context, work) => readAgain(context, work, DAY),
  },
}

const whereOf = ({ resource, id }: ItemWork) => ({ resource: resource.name, feed: id })

/** The record of a single read. An answer for something else than was asked for is no answer. */
function recordOf({ feed, task }: ItemWork, value: unknown): Record<string, unknown> {
  const read = feed.read as ReadRequest
  const record = readSingle(value, read.placement, read.identity)
  if (!Array.isArray(record) && (read.identity === undefined || record[read.identity] === task.key))
    return record
  throw wrongIdentity()
}

// ------------------------------------------------------------------------------------------------ rows

function storeRow(context: EngineContext, work: ItemWork, value: unknown, reply: Reply): void {
  const { feed, task } = work
  const where = whereOf(work)
  const item = context.parser(feed.table)(recordOf(work, value), context.report(where, task.key))
  if (!item) {
    readAgain(context, work, DAY)
    return
  }
  const columns = Object.keys(tableNamed(feed.table).columns)
  const access = columns.indexOf('access')
  if (access >= 0) item.cells[access] = 'open'
  const filled = access >= 0 ? ['access'] : []
  context.write(where, feed.table, [item], { ticket: reply.ticket, now: context.now(), filled }, feed.causes)
  const ready = !feed.readyWhen || item.cells[columns.indexOf(feed.readyWhen.column)] === feed.readyWhen.is
  if (ready) readAgain(context, work, rereadAfter(context, task.sortAt))
  else waitFor(context, work)
}

/** What can change later is read again at intervals that grow with its age. Pure but for the clock. */
function rereadAfter({ clock }: EngineContext, happenedAt: string | null): number {
  const age = happenedAt === null ? WEEK : clock.now() - Date.parse(happenedAt)
  return Math.min(Math.max(age / 10, HOUR), WEEK)
}

function rowAbsent(context: EngineContext, work: ItemWork, meaning: 'absent' | 'withheld'): void {
  if (meaning === 'withheld') {
    withhold(context, work)
    return
  }
  const { feed, task } = work
  const key = quote(tableNamed(feed.table).key.at(-1) ?? '')
  const live = context.store
    .prepare(`SELECT 1 FROM ${quote(feed.table)} WHERE ${key} = ? AND _deleted_at IS NULL`)
    .get(task.key)
  if (live) {
    context.store.absences.confirm(feed.table, '', task.key, context.now())
    dropParts(context, work)
    readAgain(context, work, WEEK)
  } else if (isStored(context, work)) {
    // Gone for good, as far as is known: a list or an activity that names it again brings the task back.
    context.store.tasks.remove(task)
  } else if (feed.readyWhen) {
    // Known by name only: it may be published later.
    waitFor(context, work)
  } else readAgain(context, work, DAY)
}

function isStored({ store }: EngineContext, { feed, task }: ItemWork): boolean {
  const key = quote(tableNamed(feed.table).key.at(-1) ?? '')
  return store.prepare(`SELECT 1 FROM ${quote(feed.table)} WHERE ${key} = ?`).get(task.key) !== undefined
}

/** What hangs on a row that is not to be read is not asked for either; its next change brings it back. */
function dropParts({ store }: EngineContext, { feed, task }: ItemWork): void {
  for (const cause of feed.causes ?? []) store.tasks.remove({ feed: cause.feed, key: task.key })
}

/** 403 on a meeting: it is known to be there, and no more. */
function withhold(context: EngineContext, work: ItemWork): void {
  const { feed, task } = work
  const { store } = context
  const now = context.now()
  const changed = store
    .prepare(
      `INSERT INTO ${quote(feed.table)} (id, access, transcript_state, _first_seen_at, _synced_at)
       VALUES (@key, 'withheld', 'withheld', @now, @now)
       ON CONFLICT DO UPDATE SET access = 'withheld', transcript_state = 'withheld', _synced_at = @now, _deleted_at = NULL
       WHERE access IS NOT 'withheld' OR _deleted_at IS NOT NULL`,
    )
    .run({ key: task.key, now }).changes
  context.counts(work.resource.name).rowsChanged += changed
  const results = store.prepare(
    'SELECT id FROM playbook_results WHERE meeting_id = ? AND _deleted_at IS NULL',
  )
  for (const { id } of results.all(task.key) as { id: string }[]) {
    store.absences.confirm('playbook_results', '', id, now)
  }
  dropParts(context, work)
  readAgain(context, work, rereadAfter(context, task.sortAt))
}

// ------------------------------------------------------------------------------------------------ bodies

function storeBody(context: EngineContext, work: ItemWork, value: unknown, reply: Reply): void {
  const { feed, task } = work
  const where = whereOf(work)
  const report = context.report(where, task.key)
  const parsed = context.parser(feed.table)(recordOf(work, value), report)
  if (!parsed) {
    readAgain(context, work, DAY)
    return
  }
  const { text } = parsed.taken
  const fits = typeof text === 'string' || text == null
  if (!fits) report.drift(feed.table, 'text', 'unexpected type')
  const item = fits ? parsed : withExtra(parsed, 'text', text)
  const stored = context.write(where, feed.table, [item], { ticket: reply.ticket, now: context.now() })
  // A read that started later has spoken already.
  if (stored.length === 0) return
  const given = typeof text === 'string'
  const result: TextResult = given ? { state: 'present', text: text.toWellFormed() } : { state: 'empty' }
  if (context.store.merge.applyText(task.key, result, context.now()))
    context.counts(where.resource).rowsChanged += 1
  if (given) context.store.tasks.remove(task)
  else bodyAgain(context, work, false)
}

function withExtra(item: ParsedItem, field: string, value: unknown): ParsedItem {
  const known = item.extra === null ? {} : (decodeJson(item.extra).value as object)
  return { ...item, extra: encodeJson({ ...known, [field]: value }) }
}

function bodyAbsent(context: EngineContext, work: ItemWork): void {
  context.store.merge.applyText(work.task.key, { state: 'gone' }, context.now())
  bodyAgain(context, work, true)
}

const BODY_YOUNG_MS = 30 * DAY

/** Hidden bodies may be shown later: often while the message is young, then once in 30 days. */
function bodyAgain(context: EngineContext, work: ItemWork, waiting: boolean): void {
  const { task } = work
  const age = task.sortAt === null ? 0 : context.clock.now() - Date.parse(task.sortAt)
  const attempts = task.attempts + 1
  const interval = age < BODY_YOUNG_MS ? Math.min(HOUR * 2 ** attempts, WEEK) : BODY_YOUNG_MS
  again(context, work, { afterMs: interval, attempts, waiting })
}

// ------------------------------------------------------------------------------------------------ transcripts

/** The answer as one payload, so that its list is replaced as a whole and its oddities are kept. */
const TRANSCRIPT: Table = entity('transcript', {
  about: 'The answer of a transcript read.',
  key: ['id'],
  columns: { id: requested('Meeting.') },
  children: [{ table: tableNamed('transcript_entries'), list: ['entries'], items: 'object' }],
})

const parseTranscript: ItemParser = compileParser(TRANSCRIPT)

function storeTranscript(context: EngineContext, work: ItemWork, value: unknown, reply: Reply): void {
  const { feed, task } = work
  const { store, options } = context
  if (!store.freshness.admits(reply.ticket, feed.table, task.key)) return
  const list = readDataList(value)
  const entries = options.words ? list : list.map(withoutWords)
  const parsed = parseTranscript({ entries }, context.report(whereOf(work), task.key), task.key)
  const rows = parsed?.children.get(feed.table) ?? []
  const counts = context.counts(work.resource.name)
  counts.rowsRead += rows.length
  if (rows.length === 0 && transcriptState(context, task.key) === 'present') {
    // What was there and now is empty is believed when an answer an interval later says the same.
    const believedFrom = task.deadline ?? context.after(HOUR)
    if (context.now() < believedFrom) {
      again(context, work, { afterMs: HOUR, deadline: believedFrom, waiting: true })
      return
    }
  }
  if (store.rows.replaceChildren(feed.table, task.key, rows)) counts.rowsChanged += rows.length
  setTranscriptState(context, task.key, rows.length > 0 ? 'present' : 'empty')
  if (rows.length > 0) store.tasks.remove(task)
  else waitFor(context, work)
}

function withoutWords(entry: unknown): unknown {
  if (typeof entry !== 'object' || entry === null) return entry
  return Object.fromEntries(Object.entries(entry).filter(([name]) => name !== 'words'))
}

function transcriptState({ store }: EngineContext, meeting: string): unknown {
  return store.prepare('SELECT transcript_state FROM meetings WHERE id = ?').pluck().get(meeting)
}

function setTranscriptState(context: EngineContext, meeting: string, state: string): void {
  context.store
    .prepare(
      'UPDATE meetings SET transcript_state = @state, _synced_at = @now WHERE id = @meeting AND transcript_state <> @state',
    )
    .run({ meeting, state, now: context.now() })
}

function transcriptAbsent(context: EngineContext, work: ItemWork, meaning: 'absent' | 'withheld'): void {
  setTranscriptState(context, work.task.key, meaning === 'withheld' ? 'withheld' : 'gone')
  partAbsent(context, work)
}

/** A part of a meeting is refused: the meeting's detail decides what that means. */
function partAbsent(context: EngineContext, work: ItemWork): void {
  const detail = { feed: 'meetings.detail', key: work.task.key }
  if (work.task.attempts === 0) context.store.tasks.demand({ ...detail, dueAt: context.now() })
  waitFor(context, work)
}

// ------------------------------------------------------------------------------------------------ results

function storeResults(context: EngineContext, work: ItemWork, value: unknown, reply: Reply): void {
  const { feed, task } = work
  const where = whereOf(work)
  const parse = context.parser(feed.table)
  const report = context.report(where, task.key)
  const items = readDataList(value).flatMap(item => parse(item, report, task.key) ?? [])
  context.write(where, feed.table, items, { ticket: reply.ticket, now: context.now() })
  const listed = new Set(items.map(({ cells }) => cells[0]))
  const stored = context.store.prepare(
    `SELECT id FROM ${quote(feed.table)} WHERE meeting_id = ? AND _deleted_at IS NULL`,
  )
  for (const { id } of stored.all(task.key) as { id: string }[]) {
    if (!listed.has(id)) context.store.absences.confirm(feed.table, '', id, context.now())
  }
  if (items.length === 0) waitFor(context, work)
  else readAgain(context, work, rereadAfter(context, task.sortAt))
}

// ------------------------------------------------------------------------------------------------ settings

function storeSetting(context: EngineContext, work: ItemWork, value: unknown): void {
  const { feed, task } = work
  const read = feed.read as ReadRequest
  const setting = encodeJson(readSingle(value, read.placement))
  const table = quote(feed.table)
  const counts = context.counts(work.resource.name)
  counts.rowsRead += 1
  const stored = context.store
    .prepare(`SELECT execution_setting FROM ${table} WHERE id = ?`)
    .pluck()
    .get(task.key)
  if (!sameJson((stored ?? null) as string | null, setting)) {
    const update = context.store.prepare(
      `UPDATE ${table} SET execution_setting = ?, _synced_at = ? WHERE id = ?`,
    )
    counts.rowsChanged += update.run(setting, context.now(), task.key).changes
  }
  readAgain(context, work, WEEK)
}

// ------------------------------------------------------------------------------------------------ links

/** The three kinds of pairs, each stored once, in this direction. */
const LINKED_PAIRS = [
  ['deal', 'company'],
  ['deal', 'contact'],
  ['company', 'contact'],
] as const

/**
 * Each kind of pair is asked for from the side with fewer records. The task's scope is `listed<asking`: the object
 * whose list is filtered, and the one that the record asked for is of.
 */
function planLinks({ store, now }: EngineContext, id: string): void {
  const count = store
    .prepare('SELECT count(*) FROM crm_records WHERE object = ? AND _deleted_at IS NULL')
    .pluck()
  const size = new Map(['deal', 'company', 'contact'].map(object => [object, count.get(object) as number]))
  const scopes = LINKED_PAIRS.map(([one, other]) => {
    const [asking, listed] = (size.get(one) ?? 0) <= (size.get(other) ?? 0) ? [one, other] : [other, one]
    return { asking, listed, scope: `${listed}<${asking}` }
  })
  const add = store.prepare(
    `INSERT OR IGNORE INTO sync_tasks (feed, scope, key, sort_at, due_at)
     SELECT ?, ?, id, updated_at, ? FROM crm_records WHERE object = ? AND _deleted_at IS NULL`,
  )
  const drop = store.prepare(
    `DELETE FROM sync_tasks WHERE feed = ? AND scope = ? AND NOT EXISTS (
       SELECT 1 FROM crm_records r WHERE r.object = ? AND r.id = sync_tasks.key AND r._deleted_at IS NULL)`,
  )
  store
    .prepare('DELETE FROM sync_tasks WHERE feed = ? AND scope NOT IN (?, ?, ?)')
    .run(id, ...scopes.map(({ scope }) => scope))
  for (const { asking, scope } of scopes) {
    add.run(id, scope, now(), asking)
    drop.run(id, scope, asking)
  }
}

function linksQuery({ task, cursor }: ItemWork): Readonly<Record<string, string>> {
  return { related_id: task.key, limit: String(PAGING['v2-cursor'].maxLimit), ...cursor }
}

function storeLinks(context: EngineContext, work: ItemWork, value: unknown, reply: Reply): void {
  const { task, resource, feed } = work
  const page = readPage('v2-cursor', value, linksQuery(work))
  const keys = page.items.flatMap(item => keyOf(item, ['id']) ?? [])
  context.counts(resource.name).rowsRead += keys.length
  const gathered = [...new Set([...work.gathered, ...keys])]
  if (page.next !== null && work.asked.includes(page.next['cursor'] ?? '')) throw setbackError('repeated')
  if (page.next !== null) {
    work.more = true
    work.cursor = page.next
    work.asked.push(page.next['cursor'] ?? '')
    work.gathered = gathered
    return
  }
  if (context.store.freshness.admits(reply.ticket, feed.table, `${task.scope} ${task.key}`)) {
    replaceLinks(context, work, gathered)
  }
  readAgain(context, work, WEEK)
}

function replaceLinks(
  { store, counts }: EngineContext,
  { task, resource }: ItemWork,
  related: readonly string[],
): void {
  const [listed = '', asking = ''] = task.scope.split('<')
  const forward = LINKED_PAIRS.some(([from, to]) => from === asking && to === listed)
  const [object, relatedObject] = forward ? [asking, listed] : [listed, asking]
  const [mine, theirs] = forward ? ['record_id', 'related_id'] : ['related_id', 'record_id']
  const stored = store
    .prepare(`SELECT ${theirs} FROM crm_record_links WHERE object = ? AND related_object = ? AND ${mine} = ?`)
    .pluck()
    .all(object, relatedObject, task.key) as string[]
  const wanted = new Set(related)
  const known = new Set(stored)
  const remove = store.prepare(
    `DELETE FROM crm_record_links WHERE object = ? AND related_object = ? AND ${mine} = ? AND ${theirs} = ?`,
  )
  const add = store.prepare(
    `INSERT OR IGNORE INTO crm_record_links (object, related_object, ${mine}, ${theirs}) VALUES (?, ?, ?, ?)`,
  )
  const tally = counts(resource.name)
  for (const key of stored) {
    if (!wanted.has(key)) tally.rowsDeleted += remove.run(object, relatedObject, task.key, key).changes
  }
  for (const key of wanted) {
    if (!known.has(key)) tally.rowsChanged += add.run(object, relatedObject, task.key, key).changes
  }
}

// ------------------------------------------------------------------------------------------------ when again

interface Again {
  afterMs: number
  attempts?: number
  waiting?: boolean
  deadline?: string | null
}

function again(context: EngineContext, { resource, task }: ItemWork, next: Again): void {
  const { afterMs, ...rest } = next
  context.store.tasks.done(task, {
    round: context.round(resource.name),
    dueAt: context.after(afterMs),
    sortAt: task.sortAt,
    ...rest,
  })
}

function readAgain(context: EngineContext, work: ItemWork, afterMs: number): void {
  again(context, work, { afterMs })
}

/** Not ready at the API: asked again at growing intervals until a deadline, then weekly. */
function waitFor(context: EngineContext, work: ItemWork): void {
  const attempts = work.task.attempts + 1
  const deadline = work.task.deadline ?? context.after(WEEK)
  const past = context.now() > deadline
  const afterMs = past ? WEEK : Math.min(5 * MINUTE * 2 ** attempts, DAY)
  again(context, work, { afterMs, attempts, deadline, waiting: true })
}
