import { PAGING, readPage, readSingle } from '../../api/paging.ts'
import type { ApiReader, ReaderReply } from '../../api/reader.ts'
import { fillPath, type Query } from '../../api/request.ts'
import { resourceNamed } from '../../catalog/catalog.ts'
import type { Expected, Feed, ResourceName, TimelineFeed } from '../../catalog/resource.ts'
import { canonicalInstant } from '../../instant.ts'
import { keyOf } from '../parse/key.ts'
import { type Amount, about, atLeast, bodiesFor, exactly, sum } from './estimate.ts'
import type { Holdings } from './holdings.ts'
import { type Estimate, type Sampling, type Sighting, sampleList } from './sample.ts'

/** Requests only what an estimate needs. Nothing is stored. */

/** A missing part was not requested: the warehouse knows it, or the resource was not chosen. */
export interface Survey {
  /** Rows that were never listed; `extra` counts meetings among activities, and bodies of messages. */
  activities?: Estimate
  messages?: Estimate
  members?: Amount
  teams?: Amount
  collections?: Amount
  meetings?: MeetingCount
  playbooks?: ListCount
  objects?: ListCount & { names: readonly string[] }
  /** By object; null where the object is unavailable. */
  records: ReadonlyMap<string, Amount | null>
  accessLogs?: Amount
  refusals: ReadonlyMap<ResourceName, Refusal>
}

export interface ListCount {
  rows: Amount
  /** Requests that reading the list takes. */
  requests: Amount
}

export interface MeetingCount {
  list: ListCount
  /** Meetings that are read in detail, including those that the list does not show. */
  known: Amount
}

export interface Refusal {
  status: number | undefined
  message: string
  /** Declared: the workspace does not offer it. */
  expected: boolean
}

export interface SurveyOptions {
  chosen: readonly ResourceName[]
  held: Holdings | undefined
  since: string | null
  accessLogEndParameter: string
  /** The most requests, without retries. */
  budget: number
}

/** The most objects of which a page is requested. */
const MOST_OBJECTS = 6
const MOST_PERIODS = 5
const MOST_MEETING_PAGES = 3
/** Messages get the rest of the budget, since each of them costs one more request. */
const ACTIVITIES_SHARE = 12
const MEETINGS_SHARE = 12

/** @throws StopError 77 when the key is refused, 69 when nothing answers */
export async function survey(api: ApiReader, options: SurveyOptions): Promise<Survey> {
  const { chosen, held, since } = options
  const refusals = new Map<ResourceName, Refusal>()
  const left = () => options.budget - api.used()
  const isToRead = (name: ResourceName) => chosen.includes(name) && !held?.resources.get(name)?.finished
  /** The rows of a list are only unknown while it was never read completely. */
  const isUnlisted = (name: ResourceName, feed: string) =>
    isToRead(name) && held?.lists.get(`${name}.${feed} `)?.everListed !== true

  const listPage = async (resource: ResourceName, feed: string, more: Query = {}, scope = '') => {
    const { list, expected } = listFeed(resource, feed)
    const query = { ...list.query, ...more }
    const path = fillPath(list.path, { scope })
    const request = { resource, route: list.path, path, query }
    const reply = await api.read(request, value => readPage(list.paging, value, query))
    return reply.kind === 'answer' ? reply.value : noteRefusal(resource, expected, reply)
  }
  const noteRefusal = (
    resource: ResourceName,
    expected: Expected | undefined,
    reply: ReaderReply<unknown>,
  ) => {
    if (reply.kind === 'answer') return undefined
    const status = reply.kind === 'refused' ? reply.status : undefined
    const isExpected = status !== undefined && expected?.[status] === 'unavailable'
    refusals.set(resource, { status, message: reply.message, expected: isExpected })
    return undefined
  }

  const found: { -readonly [Key in keyof Survey]: Survey[Key] } = { records: new Map(), refusals }
  for (const name of ['members', 'teams'] as const) {
    if (!isUnlisted(name, 'list')) continue
    const page = await listPage(name, 'list', { limit: '1' })
    if (page)
      found[name] = page.totalSize === undefined ? atLeast(page.items.length) : exactly(page.totalSize)
  }
  if (isUnlisted('collections', 'list')) {
    const page = await listPage('collections', 'list', { limit: '50' })
    if (page) found.collections = { value: page.items.length, certainty: page.next ? 'at least' : 'exact' }
  }
  if (isUnlisted('playbooks', 'list')) {
    const page = await listPage('playbooks', 'list')
    if (page) found.playbooks = countList(page.items.length, page)
  }
  if (isUnlisted('crm_objects', 'list')) {
    const page = await listPage('crm_objects', 'list')
    const names = page?.items.flatMap(item => keyOf(item, ['name']) ?? []) ?? []
    if (page) found.objects = { ...countList(names.length, page), names }
  }
  if (isToRead('crm_records')) {
    found.records = await surveyRecords(
      api,
      objectsToCount(found.objects?.names ?? held?.objects ?? [], held),
    )
  }
  for (const name of ['bot_definition', 'integrations'] as const) {
    if (!isToRead(name)) continue
    const feed = resourceNamed(name).feeds['read']
    if (feed?.mode !== 'singleton') continue
    const request = { resource: name, route: feed.read.path, path: feed.read.path }
    noteRefusal(name, feed.expected, await api.read(request, value => readSingle(value, feed.read.placement)))
  }
  if (isToRead('access_logs')) {
    const requests = await surveyAccessLog(api, options, noteRefusal)
    if (requests) found.accessLogs = requests
  }

  const timeline = async (name: 'activities' | 'messages', budget: number, hint?: number) => {
    if (!isToRead(name)) return undefined
    const spans = held?.timelines.get(`${name}.list`)?.unread ?? [{ from: since, to: null }]
    let total: Estimate | undefined
    for (const span of spans) {
      const sampling = sampleList(toSpan(span), { budget: Math.min(budget, left()), oldestHint: hint })
      const estimate = await runSampling(sampling, bounds => timelinePage(api, name, bounds, {}, noteRefusal))
      total = total === undefined ? estimate : addEstimates(total, estimate)
    }
    return refusals.has(name) ? undefined : total
  }
  const setIfKnown = <Key extends keyof Survey>(key: Key, value: Survey[Key] | undefined) => {
    if (value !== undefined) found[key] = value
  }
  setIfKnown('activities', await timeline('activities', ACTIVITIES_SHARE))
  if (isUnlisted('meetings', 'list')) {
    const seen = found.activities
    setIfKnown('meetings', await surveyMeetings(api, options, { listPage, noteRefusal, seen }))
  }
  setIfKnown('messages', await timeline('messages', left(), found.activities?.oldest))
  return found
}

