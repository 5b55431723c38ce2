import type { ResourceName } from '../../catalog/resource.ts'
import type { Lane } from '../scheduler/job.ts'
import { type Amount, about, exactly, pages, smaller, sum, UNKNOWN } from './estimate.ts'
import type { HeldItems, Holdings } from './holdings.ts'
import type { Estimate } from './sample.ts'
import type { Survey } from './survey.ts'

/** Estimates the requests of a backfill from the survey of the API and the contents of the warehouse. Pure. */

export interface PlanLine {
  resource: ResourceName
  lane: Extract<Lane, 'items' | 'history' | 'audit'>
  requests: Amount
  /** The basis of the number, for people. */
  because: string
}

export interface PlanFacts {
  found: Survey
  held: Holdings | undefined
}

export function planLines(chosen: readonly ResourceName[], facts: PlanFacts): PlanLine[] {
  return chosen.flatMap(name => {
    if (facts.held?.resources.get(name)?.finished) return []
    const refusal = facts.found.refusals.get(name)
    if (!refusal) return PLANS[name](facts)
    const { expected, status, message } = refusal
    const said = `the API ${status === undefined ? 'gives no usable answer' : `answers ${status}`}: ${message}`
    const lane = listLane(name, facts)
    return expected
      ? [{ resource: name, lane, requests: exactly(1), because: `not offered by this workspace: ${said}` }]
      : [{ resource: name, lane, requests: UNKNOWN, because: said }]
  })
}

type ResourcePlan = (facts: PlanFacts) => PlanLine[]

const PLANS: Readonly<Record<ResourceName, ResourcePlan>> = {
  members: facts => [
    list('members', facts, pages(facts.found.members ?? UNKNOWN, 200), 'total reported by the API'),
  ],
  teams: facts => [
    list('teams', facts, pages(facts.found.teams ?? UNKNOWN, 200), 'total reported by the API'),
  ],
  collections: facts => [
    list('collections', facts, pages(facts.found.collections ?? UNKNOWN, 50), 'first page of the list'),
  ],
  collection_meetings: facts => [
    line('collection_meetings', facts, 'at least one page for each collection', {
      ...collectionsOf(facts),
      certainty: 'at least',
    }),
  ],
  activities: facts => [timeline('activities', facts, facts.found.activities)],
  messages: facts => [timeline('messages', facts, facts.found.messages)],
  message_bodies: facts => [
    items('message_bodies', heldItems(facts, 'message_bodies.read'), estimated(facts.found.messages, facts), {
      because: 'one for each e-mail; copies are counted on the sampled pages',
    }),
  ],
  meetings: facts => {
    const { found } = facts
    return [
      list('meetings', facts, found.meetings?.list.requests ?? UNKNOWN, 'the meeting list'),
      items('meetings', heldItems(facts, 'meetings.detail'), newMeetings(facts), {
        because: 'one for each meeting',
      }),
    ]
  },
  transcripts: facts => [
    items('transcripts', heldItems(facts, 'transcripts.read'), newMeetings(facts), {
      because: 'one for each meeting',
    }),
  ],
  playbook_results: facts => [
    items('playbook_results', heldItems(facts, 'playbook_results.read'), newMeetings(facts), {
      because: 'at most one for each meeting; only meetings with a complete overview',
    }),
  ],
  playbooks: facts => {
    const rows = facts.found.playbooks?.rows ?? exactly(0)
    const details = items('playbooks', heldItems(facts, 'playbooks.detail'), rows, { because: '' })
    const settings = items('playbooks', heldItems(facts, 'playbooks.execution_setting'), rows, {
      because: '',
    })
    return [
      list('playbooks', facts, facts.found.playbooks?.requests ?? UNKNOWN, 'the playbook list'),
      {
        ...details,
        requests: sum(details.requests, settings.requests),
        because: 'detail and execution setting of each playbook',
      },
    ]
  },
  crm_objects: facts => [
    list('crm_objects', facts, facts.found.objects?.requests ?? UNKNOWN, 'the object list'),
    items('crm_objects', heldItems(facts, 'crm_objects.detail'), facts.found.objects?.rows ?? exactly(0), {
      because: 'the fields of each object',
    }),
  ],
  crm_records: facts => {
    const counts = recordCounts(facts)
    return [
      line(
        'crm_records',
        facts,
        'from one page of each object; records cannot be counted without reading them',
        sum(...counts.map(([, rows]) => (rows === null ? exactly(1) : pages(rows)))),
      ),
    ]
  },
  crm_record_links: facts => [linksPlan(facts)],
  access_logs: facts => [
    line(
      'access_logs',
      facts,
      'from one page of each of the last periods',
      facts.found.accessLogs ?? UNKNOWN,
    ),
  ],
  bot_definition: facts => [line('bot_definition', facts, 'one document', exactly(1))],
  integrations: facts => [line('integrations', facts, 'one document', exactly(1))],
}

