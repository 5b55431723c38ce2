import { createHash } from 'node:crypto'
import { PAGING, readPage } from '../../api/paging.ts'
import { tableNamed } from '../../catalog/catalog.ts'
import type { PeriodicFeed, Resource } from '../../catalog/resource.ts'
import type { ParsedItem } from '../../catalog/row.ts'
import { isoInstant } from '../../clock.ts'
import { type ParleyError, ResourceError } from '../../errors.ts'
import { NO_PASS, type Segment, type Segments } from '../../store/sync/segments.ts'
import type { EngineContext } from '../context.ts'
import { writeRows } from '../follow-ups/write.ts'
import { DAY, HOUR, scaled } from '../schedule/intervals.ts'
import { putOffList } from '../schedule/put-off.ts'
import type { ListOf } from '../schedule/schedule.ts'
import { createTurns } from '../schedule/turns.ts'
import type { Job, Reply, Source } from '../scheduler/job.ts'
import { handleRefusal } from './expected.ts'
import { noteUnread, resolveUnread } from './failed-span.ts'
import { ATTEMPTS_OF_A_PART, aloneBackoffMs, nextForPeriod, SHORTEST_PERIOD_MS } from './narrowing.ts'
import {
  createLoopGuards,
  deadCursorError,
  type LoopGuards,
  NOT_FAILED,
  type Query,
  segmentAfterPass,
  segmentInPass,
  segmentToRestart,
} from './pass.ts'

/**
 * Reads a log in periods with an exclusive end (spec: access logs). The newest period is an hour long, so that no more
 * than an hour or two is read again. Older periods are 31 days long, back to three empty ones in a row.
 */

/** The longest span that a request may name (spec: Limits). */
const LONGEST_PERIOD_MS = 31 * DAY

/** A period is closed when it was read at least this long after its end. */
const SETTLED_AFTER_MS = HOUR

const EMPTY_IN_A_ROW = 3

export function createPeriodic(
  context: EngineContext,
  resource: Resource,
  name: string,
  feed: PeriodicFeed,
): Source {
  const { store, options, backoffs, schedule } = context
  const id = `${resource.name}.${name}`
  const where = { resource: resource.name, feed: id }
  const list: ListOf = { resource: resource.name, id, feed }
  let underWay = false
  let endIgnored = false
  const guards = createLoopGuards()
  const turns = createTurns<Segment>(period => schedule.overdue(list, period))
  let planned = false
  let feedFailures = 0
  let isAnswered = false

  const periods = () => store.segments.of(id, '')
  const due = () => periods().filter(period => schedule.isListDue(list, period))

  /** In the daemon, the next period is planned when the open one falls due. */
  const isPlanned = () => planned || (schedule.isTimed && due().length === 0 && isNewestOpen(periods()))

  const job = (period: Segment): Job => {
    const end = endIgnored || period.to === null ? {} : { [options.accessLogEndParameter]: period.to }
    const from = period.from === null ? {} : { [feed.from]: period.from }
    const query = { limit: String(PAGING[feed.list.paging].maxLimit), ...from, ...end, ...period.cursor }
    return {
      ...where,
      expected: feed.expected,
      request: { resource: resource.name, route: feed.list.path, path: feed.list.path, query },
      ...(period.attempts > 0 ? { attempts: ATTEMPTS_OF_A_PART } : {}),
      answer(value, reply) {
        const work = { resource, id, feed, period, query, guards }
        resolveUnread(context, list, period)
        feedFailures = 0
        isAnswered = true
        if (!applyPage(context, work, value, reply, endIgnored)) return
        endIgnored = true
        context.fail(where, endParameterError(options.accessLogEndParameter))
      },
      refused(status, message) {
        if (status === 400 && period.cursor) {
          if (period.restarts > 0) throw deadCursorError('refused')
          store.segments.save(segmentToRestart(period))
          return
        }
        if (status === 400 && !endIgnored && period.to !== null) {
          endIgnored = true
          context.fail(where, endParameterError(options.accessLogEndParameter))
          return
        }
        handleRefusal(context, where, feed.expected, status, message)
      },
      failed(error) {
        feedFailures += 1
        narrowPeriod(context, { list, period, error, feedFailures, isAnswered })
      },
      over() {
        underWay = false
      },
    }
  }

  const assumeClock = () => {
    if (!context.server.isKnown()) context.server.observe(context.clock.now(), 0)
  }

  /**
   * Periods follow the server's clock, so a request is made to learn it when no answer has shown it yet. Even a 400
   * shows it; the first period's request then finds out what is refused.
   */
  const clockJob = (): Job => {
    const now = context.server.now()
    const period = {
      [feed.from]: new Date(now - HOUR).toISOString(),
      [options.accessLogEndParameter]: new Date(now).toISOString(),
    }
    return {
      ...where,
      expected: feed.expected,
      request: {
        resource: resource.name,
        route: feed.list.path,
        path: feed.list.path,
        query: { limit: '1', ...period },
      },
      answer: assumeClock,
      refused(status, message) {
        if (status === 400) assumeClock()
        else handleRefusal(context, where, feed.expected, status, message)
      },
      failed(error) {
        context.backOff(where, error)
      },
      over() {
        underWay = false
      },
    }
  }

  return {
    ...where,
    get lane() {
      return schedule.laneOf(list, undefined)
    },
    next() {
      if (backoffs.isWaiting(id) || underWay) return undefined
      if (!isPlanned() && !context.server.isKnown()) {
        underWay = true
        return clockJob()
      }
      if (!isPlanned()) {
        if (!store.attempt(() => planPeriods(context, id))) return undefined
        planned = true
      }
      const period = turns.take(due())
      if (!period) return undefined
      underWay = true
      guards.asking(period)
      return job(period)
    },
    finished: () => backoffs.isWaiting(id) || (isPlanned() && !underWay && due().length === 0),
    replan() {
      planned = false
    },
  }
}