type NoteRefusal = (
  resource: ResourceName,
  expected: Expected | undefined,
  reply: ReaderReply<unknown>,
) => undefined

function listFeed(resource: ResourceName, name: string) {
  const feed = resourceNamed(resource).feeds[name]
  if (feed === undefined || !('list' in feed)) throw new TypeError(`${resource} has no list ${name}`)
  return feed
}

function timelineFeed(resource: ResourceName): TimelineFeed {
  const feed: Feed | undefined = resourceNamed(resource).feeds['list']
  if (feed?.mode !== 'timeline') throw new TypeError(`${resource} is no timeline`)
  return feed
}

interface Paged {
  next: Query | null
  totalSize?: number
  recognised?: 'v2-cursor' | 'v1-cursor' | 'v1-page' | 'bare'
}

/** The largest `limit` of a list of this shape; empty for a list without pages. */
function largestPage({ recognised }: Pick<Paged, 'recognised'>): string {
  return recognised === undefined || recognised === 'bare' ? '' : String(PAGING[recognised].maxLimit ?? '')
}

/** Estimates a list of unknown shape from its first page. If it has more, it is read again with larger pages. */
function countList(rows: number, { next, totalSize, recognised }: Paged): ListCount {
  if (!next) return { rows: exactly(totalSize ?? rows), requests: exactly(1) }
  if (totalSize === undefined || !recognised || recognised === 'bare') {
    return { rows: atLeast(rows + 1), requests: atLeast(2) }
  }
  const size = Number(largestPage({ recognised })) || rows
  return { rows: exactly(totalSize), requests: exactly(1 + Math.max(1, Math.ceil(totalSize / size))) }
}

/** Objects without a known number of records. The ones with most associations come first. */
function objectsToCount(names: readonly string[], held: Holdings | undefined): readonly string[] {
  const first = ['deal', 'company', 'contact']
  return [...new Set([...first.filter(name => name !== 'deal' || names.includes(name)), ...names])]
    .filter(name => held?.lists.get(`crm_records.list ${name}`)?.everListed !== true)
    .slice(0, MOST_OBJECTS)
}

async function surveyRecords(api: ApiReader, objects: readonly string[]): Promise<Survey['records']> {
  const counts = new Map<string, Amount | null>()
  const { list } = listFeed('crm_records', 'list')
  for (const scope of objects) {
    const query = { limit: String(PAGING['v2-cursor'].maxLimit) }
    const request = { resource: 'crm_records', route: list.path, path: fillPath(list.path, { scope }), query }
    const reply = await api.read(request, value => readPage('v2-cursor', value, query))
    if (reply.kind === 'refused' && reply.status === 404) counts.set(scope, null)
    if (reply.kind !== 'answer') continue
    const { items, next } = reply.value
    counts.set(scope, next ? atLeast(items.length + 1) : exactly(items.length))
  }
  return counts
}