function line(resource: ResourceName, facts: PlanFacts, because: string, requests: Amount): PlanLine {
  return { resource, lane: listLane(resource, facts), requests, because }
}

/** The lane that the schedule will choose: audit for a list that has been complete before. */
function listLane(resource: ResourceName, { held }: PlanFacts): 'history' | 'audit' {
  const timeline = held?.timelines.get(`${resource}.list`)
  const complete = timeline ? !timeline.neverListed : held?.resources.get(resource)?.complete
  return complete ? 'audit' : 'history'
}

/** A snapshot. If it was listed before, every page of the stored rows is listed again. */
function list(resource: ResourceName, facts: PlanFacts, fresh: Amount, because: string): PlanLine {
  const held = facts.held?.lists.get(`${resource}.list `)
  if (!held?.everListed) return line(resource, facts, because, fresh)
  const size = PAGE_SIZES[resource] ?? 50
  const again = held.due ? about(pages(exactly(held.rows), size).value) : exactly(0)
  return line(resource, facts, 'listed again', again)
}

const PAGE_SIZES: Readonly<Partial<Record<ResourceName, number>>> = { members: 200, teams: 200 }

function timeline(resource: ResourceName, facts: PlanFacts, estimate: Estimate | undefined): PlanLine {
  const held = facts.held?.timelines.get(`${resource}.list`)
  const rows = rowsOf(estimate)
  const unread = held && held.unread.length === 0 ? exactly(0) : rows
  const again = exactly(held?.known ?? 0)
  const needed = held && held.unread.length === 0 && held.known === 0 ? exactly(0) : pages(sum(unread, again))
  const basis = estimate?.certainty === 'exact' ? 'counted' : 'from the density of the sampled pages'
  return line(resource, facts, held?.known ? `${basis}; stored rows are listed again` : basis, needed)
}

function rowsOf(estimate: Estimate | undefined): Amount {
  return estimate ? { value: estimate.rows, certainty: estimate.certainty } : UNKNOWN
}

function estimated(estimate: Estimate | undefined, { found, held }: PlanFacts): Amount {
  if (estimate)
    return { value: estimate.extra, certainty: estimate.certainty === 'at least' ? 'at least' : 'about' }
  return found.refusals.has('messages') || !held ? UNKNOWN : exactly(0)
}

function heldItems({ held }: PlanFacts, feed: string): HeldItems {
  return held?.items.get(feed) ?? { due: 0, known: 0 }
}

/** Single reads: the due ones in the warehouse, and those of keys that it does not know yet. */
function items(
  resource: ResourceName,
  held: HeldItems,
  fresh: Amount,
  { because }: { because: string },
): PlanLine {
  const requests = held.due === 0 ? fresh : sum(exactly(held.due), fresh)
  return {
    resource,
    lane: 'items',
    requests,
    because: held.due > 0 ? `${because}; ${held.due} are due` : because,
  }
}

/** Meetings that the warehouse does not know yet. */
function newMeetings({ found, held }: PlanFacts): Amount {
  const known = held?.items.get('meetings.detail')?.known ?? 0
  if (found.meetings) {
    const { value, certainty } = found.meetings.known
    return { value: Math.max(0, value - known), certainty }
  }
  if (found.refusals.has('meetings')) return found.activities ? about(found.activities.extra) : UNKNOWN
  return held ? about(found.activities?.extra ?? 0) : UNKNOWN
}

function collectionsOf({ found, held }: PlanFacts): Amount {
  return found.collections ?? (held ? exactly(held.lists.get('collections.list ')?.rows ?? 0) : UNKNOWN)
}

/** Rows by object; null where the object has no list of records. */
function recordCounts({ found, held }: PlanFacts): [string, Amount | null][] {
  const listed = found.objects?.names ?? held?.objects ?? []
  const names = [...new Set([...listed, 'company', 'contact'])]
  return names.map(name => {
    const stored = held?.lists.get(`crm_records.list ${name}`)
    const asked = found.records.get(name)
    if (asked !== undefined) return [name, asked]
    return [
      name,
      stored?.everListed ? about(held?.records.get(name) ?? 0) : { value: 1, certainty: 'at least' },
    ]
  })
}