interface FailedPeriod {
  list: ListOf
  period: Segment
  error: ParleyError
  feedFailures: number
  isAnswered: boolean
}

/** Does what `nextForPeriod` decides, so that one bad entry does not hide a month. */
function narrowPeriod(context: EngineContext, failed: FailedPeriod): void {
  const { list, period, error, feedFailures, isAnswered } = failed
  const { segments } = context.store
  const attempts = period.attempts + 1
  const next = nextForPeriod({
    attempts,
    limit: 0,
    code: error.code,
    mayPass: context.schedule.isTimed,
    from: period.from,
    to: period.to,
    feedFailures,
    isAnswered,
  })
  if (next.step === 'wait') putOffList(context, { resource: list.resource, feed: list.id }, period, error)
  else if (next.step === 'cut') {
    const { passStartedAt, passRound, listedAt, listedRound } = period
    const state = { passStartedAt, passRound, listedAt, listedRound, attempts, retryAt: null }
    const whole = { ...period, ...NO_PASS }
    const at = isoInstant(next.at)
    segments.save({ ...segments.cut(whole, at), ...state })
    segments.save({ ...whole, ...state, from: at })
  } else {
    segments.save({ ...period, ...NO_PASS, attempts, retryAt: context.after(aloneBackoffMs(attempts)) })
    noteUnread(context, list, period, error)
  }
}

function endParameterError(parameter: string): ResourceError {
  return new ResourceError(`The API does not accept ?${parameter}= as the end of a period`, {
    code: 'end-parameter',
    hint: 'Set access_log.end_parameter to the name that the API uses. Until then, periods are read without an end.',
  })
}

/** The newest period stays open until the next one follows. While a period is open, the log falls due again. */
function isNewestOpen([newest]: readonly Segment[]): boolean {
  return newest !== undefined && !newest.closed
}