const HOUR = 3_600_000
const PERIOD = 31 * 24 * HOUR
const LOG_PAGE = 50
/** The log ends after this many periods without an entry. */
const EMPTY_PERIODS = 3

/** Estimates the requests for the log: one page of each period, back in time, shows its density. */
async function surveyAccessLog(
  api: ApiReader,
  { accessLogEndParameter, since, held }: SurveyOptions,
  noteRefusal: NoteRefusal,
): Promise<Amount | undefined> {
  const feed = resourceNamed('access_logs').feeds['log']
  if (feed?.mode !== 'periodic') return undefined
  const periods = [...(held?.lists ?? [])].filter(([name]) => name.startsWith('access_logs.log '))
  if (periods.length > 0) return about(periods.filter(([, { due }]) => due).length + 1)
  const requests: Amount[] = []
  let end: number | undefined
  for (let number = 0; number < MOST_PERIODS; number += 1) {
    const bounds: Query =
      end === undefined ? {} : { [feed.from]: iso(end - PERIOD), [accessLogEndParameter]: iso(end) }
    const query = { limit: String(LOG_PAGE), ...bounds }
    const request = { resource: 'access_logs', route: feed.list.path, path: feed.list.path, query }
    const reply = await api.read(request, value => readPage(feed.list.paging, value, query))
    if (reply.kind !== 'answer') {
      noteRefusal('access_logs', feed.expected, reply)
      return number === 0 ? undefined : sum(...requests, { value: 1, certainty: 'at least' })
    }
    const { items, next } = reply.value
    if (end === undefined) {
      // The newest entries of all. The next period ends an hour ago and has 31 days.
      end = (reply.serverTime ?? reply.localTime) - HOUR
      requests.push(exactly(1))
      if (items.length === 0) break
      continue
    }
    requests.push(next ? about(Math.max(2, Math.ceil(densityOf(items, end) / LOG_PAGE))) : exactly(1))
    end -= PERIOD
    if (since !== null && end <= Date.parse(since)) return sum(...requests)
    if (items.length === 0) return sum(...requests, exactly(EMPTY_PERIODS - 1))
  }
  return requests.length > 1 ? sum(...requests, atLeast(1)) : sum(...requests, exactly(EMPTY_PERIODS + 1))
}

/** Entries of a period, extrapolated from the time that its newest page covers. */
function densityOf(items: readonly unknown[], end: number): number {
  const last = timesOf(items, 'occurred_at').at(-1) ?? end
  return (items.length * PERIOD) / Math.max(1, end - last)
}

interface MeetingTools {
  listPage(
    resource: ResourceName,
    feed: string,
    query?: Query,
  ): Promise<(Paged & { items: readonly unknown[] }) | undefined>
  noteRefusal: NoteRefusal
  /** The estimate of meetings from the sampled activities. */
  seen: Estimate | undefined
}

/** Reads a short list completely. A long one is estimated from the activities and the share of meetings among them. */
async function surveyMeetings(
  api: ApiReader,
  { since }: SurveyOptions,
  { listPage, noteRefusal, seen }: MeetingTools,
): Promise<MeetingCount | undefined> {
  const first = await listPage('meetings', 'list')
  if (!first) return undefined
  const limit = largestPage(first)
  const isShort = (seen?.extra ?? 0) < MOST_MEETING_PAGES * Number(limit)
  const items = first.next && limit !== '' && isShort ? await shortList(listPage, limit) : undefined
  const list: ListCount = items
    ? {
        rows: exactly(items.length),
        requests: exactly(1 + Math.max(1, Math.ceil(items.length / Number(limit)))),
      }
    : countList(first.items.length, first)
  const whole = items ?? (first.next ? undefined : first.items)
  if (whole) return { list, known: about(whole.filter(item => isSince(item, since)).length) }
  if (list.rows.certainty === 'exact' && since === null) return { list, known: about(list.rows.value) }

  let share = 1
  const readSighting = async (span: SpanMs): Promise<Sighting | undefined> => {
    const page = await timelinePage(api, 'activities', span, { source_type: 'MEETING' }, noteRefusal)
    if (page && span.to === undefined) share = shareSeen(first.items, page)
    return page
  }
  const span = { from: since === null ? undefined : Date.parse(since), to: undefined }
  const sampling = sampleList(span, { budget: MEETINGS_SHARE, oldestHint: seen?.oldest })
  const estimate = await runSampling(sampling, readSighting)
  const known = about(Math.round(estimate.rows / share))
  if (list.requests.certainty === 'exact') return { list, known }
  const size = Number(limit) || first.items.length
  return { list: { rows: list.rows, requests: about(1 + Math.ceil(known.value / Math.max(1, size))) }, known }
}