/** Each kind of association is read from the object with fewer records. */
const ASSOCIATED_OBJECTS = [
  ['deal', 'company'],
  ['deal', 'contact'],
  ['company', 'contact'],
] as const

function linksPlan(facts: PlanFacts): PlanLine {
  const counts = new Map(recordCounts(facts))
  const size = (object: string) => counts.get(object) ?? exactly(0)
  const requests = sum(...ASSOCIATED_OBJECTS.map(([one, other]) => smaller(size(one), size(other))))
  return {
    resource: 'crm_record_links',
    lane: 'items',
    requests,
    because: 'one for each record of the smaller object in each kind of association',
  }
}

// ---------------------------------------------------------------------------------------------- time

export interface Rate {
  perSecond: number
  /** The basis of the rate, for people. */
  from: string
}

export interface RateFacts {
  /** The limits of the API as earlier runs learned them. */
  learned: { ratePerSecond: number; concurrency: number; limited: boolean; crowded?: boolean } | undefined
  ceilings: { requestsPerSecond?: number | undefined; concurrency?: number | undefined }
  /** Mean response time of the survey's requests. */
  answerMs: number | undefined
  /** The rate after a 429 to the survey's requests; undefined without one. */
  throttledTo: number | undefined
}

/** Without a limit of the API, one process stores about this many answers a second. */
const MOST_STORED_PER_SECOND = 250
/** How many requests a backfill sends at a time before it has learned a limit. */
const USUAL_CONCURRENCY = 4

export function rateOf({ learned, ceilings, answerMs, throttledTo }: RateFacts): Rate | undefined {
  const concurrency = Math.min(
    ceilings.concurrency ?? Number.POSITIVE_INFINITY,
    learned?.concurrency ?? USUAL_CONCURRENCY,
  )
  const candidates: Rate[] = []
  if (learned?.limited) candidates.push({ perSecond: learned.ratePerSecond, from: 'learned by earlier runs' })
  if (ceilings.requestsPerSecond !== undefined) {
    candidates.push({
      perSecond: ceilings.requestsPerSecond,
      from: 'the ceiling api.max_requests_per_second',
    })
  }
  if (throttledTo !== undefined) {
    candidates.push({ perSecond: throttledTo, from: 'the limit that the requests of this estimate met' })
  }
  if (answerMs !== undefined) {
    const reached = (1000 / Math.max(1, answerMs)) * concurrency
    const from = `${concurrency} requests at a time, ${Math.round(answerMs)} ms each as measured now`
    candidates.push({ perSecond: Math.min(MOST_STORED_PER_SECOND, reached), from })
  }
  const [slowest] = candidates.sort((one, other) => one.perSecond - other.perSecond)
  return slowest
}

/** Common limits of APIs, in requests a second. */
const COMMON_LIMITS = [5, 20] as const

/**
 * The rates to plan with, slowest first. When the limit is known there is one; otherwise one for each common limit, and
 * the rate without any limit.
 */
export function ratesOf(facts: RateFacts): Rate[] {
  const reached = rateOf(facts)
  if (!reached) return []
  const limits = isLimitKnown(facts) ? [] : COMMON_LIMITS.filter(limit => limit < reached.perSecond)
  return [
    ...limits.map(perSecond => ({ perSecond, from: `if the API allows ${perSecond} a second` })),
    reached,
  ]
}

/** A run without a 429 may have been too short to meet a limit, so it proves nothing. */
function isLimitKnown({ learned, ceilings, throttledTo }: RateFacts): boolean {
  const wasRefused = learned?.limited === true || learned?.crowded === true || throttledTo !== undefined
  return wasRefused || ceilings.requestsPerSecond !== undefined
}

export interface DayLimit {
  perDay: number
  usedToday: number
}

/** Seconds for this many requests, including the waits that a daily limit causes. */
export function secondsFor(requests: number, rate: Rate, day: DayLimit | undefined): number {
  const byRate = requests / rate.perSecond
  if (!day) return byRate
  const afterToday = requests - Math.max(0, day.perDay - day.usedToday)
  if (afterToday <= 0) return byRate
  return Math.max(byRate, Math.ceil(afterToday / day.perDay) * 86_400)
}
