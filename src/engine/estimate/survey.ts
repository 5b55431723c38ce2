import type { Asker, Reply } from '../../api/ask.ts'
import { PAGING, readPage, readSingle } from '../../api/paging.ts'
import { fillPath } from '../../api/request.ts'
import { resourceNamed } from '../../catalog/catalog.ts'
import type { Expected, Feed, ResourceName, TimelineFeed } from '../../catalog/resource.ts'
import { canonicalInstant } from '../../instant.ts'
import { keyOf } from '../modes/snapshot.ts'
import { type Amount, about, atLeast, bodiesFor, exactly, sum } from './estimate.ts'
import type { Holdings } from './holdings.ts'
import { type Estimate, type Sampling, type Sighting, sampleList } from './sample.ts'

/** Asks the API for as little as a plan needs. Nothing is stored. */

/** What was found out; what is missing was not asked for, since the warehouse knows it or nobody wants it. */
export interface Survey {
  /** Rows that were never listed, and what they call for: meetings among activities, bodies of messages. */
  activities?: Estimate
  messages?: Estimate
  members?: Amount
  teams?: Amount
  collections?: Amount
  meetings?: MeetingCount
  playbooks?: ListCount
  objects?: ListCount & { names: readonly string[] }
  /** By object; those not asked for are missing. `null`: not offered. */
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
  /** Meetings that are read in detail, also those that the list does not show. */
  known: Amount
}

export interface Refusal {
  status: number | undefined
  message: string
  /** This workspace does not offer it, which is no fault. */
  expected: boolean
}

export interface SurveyOptions {
  chosen: readonly ResourceName[]
  held: Holdings | undefined
  since: string | null
  accessLogEndParameter: string
  /** Requests at most, but for repeated ones. */
  budget: number
}

/** Beyond so many objects no page is asked for. */
const MOST_OBJECTS = 6
const MOST_PERIODS = 5
const MOST_MEETING_PAGES = 3
/** Messages get what is left, since they weigh the most: a body each. */
const ACTIVITIES_SHARE = 12
const MEETINGS_SHARE = 12

type Query = Readonly<Record<string, string>>

/** @throws StopError 77 when the key is refused, 69 when nothing answers */
export async function survey(asker: Asker, options: SurveyOptions): Promise<Survey> {
  const { chosen, held, since } = options
  const refusals = new Map<ResourceName, Refusal>()
  const left = () => options.budget - asker.used()
  const wants = (name: ResourceName) => chosen.includes(name) && !held?.resources.get(name)?.finished
  /** What a list holds need only be asked for when it was never read to its end. */
  const unlisted = (name: ResourceName, feed: string) =>
    wants(name) && held?.lists.get(`${name}.${feed} `)?.everListed !== true

  const listed = async (resource: ResourceName, feed: string, more: Query = {}, scope = '') => {
    const { list, expected } = listFeed(resource, feed)
    const query = { ...list.query, ...more }
    const path = fillPath(list.path, { scope })
    const request = { resource, route: list.path, path, query }
    const reply = await asker.ask(request, value => readPage(list.paging, value, query))
    return reply.kind === 'answer' ? reply.value : refuse(resource, expected, reply)
  }
  const refuse = (resource: ResourceName, expected: Expected | undefined, reply: Reply<unknown>) => {
    if (reply.kind === 'answer') return undefined
    const status = reply.kind === 'refused' ? reply.status : undefined
    const isExpected = status !== undefined && expected?.[status] === 'unavailable'
    refusals.set(resource, { status, message: reply.message, expected: isExpected })
    return undefined
  }

  const found: { -readonly [Key in keyof Survey]: Survey[Key] } = { records: new Map(), refusals }
  for (const name of ['members', 'teams'] as const) {
    if (!unlisted(name, 'list')) continue
    const page = await listed(name, 'list', { limit: '1' })
    if (page)
      found[name] = page.totalSize === undefined ? atLeast(page.items.length) : exactly(page.totalSize)
  }
  if (unlisted('collections', 'list')) {
    const page = await listed('collections', 'list', { limit: '50' })
    if (page) found.collections = { value: page.items.length, certainty: page.next ? 'at least' : 'exact' }
  }
  if (unlisted('playbooks', 'list')) {
    const page = await listed('playbooks', 'list')
    if (page) found.playbooks = countList(page.items.length, page)
  }
  if (unlisted('crm_objects', 'list')) {
    const page = await listed('crm_objects', 'list')
    const names = page?.items.flatMap(item => keyOf(item, ['name']) ?? []) ?? []
    if (page) found.objects = { ...countList(names.length, page), names }
  }
  if (wants('crm_records')) {
    found.records = await surveyRecords(
      asker,
      objectsToCount(found.objects?.names ?? held?.objects ?? [], held),
    )
  }
  for (const name of ['bot_definition', 'integrations'] as const) {
    if (!wants(name)) continue
    const feed = resourceNamed(name).feeds['read']
    if (feed?.mode !== 'singleton') continue
    const request = { resource: name, route: feed.read.path, path: feed.read.path }
    refuse(name, feed.expected, await asker.ask(request, value => readSingle(value, feed.read.placement)))
  }
  if (wants('access_logs')) {
    const requests = await surveyAccessLog(asker, options, refuse)
    if (requests) found.accessLogs = requests
  }

  const timeline = async (name: 'activities' | 'messages', budget: number, hint?: number) => {
    if (!wants(name)) return undefined
    const spans = held?.timelines.get(`${name}.list`)?.unread ?? [{ from: since, to: null }]
    let total: Estimate | undefined
    for (const span of spans) {
      const sampling = sampleList(toSpan(span), { budget: Math.min(budget, left()), oldestHint: hint })
      const estimate = await drive(sampling, bounds => timelinePage(asker, name, bounds, {}, refuse))
      total = total === undefined ? estimate : addEstimates(total, estimate)
    }
    return refusals.has(name) ? undefined : total
  }
  const set = <Key extends keyof Survey>(key: Key, value: Survey[Key] | undefined) => {
    if (value !== undefined) found[key] = value
  }
  set('activities', await timeline('activities', ACTIVITIES_SHARE))
  if (unlisted('meetings', 'list')) {
    const seen = found.activities
    set('meetings', await surveyMeetings(asker, options, { listed, refuse, seen }))
  }
  set('messages', await timeline('messages', left(), found.activities?.oldest))
  return found
}

