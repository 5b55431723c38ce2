import type { ResourceName } from '../../catalog/resource.ts'
import type { Lane } from '../scheduler/job.ts'
import { type Amount, about, exactly, pages, smaller, sum, UNKNOWN } from './estimate.ts'
import type { HeldItems, Holdings } from './holdings.ts'
import type { Estimate } from './sample.ts'
import type { Survey } from './survey.ts'

/** How many requests a backfill will make, from what was found out and what is held. Pure. */

export interface PlanLine {
  resource: ResourceName
  lane: Extract<Lane, 'items' | 'history' | 'audit'>
  requests: Amount
  /** What the number rests on, for people. */
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
    const said = `the API answers ${status ?? 'nothing usable'}: ${message}`
    const lane = listLane(name, facts)
    return expected
      ? [{ resource: name, lane, requests: exactly(1), because: `not offered here: ${said}` }]
      : [{ resource: name, lane, requests: UNKNOWN, because: said }]
  })
}

type Plan = (facts: PlanFacts) => PlanLine[]

const PLANS: Readonly<Record<ResourceName, Plan>> = {
  members: facts => [
    list('members', facts, pages(facts.found.members ?? UNKNOWN, 200), 'total told by the API'),
  ],
  teams: facts => [list('teams', facts, pages(facts.found.teams ?? UNKNOWN, 200), 'total told by the API')],
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
      because: 'one for each e-mail, whose copies are counted on the pages sampled',
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
      because: 'at most one for each meeting: only where the overview is complete',
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
        'records cannot be counted before reading: one page of each object was looked at',
        sum(...counts.map(([, rows]) => (rows === null ? exactly(1) : pages(rows)))),
      ),
    ]
  },
  crm_record_links: facts => [linksPlan(facts)],
  access_logs: facts => [
    line('access_logs', facts, 'one page of each of the last periods', facts.found.accessLogs ?? UNKNOWN),
  ],
  bot_definition: facts => [line('bot_definition', facts, 'one document', exactly(1))],
  integrations: facts => [line('integrations', facts, 'one document', exactly(1))],
}

function line(resource: ResourceName, facts: PlanFacts, because: string, requests: Amount): PlanLine {
  return { resource, lane: listLane(resource, facts), requests, because }
}

/** As the sources of jobs choose their lane: what was complete once is an audit. */
function listLane(resource: ResourceName, { held }: PlanFacts): 'history' | 'audit' {
  const timeline = held?.timelines.get(`${resource}.list`)
  const complete = timeline ? !timeline.neverListed : held?.resources.get(resource)?.complete
  return complete ? 'audit' : 'history'
}

/** A snapshot: what was listed before is listed again, as often as it has pages. */
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
  const basis = estimate?.certainty === 'exact' ? 'counted' : 'density of the pages sampled'
  return line(resource, facts, held?.known ? `${basis}, and what is stored is listed again` : basis, needed)
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

/** Single reads: those that the warehouse knows to be due, and those of what is not known yet. */
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

/** Rows by object; null where the object offers none. */
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

/** Each kind of association is asked for in the direction with fewer records. */
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
    because: 'one for each record on the smaller side of each kind of association',
  }
}

// ---------------------------------------------------------------------------------------------- time

export interface Rate {
  perSecond: number
  /** Where it is from, for people. */
  from: string
}

export interface RateFacts {
  /** Of earlier runs: what the API was found to allow. */
  learned: { ratePerSecond: number; concurrency: number; limited: boolean; crowded?: boolean } | undefined
  ceilings: { requestsPerSecond?: number | undefined; concurrency?: number | undefined }
  /** Mean time of the plan's own answers. */
  answerMs: number | undefined
  /** Whether the plan's own requests met a 429, and at what rate that left them. */
  throttledTo: number | undefined
}

/** With no limit found, one process stores about so many answers a second. */
const MOST_STORED_PER_SECOND = 250
/** How many requests a backfill sends at a time before it has learned more. */
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
    candidates.push({ perSecond: throttledTo, from: "what the API allowed the plan's own requests" })
  }
  if (answerMs !== undefined) {
    const reached = (1000 / Math.max(1, answerMs)) * concurrency
    const from = `${concurrency} requests at a time, ${Math.round(answerMs)} ms each as the plan's own took`
    candidates.push({ perSecond: Math.min(MOST_STORED_PER_SECOND, reached), from })
  }
  const [slowest] = candidates.sort((one, other) => one.perSecond - other.perSecond)
  return slowest
}

/** What APIs commonly allow, in requests a second. */
const COMMON_LIMITS = [5, 20] as const

/**
 * The rates to plan by, the slowest first: one where the limit is known, else one for each limit that is common, and
 * what is reached if there is none.
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

/** A run that was never refused may have been too short to meet a limit. */
function isLimitKnown({ learned, ceilings, throttledTo }: RateFacts): boolean {
  const wasRefused = learned?.limited === true || learned?.crowded === true || throttledTo !== undefined
  return wasRefused || ceilings.requestsPerSecond !== undefined
}

export interface DayLimit {
  perDay: number
  usedToday: number
}

/** Seconds for so many requests; the owner's day may make it longer. */
export function secondsFor(requests: number, rate: Rate, day: DayLimit | undefined): number {
  const byRate = requests / rate.perSecond
  if (!day) return byRate
  const afterToday = requests - Math.max(0, day.perDay - day.usedToday)
  if (afterToday <= 0) return byRate
  return Math.max(byRate, Math.ceil(afterToday / day.perDay) * 86_400)
}