/** Every item, if the list ends within a few of its largest pages. */
async function shortList(
  listPage: MeetingTools['listPage'],
  limit: string,
): Promise<readonly unknown[] | undefined> {
  const items: unknown[] = []
  let next: Query | null = {}
  for (let number = 0; number < MOST_MEETING_PAGES && next; number += 1) {
    const page: Awaited<ReturnType<MeetingTools['listPage']>> = await listPage('meetings', 'list', {
      limit,
      ...next,
    })
    if (!page) return undefined
    items.push(...page.items)
    next = page.next
  }
  return next ? undefined : items
}

/** A meeting without a time in the list is read even with `sync.since`. */
function isSince(item: unknown, since: string | null): boolean {
  const [time] = timesOf([item], 'start_time')
  return since === null || time === undefined || time >= Date.parse(since)
}

/** The fewest meetings from which a share is computed. */
const MIN_MEETINGS = 10

/** The share of the newest listed meetings with an activity. Meetings without a public CRM record have none. */
function shareSeen(listed: readonly unknown[], page: TimelinePage): number {
  const oldest = page.more ? (page.times.at(-1) ?? Number.POSITIVE_INFINITY) : Number.NEGATIVE_INFINITY
  const sources = new Set(page.items.flatMap(item => textOf(item, 'source_id') ?? []))
  const comparable = listed.filter(item => (timesOf([item], 'start_time')[0] ?? oldest - 1) > oldest)
  const found = comparable.filter(item => sources.has(keyOf(item, ['meeting_id', 'id']) ?? ''))
  return comparable.length < MIN_MEETINGS || found.length === 0 ? 1 : found.length / comparable.length
}

interface SpanMs {
  from: number | undefined
  to: number | undefined
}

async function runSampling(
  sampling: Sampling,
  readSighting: (span: SpanMs) => Promise<Sighting | undefined>,
): Promise<Estimate> {
  let step = sampling.next()
  while (!step.done) step = sampling.next(await readSighting(step.value))
  return step.value
}

/** The second count on a page of a timeline. */
const EXTRA: Readonly<Record<string, (items: readonly unknown[]) => number>> = {
  activities: items => items.filter(item => textOf(item, 'source_type') === 'MEETING').length,
  messages: items =>
    bodiesFor(
      items.map(item => ({
        header: textOf(item, 'header_message_id') ?? null,
        hidden: textOf(item, 'subject') === undefined,
      })),
    ),
}

interface TimelinePage extends Sighting {
  items: readonly unknown[]
}

async function timelinePage(
  api: ApiReader,
  resource: 'activities' | 'messages',
  span: SpanMs,
  filter: Query,
  noteRefusal: NoteRefusal,
): Promise<TimelinePage | undefined> {
  const { list, bounds, time, expected } = timelineFeed(resource)
  const query = {
    ...list.query,
    ...filter,
    limit: String(PAGING[list.paging].maxLimit),
    ...(span.from === undefined ? {} : { [bounds.from]: iso(span.from) }),
    ...(span.to === undefined ? {} : { [bounds.to]: iso(span.to) }),
  }
  const request = { resource, route: list.path, path: list.path, query }
  const reply = await api.read(request, value => readPage(list.paging, value, query))
  if (reply.kind !== 'answer') return noteRefusal(resource, expected, reply)
  const { items, next } = reply.value
  return { items, times: timesOf(items, time), more: next !== null, extra: EXTRA[resource]?.(items) ?? 0 }
}

function addEstimates(one: Estimate, other: Estimate): Estimate {
  return {
    rows: one.rows + other.rows,
    extra: one.extra + other.extra,
    certainty: one.certainty === 'at least' || other.certainty === 'exact' ? one.certainty : other.certainty,
    oldest: other.oldest ?? one.oldest,
  }
}

function toSpan({ from, to }: { from: string | null; to: string | null }) {
  return { from: from === null ? undefined : Date.parse(from), to: to === null ? undefined : Date.parse(to) }
}

const iso = (ms: number): string => new Date(ms).toISOString()

function textOf(item: unknown, field: string): string | undefined {
  if (typeof item !== 'object' || item === null) return undefined
  const value = Object.entries(item).find(([name]) => name === field)?.[1]
  return typeof value === 'string' ? value : undefined
}

function timesOf(items: readonly unknown[], field: string): number[] {
  return items.flatMap(item => {
    const instant = canonicalInstant(textOf(item, field) ?? '')
    return instant === undefined ? [] : [Date.parse(instant)]
  })
}