type Refuse = (resource: ResourceName, expected: Expected | undefined, reply: Reply<unknown>) => undefined

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

/** The `limit` that a list of this shape allows at most; empty where it has no pages. */
function largestPage({ recognised }: Pick<Paged, 'recognised'>): string {
  return recognised === undefined || recognised === 'bare' ? '' : String(PAGING[recognised].maxLimit ?? '')
}

/** From the first page of a list of unknown shape, which is begun again with larger pages when it has more. */
function countList(rows: number, { next, totalSize, recognised }: Paged): ListCount {
  if (!next) return { rows: exactly(totalSize ?? rows), requests: exactly(1) }
  if (totalSize === undefined || !recognised || recognised === 'bare') {
    return { rows: atLeast(rows + 1), requests: atLeast(2) }
  }
  const size = Number(largestPage({ recognised })) || rows
  return { rows: exactly(totalSize), requests: exactly(1 + Math.max(1, Math.ceil(totalSize / size))) }
}

/** Objects whose records nobody counted yet; those that everything is linked to first. */
function objectsToCount(names: readonly string[], held: Holdings | undefined): readonly string[] {
  const first = ['deal', 'company', 'contact']
  return [...new Set([...first.filter(name => name !== 'deal' || names.includes(name)), ...names])]
    .filter(name => held?.lists.get(`crm_records.list ${name}`)?.everListed !== true)
    .slice(0, MOST_OBJECTS)
}