/** Adds periods for the time since the newest one; at first, for the last hour and the 31 days before it. */
function planPeriods(context: EngineContext, id: string): void {
  const { store } = context
  const end = context.server.now()
  dropFuture(context, id, end)
  const periods = store.segments.of(id, '')
  const newest = periods[0]?.to
  const start = newest ? Date.parse(newest) : end - HOUR - LONGEST_PERIOD_MS
  const isLoading = isNewestOpen(periods) && periods.some(isUnread)
  if (end > start && !(isLoading && end - start < HOUR)) {
    const bounds = [end]
    for (let at = end - HOUR; at > start; at -= LONGEST_PERIOD_MS) bounds.push(at)
    bounds.push(start)
    bounds.slice(1).forEach((from, index) => {
      addPeriod(context, id, from, bounds[index] ?? end)
    })
  }
  extendBack(context, id)
}

/** Removes or reopens periods of the future, which a clock that was ahead has planned. */
function dropFuture({ store }: EngineContext, id: string, now: number): void {
  for (const period of store.segments.of(id, '')) {
    if (period.from !== null && Date.parse(period.from) > now) store.segments.remove(period)
    else if (period.to !== null && Date.parse(period.to) > now)
      store.segments.save({ ...period, closed: false })
  }
}

function addPeriod({ store, options }: EngineContext, id: string, from: number, to: number): void {
  const earliest = options.since === null ? from : Math.max(from, Date.parse(options.since))
  if (earliest >= to) return
  const bounds = { from: new Date(earliest).toISOString(), to: new Date(to).toISOString() }
  store.segments.add({ feed: id, scope: '', ...bounds })
}

/** Each hour closes a period, so closed neighbours are joined while a request may still name the joined span. */
function joinClosed(segments: Segments, id: string): void {
  let newer: Segment | undefined
  for (const period of segments.of(id, '')) {
    const isOne = newer?.closed && period.closed && spanMs(period.from, newer.to) <= LONGEST_PERIOD_MS
    newer = newer && isOne ? segments.join(newer, period) : period
  }
}

function spanMs(from: string | null, to: string | null): number {
  return Date.parse(to ?? '') - Date.parse(from ?? '')
}

/** A period that was stepped over may never be readable, so older ones do not wait for it. */
function isUnread({ listedAt, from, to }: Segment): boolean {
  return listedAt === null && !(spanMs(from, to) <= SHORTEST_PERIOD_MS)
}

/** Once the oldest period is read, adds the one before it, until the length of three in a row is empty. */
function extendBack(context: EngineContext, id: string): void {
  const periods = context.store.segments.of(id, '')
  const last = periods.at(-1)
  if (!last?.from || isUnread(last)) return
  const to = Date.parse(last.from)
  const newestEmpty = isoInstant(to + EMPTY_IN_A_ROW * LONGEST_PERIOD_MS)
  const oldest = periods.filter(({ from }) => from !== null && from < newestEmpty)
  const reachesBack = (periods[0]?.to ?? '') >= newestEmpty
  if (reachesBack && oldest.every(({ rows, listedAt }) => rows === 0 && listedAt !== null)) return
  addPeriod(context, id, to - LONGEST_PERIOD_MS, to)
}

interface PeriodWork {
  resource: Resource
  id: string
  feed: PeriodicFeed
  period: Segment
  query: Query
  guards: LoopGuards
}