async function surveyRecords(asker: Asker, objects: readonly string[]): Promise<Survey['records']> {
  const counts = new Map<string, Amount | null>()
  const { list } = listFeed('crm_records', 'list')
  for (const scope of objects) {
    const query = { limit: String(PAGING['v2-cursor'].maxLimit) }
    const request = { resource: 'crm_records', route: list.path, path: fillPath(list.path, { scope }), query }
    const reply = await asker.ask(request, value => readPage('v2-cursor', value, query))
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
/** Periods without an entry that end the log. */
const EMPTY_PERIODS = 3

/** Requests for the log: one page of each period back in time tells how dense it is there. */
async function surveyAccessLog(
  asker: Asker,
  { accessLogEndParameter, since, held }: SurveyOptions,
  refuse: Refuse,
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
    const reply = await asker.ask(request, value => readPage(feed.list.paging, value, query))
    if (reply.kind !== 'answer') {
      refuse('access_logs', feed.expected, reply)
      return number === 0 ? undefined : sum(...requests, { value: 1, certainty: 'at least' })
    }
    const { items, next } = reply.value
    if (end === undefined) {
      // The newest entries of all, whose period is the last hour and the 31 days before it.
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

/** Entries of a period by how long its newest page lasts. */
function densityOf(items: readonly unknown[], end: number): number {
  const last = timesOf(items, 'occurred_at').at(-1) ?? end
  return (items.length * PERIOD) / Math.max(1, end - last)
}

interface MeetingTools {
  listed(
    resource: ResourceName,
    feed: string,
    query?: Query,
  ): Promise<(Paged & { items: readonly unknown[] }) | undefined>
  refuse: Refuse
  /** What the sampled activities told of meetings. */
  seen: Estimate | undefined
}

/** The list to its end where it is short; else by the activities, of which the list's share is known. */
async function surveyMeetings(
  asker: Asker,
  { since }: SurveyOptions,
  { listed, refuse, seen }: MeetingTools,
): Promise<MeetingCount | undefined> {
  const first = await listed('meetings', 'list')
  if (!first) return undefined
  const limit = largestPage(first)
  const isShort = (seen?.extra ?? 0) < MOST_MEETING_PAGES * Number(limit)
  const items = first.next && limit !== '' && isShort ? await shortList(listed, limit) : undefined
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
  const see = async (span: SpanMs): Promise<Sighting | undefined> => {
    const page = await timelinePage(asker, 'activities', span, { source_type: 'MEETING' }, refuse)
    if (page && span.to === undefined) share = shareSeen(first.items, page)
    return page
  }
  const span = { from: since === null ? undefined : Date.parse(since), to: undefined }
  const sampling = sampleList(span, { budget: MEETINGS_SHARE, oldestHint: seen?.oldest })
  const estimate = await drive(sampling, see)
  const known = about(Math.round(estimate.rows / share))
  if (list.requests.certainty === 'exact') return { list, known }
  const size = Number(limit) || first.items.length
  return { list: { rows: list.rows, requests: about(1 + Math.ceil(known.value / Math.max(1, size))) }, known }
}

/** Every item, if the list ends within a few of its largest pages. */
async function shortList(
  listed: MeetingTools['listed'],
  limit: string,
): Promise<readonly unknown[] | undefined> {
  const items: unknown[] = []
  let next: Query | null = {}
  for (let number = 0; number < MOST_MEETING_PAGES && next; number += 1) {
    const page: Awaited<ReturnType<MeetingTools['listed']>> = await listed('meetings', 'list', {
      limit,
      ...next,
    })
    if (!page) return undefined
    items.push(...page.items)
    next = page.next
  }
  return next ? undefined : items
}

/** What the list does not show a time of is read, whatever the bound. */
function isSince(item: unknown, since: string | null): boolean {
  const [time] = timesOf([item], 'start_time')
  return since === null || time === undefined || time >= Date.parse(since)
}

/** Fewer than so many say nothing about a share. */
const TELLING_MEETINGS = 10

/** Of the newest meetings listed, how many have an activity: those without a public CRM record have none. */
function shareSeen(listed: readonly unknown[], page: TimelinePage): number {
  const oldest = page.more ? (page.times.at(-1) ?? Number.POSITIVE_INFINITY) : Number.NEGATIVE_INFINITY
  const sources = new Set(page.items.flatMap(item => textOf(item, 'source_id') ?? []))
  const comparable = listed.filter(item => (timesOf([item], 'start_time')[0] ?? oldest - 1) > oldest)
  const found = comparable.filter(item => sources.has(keyOf(item, ['meeting_id', 'id']) ?? ''))
  return comparable.length < TELLING_MEETINGS || found.length === 0 ? 1 : found.length / comparable.length
}

interface SpanMs {
  from: number | undefined
  to: number | undefined
}

async function drive(
  sampling: Sampling,
  see: (span: SpanMs) => Promise<Sighting | undefined>,
): Promise<Estimate> {
  let step = sampling.next()
  while (!step.done) step = sampling.next(await see(step.value))
  return step.value
}

/** What a page of a timeline calls for beside its rows. */
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
  asker: Asker,
  resource: 'activities' | 'messages',
  span: SpanMs,
  filter: Query,
  refuse: Refuse,
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
  const reply = await asker.ask(request, value => readPage(list.paging, value, query))
  if (reply.kind !== 'answer') return refuse(resource, expected, reply)
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