/** Returns true when the page shows that the API ignores the end parameter. */
function applyPage(
  context: EngineContext,
  work: PeriodWork,
  value: unknown,
  reply: Reply,
  endIgnored: boolean,
): boolean {
  const { store } = context
  const { resource, id, feed, query } = work
  const where = { resource: resource.name, feed: id }
  const page = readPage(feed.list.paging, value, query)
  const period = { ...segmentInPass(work.period, context, where, reply), ...NOT_FAILED }
  const parse = context.parser(feed.table)
  const report = context.report(where, '')
  const columns = Object.keys(tableNamed(feed.table).columns)
  const timeAt = columns.indexOf(feed.time)
  const timeOf = ({ cells }: ParsedItem) => (typeof cells[timeAt] === 'string' ? cells[timeAt] : null)
  const entries = page.items.flatMap(item => parse(item, report) ?? [])
  const beyond = entries.some(entry => isBeyond(timeOf(entry), period))
  if (beyond && !endIgnored) return true

  const inside = entries.filter(entry => isInside(timeOf(entry), period))
  const numbered = identify(inside, timeOf, period)
  writeRows(context, where, feed.table, numbered.items, {
    ticket: reply.ticket,
    now: context.now(),
    filled: ['id'],
  })
  const reached: Segment = {
    ...period,
    cursor: page.next,
    pages: period.pages + 1,
    // Undated entries appear in every period. If they counted, no period would be empty and none would be the oldest.
    rows: (period.pages === 0 ? 0 : period.rows) + inside.filter(entry => timeOf(entry) !== null).length,
    edgeAt: numbered.edgeAt,
    edgeKeys: numbered.edgeKeys,
  }
  const past =
    endIgnored && entries.length > 0 && entries.every(entry => (timeOf(entry) ?? '') < (period.from ?? ''))
  if (page.next === null || past) endPeriod(context, work, reached)
  else if (work.guards.repeats(period, page.next)) {
    if (period.restarts > 0) throw deadCursorError('repeated')
    store.segments.save(segmentToRestart(period))
  } else store.segments.save(reached)
  return false
}

/** Entries at or after the exclusive end. */
function isBeyond(time: string | null, { to }: Segment): boolean {
  return time !== null && to !== null && time >= to
}

/** Entries without a time cannot be assigned to a period, so every period that lists them has them. */
function isInside(time: string | null, { from, to }: Segment): boolean {
  if (time === null) return true
  return (from === null || time >= from) && (to === null || time < to)
}

interface Numbered {
  items: ParsedItem[]
  edgeAt: string | null
  edgeKeys: string[]
}

/**
 * The API gives entries no id, so theirs is a digest of all fields and of a number among equal entries. Equal entries
 * have the same time and follow each other, perhaps across two pages, so the checkpoint keeps the digests from the end
 * of the last page.
 */
function identify(
  entries: readonly ParsedItem[],
  timeOf: (entry: ParsedItem) => string | null,
  period: Segment,
): Numbered {
  const counted = new Map<string, number>()
  for (const digest of period.edgeKeys) counted.set(digest, (counted.get(digest) ?? 0) + 1)
  const digests = entries.map(({ cells, extra }) => digestOf(JSON.stringify([...cells.slice(1), extra])))
  const items = entries.map((entry, index) => {
    const digest = digests[index] ?? ''
    const number = counted.get(digest) ?? 0
    counted.set(digest, number + 1)
    return { ...entry, cells: [digestOf(`${digest} ${number}`), ...entry.cells.slice(1)] }
  })
  const last = entries.at(-1)
  const edgeAt = (last && timeOf(last)) ?? period.edgeAt
  const atEdge = digests.filter((_, index) => {
    const time = entries[index] ? timeOf(entries[index]) : null
    return time === edgeAt || time === null
  })
  const carried = edgeAt === period.edgeAt ? period.edgeKeys : []
  return { items, edgeAt, edgeKeys: [...carried, ...atEdge] }
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32)
}

function endPeriod(context: EngineContext, { resource, id, guards }: PeriodWork, period: Segment): void {
  const { store } = context
  guards.ended(period)
  const ended = segmentAfterPass(period)
  const settledAt = Date.parse(period.to ?? '') + scaled(SETTLED_AFTER_MS, context.options)
  store.segments.save({ ...ended, closed: Date.parse(ended.listedAt ?? '') >= settledAt })
  const [newest] = store.segments.of(id, '')
  if (newest?.id === period.id && ended.listedAt) store.state.fresh(resource.name, ended.listedAt)
  joinClosed(store.segments, id)
  if (isNewestOpen(store.segments.of(id, ''))) extendBack(context, id)
  else planPeriods(context, id)
}
